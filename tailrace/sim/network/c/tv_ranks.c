/* Ranks: a network divided into parts, each run by a separate process.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All ranks give each node and wire the same index; a rank has the switches,
 * hosts and ends of wires of its part. Ranks synchronise conservatively: before
 * each period of virtual time they meet, that is, they exchange the frames that
 * they have sent to each other and the times of their next events, and so take
 * the same decisions. A period is as long as the least look-ahead of the wires
 * between ranks: a frame sent to another rank within a period arrives after it.
 * Within a period each rank runs its windows independently (tv_net.h).
 *
 * The order of arrivals at a node does not depend on real time: frames are
 * handled by arrival time, then by wire index, and each wire is FIFO.
 */
#include "tv_net.h"

#include <stdlib.h>

typedef struct message {
    uint8_t *data;            /* begins with a head */
    size_t used, cap;
} message;

/* The header of each message. */
typedef struct head {
    tv_state state;
    uint64_t frames, captured; /* sizes in bytes of the parts that follow */
} head;

/* The header of a frame; its bytes follow, padded to a multiple of 8. */
typedef struct rank_frame {
    uint64_t arrival_ps;
    uint32_t wire, cuts, len, virt;
} rank_frame;

struct tv_ranks {
    PyObject *transport;
    uint32_t rank, count;
    uint64_t period_ps;       /* end of the current period */
    uint64_t sent_first_ps;   /* earliest arrival of the frames in `to` */
    tv_rank_counts counts;
    message to[];             /* the message to each rank */
};

static int reserve(message *m, size_t bytes)
{
    if (m->used + bytes <= m->cap)
        return 0;
    size_t cap = m->cap ? m->cap * 2 : 4096;
    while (cap < m->used + bytes)
        cap *= 2;
    if (tv_resize(&m->data, cap) < 0)
        return -1;
    m->cap = cap;
    return 0;
}

static void clear_messages(tv_ranks *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        r->to[i].used = sizeof(head);
    r->sent_first_ps = TC_NEVER;
}

tv_ranks *tv_ranks_new(PyObject *transport, uint32_t rank, uint32_t count)
{
    tv_ranks *r = calloc(1, sizeof *r + count * sizeof *r->to);
    if (!r) {
        PyErr_NoMemory();
        return NULL;
    }
    r->transport = Py_NewRef(transport);
    r->rank = rank;
    r->count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (reserve(&r->to[i], sizeof(head)) < 0) {
            tv_ranks_free(r);
            return NULL;
        }
    }
    clear_messages(r);
    return r;
}

void tv_ranks_free(tv_ranks *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->count; i++)
        free(r->to[i].data);
    Py_DECREF(r->transport);
    free(r);
}

uint32_t tv_ranks_own(const tv_ranks *r)
{
    return r ? r->rank : 0;
}

int tv_ranks_traverse(const tv_ranks *r, visitproc visit, void *arg)
{
    Py_VISIT(r->transport);
    return 0;
}

tv_rank_counts tv_ranks_counts(const tv_ranks *r)
{
    return r ? r->counts : (tv_rank_counts){0};
}

void tv_ranks_period(tv_ranks *r, uint64_t period_ps)
{
    r->period_ps = period_ps;
}

int tv_ranks_send(tv_wire *w, uint64_t arrival_ps, uint32_t cuts,
                  const uint8_t *first, uint32_t first_len,
                  const uint8_t *tail, uint32_t tail_len, uint32_t virt)
{
    tv_net *net = w->net;
    tv_ranks *r = net->ranks;
    message *m = &r->to[net->nodes[w->target]->rank];
    rank_frame c = {arrival_ps, w->index, cuts, first_len + tail_len, virt};
    size_t size = sizeof c + ((c.len + 7u) & ~(size_t)7);
    if (net->running && arrival_ps < r->period_ps)
        return tv_net_error("wire %u: a frame to another rank arrives at "
                            "%llu ps, before the period's end", w->index,
                            (unsigned long long)arrival_ps);
    if (reserve(m, size) < 0)
        return -1;
    uint8_t *p = m->data + m->used;
    memcpy(p, &c, sizeof c);
    memcpy(p + sizeof c, first, first_len);
    if (tail_len)
        memcpy(p + sizeof c + first_len, tail, tail_len);
    m->used += size;
    r->counts.frames++;
    if (arrival_ps < r->sent_first_ps)
        r->sent_first_ps = arrival_ps;
    return 0;
}

/* ---- meeting ---- */

/* The messages to all ranks, as a list of bytes. */
static PyObject *make_messages(tv_net *net, const tv_state *s)
{
    tv_ranks *r = net->ranks;
    PyObject *list = PyList_New(r->count);
    for (uint32_t i = 0; list && i < r->count; i++) {
        message *m = &r->to[i];
        head h = {*s, m->used - sizeof(head), 0};
        if (i == 0 && r->rank != 0)
            h.captured = tv_capture_size(net);
        memcpy(m->data, &h, sizeof h);
        PyObject *bytes = PyBytes_FromStringAndSize(
            NULL, (Py_ssize_t)(m->used + h.captured));
        if (!bytes) {
            Py_CLEAR(list);
            break;
        }
        uint8_t *p = (uint8_t *)PyBytes_AS_STRING(bytes);
        memcpy(p, m->data, m->used);
        if (h.captured)
            tv_capture_take(net, p + m->used);
        PyList_SET_ITEM(list, i, bytes);
        if (i != r->rank)
            r->counts.bytes += m->used + h.captured;
    }
    r->counts.meetings++;
    return list;
}

static int bad_message(uint32_t from)
{
    return tv_net_error("rank %u has sent a malformed message", from);
}

static int join_frames(tv_net *net, uint32_t from, const uint8_t *p,
                       size_t left)
{
    while (left) {
        rank_frame c;
        if (left < sizeof c)
            return bad_message(from);
        memcpy(&c, p, sizeof c);
        size_t size = sizeof c + ((c.len + 7u) & ~(size_t)7);
        if (left < size || c.wire >= net->n_wires ||
            net->wires[c.wire]->absent)
            return bad_message(from);
        tc_frame f = {c.arrival_ps, c.len, c.virt, p + sizeof c};
        if (tv_wire_join(net->wires[c.wire], &f, c.cuts) < 0)
            return -1;
        p += size;
        left -= size;
    }
    return 0;
}

/* Handles the message of rank `from`; adds its state to *all. */
static int join(tv_net *net, uint32_t from, PyObject *item, tv_state *all)
{
    head h;
    if (!PyBytes_Check(item) || (size_t)PyBytes_GET_SIZE(item) < sizeof h)
        return bad_message(from);
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(item);
    memcpy(&h, p, sizeof h);
    p += sizeof h;
    if (sizeof h + h.frames + h.captured != (size_t)PyBytes_GET_SIZE(item))
        return bad_message(from);
    if (h.state.first_ps < all->first_ps)
        all->first_ps = h.state.first_ps;
    if (h.state.ahead_ps < all->ahead_ps)
        all->ahead_ps = h.state.ahead_ps;
    if (h.state.last_ps > all->last_ps)
        all->last_ps = h.state.last_ps;
    all->busy |= h.state.busy;
    if (from == 0) /* only rank 0 counts events in order to stop */
        all->mark = h.state.mark;
    if (join_frames(net, from, p, h.frames) < 0)
        return -1;
    return h.captured ? tv_capture_join(net, p + h.frames, h.captured) : 0;
}

int tv_ranks_meet(tv_net *net, tv_state *s)
{
    tv_ranks *r = net->ranks;
    if (r->sent_first_ps < s->first_ps)
        s->first_ps = r->sent_first_ps;
    /* frames stored for other ranks are under way, too */
    s->busy |= r->sent_first_ps != TC_NEVER;
    PyObject *out = make_messages(net, s);
    PyObject *in = out ? PyObject_CallMethod(r->transport, "exchange", "O",
                                             out)
                       : NULL;
    Py_XDECREF(out);
    clear_messages(r);
    if (!in)
        return -1;
    int rc = 0;
    if (!PyList_Check(in) || PyList_GET_SIZE(in) != (Py_ssize_t)r->count)
        rc = tv_net_error("expected one message from each rank");
    for (uint32_t i = 0; rc == 0 && i < r->count; i++)
        if (i != r->rank)
            rc = join(net, i, PyList_GET_ITEM(in, i), s);
    Py_DECREF(in);
    return rc;
}
