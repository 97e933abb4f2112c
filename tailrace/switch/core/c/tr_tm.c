/* Traffic manager: queues, strict priorities and serialisation.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

#include "tr_mem.h"

#include <stdlib.h>

/* Below both limits, bits * 1e12 plus the remainder fits into 64 bits. */
#define NARROW_BYTES (2ULL << 20)
#define NARROW_BPS (1ULL << 60)
/* Cache lines that the smallest packed packet (tr_pack.c) occupies. */
#define PREFETCH_LINES 5u

tr_port *tr_port_get(tr_switch *s, uint32_t port)
{
    if (port >= TR_MAX_PORTS)
        return NULL;
    if (s->ports[port])
        return s->ports[port];
    tr_port *p = tr_mem_new(sizeof *p);
    if (!p)
        return NULL;
    p->heap_at = TR_NO_PLACE;
    p->rate_bps = s->cfg.port_rate_bps;
    p->delay_ps = s->cfg.port_delay_ps;
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++) {
        p->queue[i].max_packets = s->cfg.queue_packets;
        p->queue[i].max_bytes = s->cfg.queue_bytes;
    }
    s->ports[port] = p;
    if (s->pfc.enabled)
        tr_pfc_set(s, p, port, &s->pfc);
    else if (s->buffer.cfg.bytes)
        tr_buffer_reserve(s);
    return p;
}

uint32_t tr_queue_packets(const tr_switch *s, uint32_t port,
                          uint32_t priority)
{
    if (port >= TR_MAX_PORTS || !s->ports[port] ||
        priority >= s->cfg.priorities)
        return 0;
    return s->ports[port]->queue[priority].packets;
}

void tr_port_drop(tr_switch *s, tr_port *t, tr_pkt *p, enum tr_drop reason)
{
    t->stats.dropped++;
    if (reason == TR_DROP_PFC_STORM)
        t->pfc_state[p->priority].stats.storm_dropped++;
    tr_drop(s, p, reason);
}

/* Drops p because the buffer has no space, or because the queue has a PFC storm
 * (has been paused for too long). A lossless packet passes egress first, as at
 * a port that is down: programs count its bytes in ingress and rely on egress
 * to subtract them. A packet that egress recirculates is not dropped; it then
 * uses no space of the buffer. */
static void refuse(tr_switch *s, tr_port *t, tr_pkt *p, enum tr_drop why)
{
    const tr_port *from = s->ports[p->pfc_port];
    int lossless =
        from && from->pfc.enabled >> tr_pfc_class(from, p->priority) & 1;
    /* if egress clones p, a refused clone is dropped without another egress */
    if (lossless && !s->refusing) {
        s->refusing = 1;
        int is_sent = TR_EGRESS(s, p, s->now_ps);
        s->refusing = 0;
        if (!is_sent)
            return;
    }
    tr_port_drop(s, t, p, why);
}

void tr_enqueue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority)
{
    tr_port *t = tr_port_get(s, port);
    if (!t) {
        tr_drop(s, p, port < TR_MAX_PORTS ? TR_DROP_NO_BUFFER : TR_DROP_PORT);
        return;
    }
    p->egress_port = port;
    if (priority >= s->cfg.priorities) {
        tr_logf(s, 3, "priority %u has no queue, packet dropped", priority);
        tr_port_drop(s, t, p, TR_DROP_PRIORITY);
        return;
    }
    if (t->dropping >> priority & 1) {
        if (p->charge)
            tr_buffer_release(s, p);
        p->priority = (uint8_t)priority;
        refuse(s, t, p, TR_DROP_PFC_STORM);
        return;
    }
    /* A port that is down drops packets only when it sends them, as in
     * simple_switch: after egress, where programs subtract the bytes of
     * packets that they count. */
    tr_queue *q = &t->queue[priority];
    uint64_t bytes = tr_pkt_bytes(p);
    if (q->max_packets && q->packets >= q->max_packets) {
        tr_port_drop(s, t, p, TR_DROP_QUEUE_PACKETS);
        return;
    }
    if (q->max_bytes && q->bytes + bytes > q->max_bytes) {
        tr_port_drop(s, t, p, TR_DROP_QUEUE_BYTES);
        return;
    }
    enum tr_drop refusal = tr_buffer_admit(s, p, priority);
    p->priority = (uint8_t)priority;
    if (refusal != TR_DROP_COUNT) {
        refuse(s, t, p, refusal);
        return;
    }
    /* a packet that leaves at once is not packed: its buffer is in the cache */
    if (q->packets || t->busy_until_ps > s->now_ps)
        p = tr_pkt_pack(s, p);
    tr_list_add(&q->head, &q->tail, p);
    q->packets++;
    q->bytes += bytes;
    t->waiting |= (uint8_t)(1u << priority);
    tr_port_touch(s, port);
}

/* The time at which pause and rate of q allow its first packet to leave. */
static uint64_t queue_ready_ps(const tr_queue *q)
{
    return q->next_ps > q->pause_until_ps ? q->next_ps : q->pause_until_ps;
}

uint64_t tr_port_next(const tr_port *t)
{
    uint64_t next = TR_NEVER;
    if (t->blocked)
        return next;
    for (unsigned bits = t->waiting; bits; bits &= bits - 1) {
        uint64_t ready_ps = queue_ready_ps(&t->queue[__builtin_ctz(bits)]);
        if (ready_ps < next)
            next = ready_ps;
    }
    return next < t->busy_until_ps ? t->busy_until_ps : next;
}

static tr_pkt *queue_take(tr_port *t, uint32_t priority)
{
    tr_queue *q = &t->queue[priority];
    tr_pkt *p = tr_list_take(&q->head, &q->tail);
    if (!q->head)
        t->waiting &= (uint8_t)~(1u << priority);
    q->packets--;
    q->bytes -= tr_pkt_bytes(p);
    /* the next packet has probably left the cache while it waited */
    if (q->head)
        for (unsigned i = 0; i < PREFETCH_LINES; i++)
            __builtin_prefetch((const uint8_t *)q->head + i * TR_LINE);
    return p;
}

tr_pkt *tr_port_take_to_drop(tr_switch *s, tr_port *t, uint32_t priority)
{
    while (t->queue[priority].head) {
        tr_pkt *p = queue_take(t, priority);
        tr_pkt *unpacked =
            p->size_class < TR_SIZE_CLASSES ? p : tr_pkt_unpack(s, p);
        if (unpacked)
            return unpacked;
        tr_port_drop(s, t, p, TR_DROP_PFC_STORM);
    }
    return NULL;
}

/* Dequeues the packet that may leave now, packed or not; NULL: none. */
static tr_pkt *queue_next(tr_port *t, uint64_t now_ps)
{
    if (t->blocked || t->busy_until_ps > now_ps)
        return NULL;
    for (unsigned bits = t->waiting; bits;) {
        unsigned priority = 31u - (unsigned)__builtin_clz(bits);
        tr_queue *q = &t->queue[priority];
        bits &= ~(1u << priority);
        if (queue_ready_ps(q) > now_ps)
            continue;
        tr_pkt *p = queue_take(t, priority);
        if (q->pps)
            q->next_ps = now_ps + TR_PS_PER_S / q->pps;
        return p;
    }
    return NULL;
}

tr_pkt *tr_port_dequeue(tr_switch *s, tr_port *t, uint64_t now_ps)
{
    tr_pkt *p;
    while ((p = queue_next(t, now_ps)) && p->size_class >= TR_SIZE_CLASSES) {
        tr_pkt *unpacked = tr_pkt_unpack(s, p);
        if (unpacked)
            return unpacked;
        tr_port_drop(s, t, p, TR_DROP_NO_BUFFER);
    }
    return p;
}

/* Occupies the port for `bytes`; returns the time at which the last bit leaves.
 * While the port is busy, the remainder of the division is added to the next
 * dividend, so that rounding errors do not accumulate. */
static uint64_t serialise(tr_port *t, uint64_t bytes, uint64_t now_ps)
{
    uint64_t start = t->busy_until_ps;
    if (start < now_ps) {
        start = now_ps;
        t->frac = 0;
    }
    if (!t->rate_bps)
        return start;
    if (bytes < NARROW_BYTES && t->rate_bps < NARROW_BPS) {
        uint64_t scaled = bytes * 8 * TR_PS_PER_S + t->frac;
        start += scaled / t->rate_bps;
        t->frac = scaled % t->rate_bps;
    } else {
        tr_u128 scaled = (tr_u128)bytes * 8 * TR_PS_PER_S + t->frac;
        start += (uint64_t)(scaled / t->rate_bps);
        t->frac = (uint64_t)(scaled % t->rate_bps);
    }
    t->busy_until_ps = start;
    return start;
}

void tr_port_send(tr_switch *s, tr_pkt *p, uint64_t now_ps)
{
    tr_port *t = tr_port_get(s, p->egress_port);
    if (!t) {
        tr_drop(s, p, TR_DROP_NO_BUFFER);
        return;
    }
    if (t->down) {
        tr_port_drop(s, t, p, TR_DROP_PORT_DOWN);
        return;
    }
    uint64_t bytes = (uint64_t)p->len + p->virt;
    TR_TRACE_FRAME(s, p, TR_RECORD_SENT, p->egress_port);
    t->stats.tx_packets++;
    t->stats.tx_bytes += bytes;
    p->ready_ps = serialise(t, bytes, now_ps) + t->delay_ps;
    tr_list_add(&s->out_head, &s->out_tail, p);
    s->out_bytes += p->size;
}

void tr_port_flush(tr_switch *s, tr_port *t)
{
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++) {
        while (t->queue[i].head) {
            tr_pkt *p = queue_take(t, i);
            tr_drop(s, p, TR_DROP_RELOAD);
        }
    }
}

int tr_pop(tr_switch *s, tr_out *out)
{
    if (!s->out_head)
        return 0;
    tr_pkt *p = tr_list_take(&s->out_head, &s->out_tail);
    s->out_bytes -= p->size;
    out->port = p->egress_port;
    out->len = p->len;
    out->virt = p->virt;
    out->time_ps = p->ready_ps;
    out->origin = p->origin;
    out->data = p->buf + p->off;
    out->slot = p;
    s->account.tx_frames++;
    s->account.tx_virt += p->virt;
    return 1;
}

void tr_release(tr_switch *s, void *slot)
{
    tr_pkt *p = slot;
    /* the program may have been replaced while the caller had the frame */
    if (p->generation == s->generation)
        tr_pkt_free(s, p);
    else
        tr_pkt_memory_free(s, p);
}
