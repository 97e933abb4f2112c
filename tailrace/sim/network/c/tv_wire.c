/* Wires (directions of links): frames under way, losses by faults, counts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_net.h"

#include <stdlib.h>

#define RING_LEAST 1024u
/* flight.cuts of a frame that is lost because the wire was down; a wire's count
 * of cuts never reaches this value. */
#define SENT_WHILE_DOWN UINT32_MAX

/* The header of a frame in the ring; its bytes follow. */
typedef struct flight {
    uint64_t arrival_ps;
    uint32_t len, virt;
    uint32_t cuts;            /* count of the wire's cuts at the sending */
    uint32_t size;            /* of header and bytes, in the ring */
} flight;

uint64_t tv_serialise_ps(uint64_t bytes, uint64_t rate_bps)
{
    if (!rate_bps)
        return 0;
    if (bytes <= TC_MOST_BYTES)
        return bytes * (8 * TV_PS_PER_S) / rate_bps;
    return (uint64_t)((unsigned __int128)bytes * (8 * TV_PS_PER_S) / rate_bps);
}

uint64_t tv_wire_next(const tv_wire *w)
{
    return *w->next_ps;
}

uint64_t tv_wire_rate_bps(const tv_wire *w)
{
    return w->rate_bps;
}

uint64_t tv_wire_delay_ps(const tv_wire *w)
{
    return w->delay_ps;
}

tv_wire *tv_wire_new(tv_net *net)
{
    tv_wire *w = calloc(1, sizeof *w);
    if (!w) {
        PyErr_NoMemory();
        return NULL;
    }
    w->net = net;
    w->up = 1;
    w->mix.a = TV_MIX_1;
    w->mix.b = TV_MIX_2;
    return w;
}

void tv_wire_free(tv_wire *w)
{
    if (!w)
        return;
    while (w->drops) {
        tv_drop *gone = w->drops;
        w->drops = gone->next;
        tv_drop_free(gone);
    }
    tv_captured_free(w->captures);
    Py_CLEAR(w->tap);
    Py_CLEAR(w->tap_frame);
    free(w->ring);
    free(w);
}

/* ---- the ring ---- */

/* Enlarges the ring by at least `size` bytes, and makes its frames contiguous:
 * those up to `wrap`, then those at the start of the old ring. */
static int ring_grow(tv_wire *w, uint32_t size)
{
    uint64_t cap = w->cap ? w->cap : RING_LEAST / 2;
    uint32_t upper = w->wrapped ? w->wrap - w->head : w->tail - w->head;
    uint32_t lower = w->wrapped ? w->tail : 0;
    do
        cap *= 2;
    while (cap < (uint64_t)upper + lower + size);
    uint8_t *ring = cap > INT32_MAX ? NULL : malloc(cap);
    if (!ring) {
        PyErr_NoMemory();
        return -1;
    }
    if (upper)
        memcpy(ring, w->ring + w->head, upper);
    if (lower)
        memcpy(ring + upper, w->ring, lower);
    free(w->ring);
    w->ring = ring;
    w->cap = (uint32_t)cap;
    w->head = 0;
    w->tail = upper + lower;
    w->wrapped = 0;
    return 0;
}

/* Allocates size bytes after the last frame; NULL with an exception. */
static uint8_t *ring_push(tv_wire *w, uint32_t size)
{
    if (!w->count) {
        w->head = w->tail = 0;
        w->wrapped = 0;
    }
    if (!w->wrapped && w->cap - w->tail < size && w->head >= size) {
        w->wrap = w->tail;
        w->tail = 0;
        w->wrapped = 1;
    }
    if ((w->wrapped ? w->head : w->cap) - w->tail < size &&
        ring_grow(w, size) < 0)
        return NULL;
    uint8_t *place = w->ring + w->tail;
    w->tail += size;
    w->count++;
    return place;
}

static void ring_pop(tv_wire *w, uint32_t size)
{
    w->head += size;
    w->count--;
    if (w->wrapped && w->head == w->wrap) {
        w->head = 0;
        w->wrapped = 0;
    }
    *w->next_ps = w->count ? ((const flight *)(w->ring + w->head))->arrival_ps
                           : TC_NEVER;
    tv_wire_prefetch(w);
}

void tv_wire_prefetch(const tv_wire *w)
{
    __builtin_prefetch(w->ring + w->head + TV_CACHE_LINE);
    __builtin_prefetch(w->ring + w->head + 2 * TV_CACHE_LINE);
}

/* ---- sending ---- */

/* Appends a frame; returns where its bytes are to be stored, or NULL with an
 * exception. */
static uint8_t *append(tv_wire *w, uint64_t arrival_ps, uint32_t len,
                       uint32_t virt, uint32_t cuts)
{
    uint32_t size = ((uint32_t)sizeof(flight) + len + 7u) & ~7u;
    flight *f = (flight *)ring_push(w, size);
    if (!f)
        return NULL;
    f->arrival_ps = arrival_ps;
    f->len = len;
    f->virt = virt;
    f->cuts = cuts;
    f->size = size;
    w->net->under_way++;
    if (w->count == 1) {
        *w->next_ps = arrival_ps;
        tv_schedule_lower(&w->net->schedule, w->target, arrival_ps);
    }
    return (uint8_t *)(f + 1);
}

int tv_wire_join(tv_wire *w, const tc_frame *f, uint32_t cuts)
{
    uint8_t *bytes = append(w, f->time_ps, f->len, f->virt, cuts);
    if (!bytes)
        return -1;
    memcpy(bytes, f->data, f->len);
    return 0;
}

int tv_wire_send(tv_wire *w, uint64_t now_ps, uint64_t arrival_ps,
                 const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                 uint32_t tail_len, uint32_t virt)
{
    tv_net *net = w->net;
    uint32_t len = head_len + tail_len;
    /* a shorter frame takes as long as one of TV_LEAST_BYTES */
    if ((uint64_t)len + virt < TV_LEAST_BYTES)
        arrival_ps += tv_serialise_ps(TV_LEAST_BYTES, w->rate_bps) -
                      tv_serialise_ps(len + virt, w->rate_bps);
    if (arrival_ps < w->last_ps)
        arrival_ps = w->last_ps;
    if (__builtin_expect(w->absent, 0)) { /* to another rank (process) */
        w->last_ps = arrival_ps;
        w->sent.frames++;
        w->sent.virt += virt;
        return tv_ranks_send(w, arrival_ps, w->up ? w->cuts : SENT_WHILE_DOWN,
                             head, head_len, tail, tail_len, virt);
    }
    /* only frames to hosts (downward) may arrive within the window */
    if (__builtin_expect(arrival_ps < net->least_arrival_ps, 0) &&
        !(w->downward && arrival_ps >= net->now_ps))
        return tv_net_error("wire %u: a frame sent at %llu ps arrives at "
                            "%llu ps, within its window", w->index,
                            (unsigned long long)now_ps,
                            (unsigned long long)arrival_ps);
    uint8_t *bytes = append(w, arrival_ps, len, virt,
                            w->up ? w->cuts : SENT_WHILE_DOWN);
    if (!bytes)
        return -1;
    memcpy(bytes, head, head_len);
    if (tail_len)
        memcpy(bytes + head_len, tail, tail_len);
    w->last_ps = arrival_ps;
    w->sent.frames++;
    w->sent.virt += virt;
    if (__builtin_expect(w->inspects_sends, 0)) {
        tc_frame sent = {now_ps, len, virt, bytes};
        if (w->logged && tv_log_add(w, TV_SENT, &sent) < 0)
            return -1;
        if (w->tap)
            return tv_tap_call(w, TV_SENT, &sent);
    }
    return 0;
}

/* ---- receiving ---- */

/* Why the frame is lost: tv_loss + 1; 0: it is not lost; -1: exception. */
static int lost(const tv_wire *w, const flight *f, const uint8_t *bytes)
{
    /* the link was down at the sending, or has gone down since then */
    if (f->cuts != w->cuts)
        return 1 + TV_LOSS_CUT;
    int taken = 0;
    /* each drop draws a number for each frame, so that one fault does not
     * change the random numbers of another */
    for (tv_drop *d = w->drops; d; d = d->next) {
        int takes = tv_drop_takes(w, d, f->arrival_ps, bytes, f->len,
                                  f->virt);
        if (takes < 0)
            return -1;
        taken |= takes;
    }
    return taken ? 1 + TV_LOSS_DROP : 0;
}

static int take_lost(tv_wire *w, enum tv_loss kind, const tc_frame *f)
{
    w->lost[kind].frames++;
    w->lost[kind].virt += f->virt;
    tv_kinds_add(&w->lost_data, &w->net->formats, f->data, f->len, f->virt);
    if (w->captures && tv_capture_add(w, 1, f) < 0)
        return -1;
    if (w->net->recorder)
        tv_record_add(w->net, TV_FAILED, w->index, f);
    if (w->logged && tv_log_add(w, TV_LOST + (uint32_t)kind, f) < 0)
        return -1;
    if (w->tap && tv_tap_call(w, TV_LOST, f) < 0)
        return -1;
    return 0;
}

int tv_wire_take(tv_wire *w, tc_frame *out)
{
    const flight *f = (const flight *)(w->ring + w->head);
    uint64_t time_ps = f->arrival_ps;
    uint32_t len = f->len, virt = f->virt;
    out->time_ps = time_ps;
    out->len = len;
    out->virt = virt;
    out->data = (const uint8_t *)(f + 1);
    ring_pop(w, f->size);
    w->net->under_way--;
    if (__builtin_expect(w->inspects_arrivals, 0)) {
        int kind = lost(w, f, out->data);
        if (kind)
            return kind < 0 ? -1 : take_lost(w, (enum tv_loss)(kind - 1), out);
    }
    w->received.frames++;
    w->received.virt += virt;
    tv_mix_frame(&w->mix, time_ps, len, virt, out->data); /* trace hash */
    if (__builtin_expect(w->inspects_arrivals, 0)) {
        if (w->captures && tv_capture_add(w, 0, out) < 0)
            return -1;
        if (w->net->recorder)
            tv_record_add(w->net, TV_ARRIVED, w->index, out);
        if (w->logged && tv_log_add(w, TV_RECEIVED, out) < 0)
            return -1;
        if (w->tap) {
            if (tv_tap_call(w, TV_RECEIVED, out) < 0)
                return -1;
            /* the tap may have sent a frame on this wire and moved the ring */
            out->data = (const uint8_t *)PyBytes_AS_STRING(w->tap_frame);
        }
    }
    return 1;
}

/* ---- links that go down ---- */

void tv_wire_down(tv_wire *w)
{
    w->up = 0;
    w->cuts++;
    w->inspects_arrivals = 1;
}

void tv_wire_flight(const tv_wire *w, tv_count *under_way,
                    tv_kinds *of_data)
{
    uint32_t at = w->head;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->wrapped && at == w->wrap)
            at = 0;
        const flight *f = (const flight *)(w->ring + at);
        under_way->frames++;
        under_way->virt += f->virt;
        tv_kinds_add(of_data, &w->net->formats, (const uint8_t *)(f + 1),
                     f->len, f->virt);
        at += f->size;
    }
}
