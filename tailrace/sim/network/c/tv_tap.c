/* Taps: Python functions called at each event of a wire (one direction of a
 * link); and the log, whose records are read at the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_bytes.h"
#include "tv_net.h"

#include <stdlib.h>

#define FIRST_LOG_BYTES 65536u

int tv_tap_call(tv_wire *w, enum tv_event event, const tc_frame *f)
{
    PyObject *frame =
        PyBytes_FromStringAndSize((const char *)f->data, f->len);
    if (!frame)
        return -1;
    Py_XSETREF(w->tap_frame, frame);
    PyObject *result = PyObject_CallFunction(
        w->tap, "iKOI", (int)event,
        (unsigned long long)(f->time_ps / TV_PS_PER_NS), frame, f->virt);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* ---- the log ---- */

static int log_grow(tv_log *l, size_t more)
{
    size_t cap = l->cap ? l->cap : FIRST_LOG_BYTES;
    while (cap - l->n < more)
        cap *= 2;
    if (cap != l->cap && tv_resize(&l->records, cap) < 0)
        return -1;
    l->cap = cap;
    return 0;
}

int tv_log_add(const tv_wire *w, uint32_t what, const tc_frame *f)
{
    tv_log *l = w->net->log;
    const uint8_t *ip = tv_match_ipv4(&w->net->formats, f->data, f->len);
    if (ip) {
        uint32_t src = tc_get32(ip + 12), dst = tc_get32(ip + 16);
        if (!(src == l->a && dst == l->b) && !(src == l->b && dst == l->a))
            return 0;
    } else if (w->logged != TV_LOGGED_NON_IP) {
        return 0;
    }
    uint32_t bytes = what == TV_SENT ? 0 : (f->len + 7u) & ~7u;
    tv_logged_frame head = {
        f->time_ps, w->index, what, f->len, f->virt,
        ip ? (uint32_t)(ip - f->data) : UINT32_MAX, bytes};
    if (log_grow(l, sizeof head + bytes) < 0)
        return -1;
    memcpy(l->records + l->n, &head, sizeof head);
    if (bytes) {
        /* the padding is zero */
        memset(l->records + l->n + sizeof head + bytes - 8, 0, 8);
        memcpy(l->records + l->n + sizeof head, f->data, f->len);
    }
    l->n += sizeof head + bytes;
    return 0;
}

void tv_log_free(tv_log *l)
{
    if (!l)
        return;
    free(l->records);
    free(l);
}
