/* The packet buffer of the switch: admission of packets, bytes by ingress port.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of the buffer is shared by all ports. The rest is reserved: a headroom
 * for each lossless ingress port and priority (RLB §II-A), and a reserve of
 * each port (own_bytes) for packets that are not lossless, so that waiting data
 * do not block control packets:
 *
 *   |<------------------------- bytes ------------------------->|
 *   |  shared: all ports, all priorities   | headrooms  | ports |
 *
 * A lossless packet occupies shared bytes, limited by the threshold of its
 * ingress port and priority and by the free bytes. The other bytes of the
 * packet occupy headroom. The first byte in a headroom pauses the sender; so a
 * full shared part pauses the sender, too. A packet that does not fit is
 * dropped. Departures free the headroom first. A packet that is not lossless
 * occupies the reserve of its ingress port, or shared bytes if it does not fit
 * into the reserve.
 *
 * With a dynamic threshold (Choudhury and Hahne, 1998) a port and priority may
 * use alpha times the free bytes, but at most xoff_bytes.
 *
 * A packet occupies its space from the time when it is queued until it is sent
 * or dropped, also while it is recirculated.
 */
#include "tr_tm.h"

/* Free bytes of the shared part. */
static uint64_t free_shared(const tr_buffer *b)
{
    if (!b->cfg.bytes)
        return UINT64_MAX;
    uint64_t limit =
        b->cfg.bytes > b->reserved ? b->cfg.bytes - b->reserved : 0;
    return limit > b->shared ? limit - b->shared : 0;
}

/* Bytes that one port and priority may occupy in the shared part now. */
static uint64_t threshold(const tr_buffer *b, const tr_pfc_state *st,
                          const tr_pfc_limits *limits)
{
    uint64_t most = limits->xoff_bytes, free_bytes = free_shared(b);
    if (free_bytes == UINT64_MAX)
        return most;
    tr_u128 bytes = b->cfg.alpha_num ? (tr_u128)free_bytes *
                                           b->cfg.alpha_num / b->cfg.alpha_den
                                     : (tr_u128)free_bytes + st->shared;
    return bytes < most ? (uint64_t)bytes : most;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void occupy(tr_buffer *b, uint64_t shared, uint64_t headroom)
{
    b->shared += shared;
    b->headroom += headroom;
    if (b->shared > b->shared_most)
        b->shared_most = b->shared;
    if (b->headroom > b->headroom_most)
        b->headroom_most = b->headroom;
}

/* Charges bytes of a lossless packet. Returns TR_DROP_COUNT if they fit, else
 * the reason for a drop. */
static enum tr_drop charge(tr_switch *s, tr_pfc_state *st,
                           const tr_pfc_limits *limits, uint64_t bytes)
{
    tr_buffer *b = &s->buffer;
    uint64_t most = threshold(b, st, limits);
    uint64_t shared = most > st->shared ? most - st->shared : 0;
    shared = smaller(smaller(shared, free_shared(b)), bytes);
    uint64_t headroom = bytes - shared;
    if (st->headroom + headroom > limits->headroom_bytes) {
        int over_headroom = st->shared + st->headroom + bytes >
                            limits->xoff_bytes + limits->headroom_bytes;
        return over_headroom ? TR_DROP_PFC_HEADROOM : TR_DROP_BUFFER;
    }
    st->shared += shared;
    st->headroom += headroom;
    st->stats.bytes += bytes;
    st->stats.headroom_bytes = st->headroom;
    if (st->stats.bytes > st->stats.most_bytes)
        st->stats.most_bytes = st->stats.bytes;
    if (st->headroom > st->stats.headroom_most_bytes)
        st->stats.headroom_most_bytes = st->headroom;
    occupy(b, shared, headroom);
    return TR_DROP_COUNT;
}

static tr_pfc_state *state_of(const tr_switch *s, const tr_pkt *p)
{
    return &s->ports[p->pfc_port]->pfc_state[p->pfc_class];
}

/* Frees bytes of a lossless packet; returns how many of them were in the
 * headroom. Does not resume the sender. */
static uint64_t release(tr_pfc_state *st, uint64_t bytes)
{
    uint64_t headroom = smaller(st->headroom, bytes);
    st->shared -= bytes - headroom;
    st->headroom -= headroom;
    st->stats.bytes -= bytes;
    st->stats.headroom_bytes = st->headroom;
    return headroom;
}

/* Frees the space of p. Does not resume the sender. */
static void discharge(tr_switch *s, tr_pkt *p)
{
    uint64_t shared = p->charged_bytes, headroom = 0;
    if (p->charge == TR_CHARGE_OWN) {
        s->ports[p->pfc_port]->own_bytes -= shared;
        s->buffer.in_reserves -= shared;
        shared = 0;
    } else if (p->charge == TR_CHARGE_LOSSLESS) {
        headroom = release(state_of(s, p), shared);
        shared -= headroom;
    }
    s->buffer.shared -= shared;
    s->buffer.headroom -= headroom;
    p->charge = TR_CHARGE_NONE;
}

/* Resumes the sender of a port and priority when none of the sender's bytes are
 * in the headroom, and those in the shared part are at least xoff - xon below
 * the threshold; or when the sender has no bytes in the buffer, since then no
 * later departure could resume the sender. */
static void resume(tr_switch *s, uint32_t port, uint32_t priority)
{
    const tr_port *t = s->ports[port];
    const tr_pfc_state *st = &t->pfc_state[priority];
    const tr_pfc_limits *limits = &t->pfc.limits[priority];
    if (!st->paused || st->headroom)
        return;
    uint64_t gap = limits->xoff_bytes - limits->xon_bytes;
    if (st->shared && st->shared + gap > threshold(&s->buffer, st, limits))
        return;
    tr_pfc_notify(s, port, priority, 0);
}

/* Charges a packet that is not lossless. */
static enum tr_drop charge_lossy(tr_switch *s, tr_pkt *p, uint32_t bytes)
{
    tr_buffer *b = &s->buffer;
    tr_port *t = s->ports[p->pfc_port];
    if (!b->cfg.bytes)
        return TR_DROP_COUNT;
    if (t && t->own_bytes + bytes <= b->cfg.port_bytes) {
        t->own_bytes += bytes;
        b->in_reserves += bytes;
        p->charge = TR_CHARGE_OWN;
    } else if (bytes <= free_shared(b)) {
        occupy(b, bytes, 0);
        p->charge = TR_CHARGE_SHARED;
    } else {
        return TR_DROP_BUFFER;
    }
    return TR_DROP_COUNT;
}

/* A lossless packet that is recirculated keeps its space, even above a lowered
 * threshold, as it was admitted before. If it has grown, the additional bytes
 * are charged if they fit. */
static void recharge(tr_switch *s, tr_pkt *p, tr_pfc_state *st,
                     const tr_pfc_limits *limits, uint32_t bytes)
{
    if (bytes > p->charged_bytes) {
        if (charge(s, st, limits, bytes - p->charged_bytes) != TR_DROP_COUNT)
            return;
        if (st->headroom && !st->paused) /* pauses the sender */
            tr_pfc_notify(s, p->pfc_port, p->pfc_class, 1);
    } else if (bytes < p->charged_bytes) {
        uint64_t freed = p->charged_bytes - bytes;
        uint64_t headroom = release(st, freed);
        s->buffer.headroom -= headroom;
        s->buffer.shared -= freed - headroom;
        resume(s, p->pfc_port, p->pfc_class);
    }
    p->charged_bytes = bytes;
}

enum tr_drop tr_buffer_admit(tr_switch *s, tr_pkt *p, uint32_t priority)
{
    const tr_port *t = s->ports[p->pfc_port];
    uint32_t class = tr_pfc_class(t, priority);
    uint32_t bytes = tr_pkt_bytes(p), old_class = TR_MAX_PRIORITIES;
    enum tr_drop refusal = TR_DROP_COUNT;
    if (p->charge == TR_CHARGE_LOSSLESS && p->pfc_class == class &&
        t->pfc.enabled >> class & 1) {
        recharge(s, p, &t->pfc_state[class], &t->pfc.limits[class], bytes);
        return TR_DROP_COUNT;
    }
    if (p->charge) {
        if (p->charge == TR_CHARGE_LOSSLESS)
            old_class = p->pfc_class;
        discharge(s, p);
    }
    if (t && t->pfc.enabled >> class & 1) {
        tr_pfc_state *st = &t->pfc_state[class];
        refusal = charge(s, st, &t->pfc.limits[class], bytes);
        if (refusal == TR_DROP_COUNT) {
            p->charge = TR_CHARGE_LOSSLESS;
            p->pfc_class = (uint8_t)class;
        }
        /* a rejected packet pauses the sender, too, if earlier packets of the
         * sender are in the buffer: their departure resumes the sender */
        if (!st->paused &&
            (st->headroom || (refusal != TR_DROP_COUNT && st->shared)))
            tr_pfc_notify(s, p->pfc_port, class, 1);
        else if (st->paused && refusal != TR_DROP_COUNT)
            tr_pfc_insist(s, p->pfc_port, class);
    } else {
        refusal = charge_lossy(s, p, bytes);
    }
    p->charged_bytes = bytes;
    if (old_class < TR_MAX_PRIORITIES &&
        (old_class != class || refusal != TR_DROP_COUNT))
        resume(s, p->pfc_port, old_class);
    return refusal;
}

void tr_buffer_release(tr_switch *s, tr_pkt *p)
{
    int lossless = p->charge == TR_CHARGE_LOSSLESS;
    discharge(s, p);
    if (lossless)
        resume(s, p->pfc_port, p->pfc_class);
}

void tr_buffer_reserve(tr_switch *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++) {
        const tr_port *t = s->ports[i];
        if (t && s->buffer.cfg.bytes &&
            __builtin_add_overflow(sum, s->buffer.cfg.port_bytes, &sum))
            sum = UINT64_MAX;
        for (uint32_t k = 0; t && k < TR_MAX_PRIORITIES; k++)
            if (t->pfc.enabled >> k & 1 &&
                __builtin_add_overflow(sum, t->pfc.limits[k].headroom_bytes,
                                       &sum))
                sum = UINT64_MAX;
    }
    s->buffer.reserved = sum;
}

void tr_buffer_clear(tr_switch *s)
{
    s->buffer.shared = s->buffer.headroom = s->buffer.in_reserves = 0;
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        if (s->ports[i]) {
            s->ports[i]->own_bytes = 0;
            tr_pfc_forget(s, s->ports[i]);
            if (s->ports[i]->watched)
                tr_port_touch(s, i);
        }
}

/* ---- control calls ---- */

int tr_buffer_set(tr_switch *s, const tr_buffer_config *cfg)
{
    if (cfg->alpha_num && (!cfg->alpha_den || !cfg->bytes))
        return TR_EINVAL;
    tr_switch_lock(s);
    s->buffer.cfg = *cfg;
    tr_buffer_reserve(s);
    tr_switch_unlock(s);
    return TR_OK;
}

static uint64_t charged_in_list(const tr_pkt *p)
{
    uint64_t bytes = 0;
    for (; p; p = p->next)
        if (p->charge)
            bytes += p->charged_bytes;
    return bytes;
}

void tr_buffer_state(tr_switch *s, tr_buffer_state_t *out)
{
    tr_switch_lock(s);
    const tr_buffer *b = &s->buffer;
    *out = (tr_buffer_state_t){
        .bytes = b->cfg.bytes,
        .reserved_bytes = b->reserved,
        .shared_bytes = b->shared,
        .shared_most_bytes = b->shared_most,
        .headroom_bytes = b->headroom,
        .headroom_most_bytes = b->headroom_most,
        .own_bytes = b->in_reserves,
        .held_bytes = charged_in_list(s->resubmitted.head) +
                      charged_in_list(s->recirculated.head),
    };
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        for (unsigned k = 0; s->ports[i] && k < TR_MAX_PRIORITIES; k++)
            out->held_bytes += charged_in_list(s->ports[i]->queue[k].head);
    tr_switch_unlock(s);
}
