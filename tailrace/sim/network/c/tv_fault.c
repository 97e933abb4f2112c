/* Faults that lose frames: random losses on wires (directions of links),
 * blackholes in switches.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers are SplitMix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", OOPSLA 2014), like sim/network/prng.py.
 */
#include "tv_net.h"

#include <stdlib.h>

uint64_t tv_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void tv_drop_free(tv_drop *d)
{
    Py_XDECREF(d->test);
    free(d);
}

static int test_in_python(PyObject *test, const uint8_t *data, uint32_t len)
{
    PyObject *frame = PyBytes_FromStringAndSize((const char *)data, len);
    if (!frame)
        return -1;
    PyObject *result = PyObject_CallOneArg(test, frame);
    Py_DECREF(frame);
    if (!result)
        return -1;
    int matches = PyObject_IsTrue(result);
    Py_DECREF(result);
    return matches;
}

int tv_drop_takes(const tv_wire *w, tv_drop *d, uint64_t now_ps,
                  const uint8_t *data, uint32_t len, uint32_t virt)
{
    if (now_ps < d->from_ps || now_ps >= d->until_ps)
        return 0;
    if (d->only_data) {
        tv_kinds kinds = {0, 0};
        tv_kinds_add(&kinds, &w->net->formats, data, len, virt);
        if (!kinds.data && !kinds.trimmed)
            return 0;
    }
    int matches = d->test ? test_in_python(d->test, data, len)
                          : tv_match_frame(&w->net->formats, &d->match, data,
                                           len);
    if (matches <= 0)
        return matches;
    return tv_random(&d->random) < d->threshold || d->all;
}

/* ---- blackholes ---- */

static uint32_t slot_of(uint64_t pair, uint32_t mask)
{
    return (uint32_t)(tv_fold(pair ^ TV_MIX_1, TV_MIX_2)) & mask;
}

static int blackhole_has(const tv_blackhole *h, uint64_t pair)
{
    for (uint32_t i = slot_of(pair, h->mask); h->used[i];
         i = (i + 1) & h->mask)
        if (h->pairs[i] == pair)
            return 1;
    return 0;
}

int tv_blackhole_takes(const tv_node *n, const tc_frame *f)
{
    const uint8_t *ip = tv_match_ipv4(&n->net->formats, f->data, f->len);
    if (!ip)
        return 0;
    uint64_t pair = 0; /* source and destination address: bytes 12 to 19 */
    for (int i = 12; i < 20; i++)
        pair = pair << 8 | ip[i];
    for (const tv_blackhole *h = n->blackholes; h; h = h->next)
        if (f->time_ps >= h->from_ps && f->time_ps < h->until_ps &&
            blackhole_has(h, pair))
            return 1;
    return 0;
}

void tv_blackhole_free(tv_blackhole *h)
{
    free(h->pairs);
    free(h->used);
    free(h);
}

int tv_blackhole_add(tv_node *n, const uint64_t *pairs, uint32_t count,
                     uint64_t from_ps, uint64_t until_ps)
{
    uint32_t slots = 8;
    while (slots / 2 < count)
        slots *= 2;
    tv_blackhole *h = calloc(1, sizeof *h);
    if (h) {
        h->pairs = calloc(slots, sizeof *h->pairs);
        h->used = calloc(slots, 1);
    }
    if (!h || !h->pairs || !h->used) {
        if (h)
            tv_blackhole_free(h);
        PyErr_NoMemory();
        return -1;
    }
    h->mask = slots - 1;
    h->from_ps = from_ps;
    h->until_ps = until_ps;
    for (uint32_t k = 0; k < count; k++) {
        if (blackhole_has(h, pairs[k]))
            continue;
        uint32_t i = slot_of(pairs[k], h->mask);
        while (h->used[i])
            i = (i + 1) & h->mask;
        h->used[i] = 1;
        h->pairs[i] = pairs[k];
    }
    h->next = n->blackholes;
    n->blackholes = h;
    return 0;
}
