/* PFC of the traffic manager: sends pause frames and obeys received frames.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

#include <stdlib.h>

#define ETHER_BYTES 14u
#define MAC_CONTROL 0x8808u
#define OP_PFC 0x0101u
#define PFC_CLASSES 8u
/* Bytes up to the last pause time; the rest of a frame is padding. */
#define PFC_BYTES (ETHER_BYTES + 4u + 2u * PFC_CLASSES)
#define PFC_FRAME_BYTES 60u
/* Minimum interval of repeated pause frames, even if pauses are shorter. */
#define MIN_REFRESH_PS 1000000u
/* A sender that still sends this long after a pause frame has not received the
 * frame. */
#define OBEYED_PS 10000000u
/* Rate from which the duration of a pause quantum (512 bit times) is computed
 * for a port without a rate. Linux reports this rate for a veth. */
#define UNLIMITED_BPS 10000000000u

static const uint8_t pfc_destination[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/* Duration of `quanta` pause quanta on this port in ps. */
static uint64_t pause_ps(const tr_port *t, uint32_t quanta)
{
    uint64_t rate_bps = t->rate_bps ? t->rate_bps : UNLIMITED_BPS;
    tr_u128 ps = (tr_u128)quanta * 512 * TR_PS_PER_S / rate_bps;
    return ps < TR_NEVER ? (uint64_t)ps : TR_NEVER;
}

static tr_pfc_state *new_states(void)
{
    tr_pfc_state *st = calloc(PFC_CLASSES, sizeof *st);
    for (uint32_t i = 0; st && i < PFC_CLASSES; i++)
        st[i].refresh_ps = TR_NEVER;
    return st;
}

/* Time for which the queue's last pause has lasted so far, in ps. */
static uint64_t pause_elapsed(const tr_queue *q, const tr_pfc_state *st,
                              uint64_t now_ps)
{
    uint64_t end =
        q->pause_until_ps < now_ps ? q->pause_until_ps : now_ps;
    return end > st->paused_from_ps ? end - st->paused_from_ps : 0;
}

/* Sends a pause frame; quanta 0: a resume frame. Returns 0 if there is no
 * memory. */
static int send_pause(tr_switch *s, uint32_t port, uint32_t priority,
                      uint16_t quanta)
{
    tr_port *t = s->ports[port];
    tr_pkt *p = tr_pkt_new(s, PFC_FRAME_BYTES, 1);
    if (!p)
        return 0;
    uint8_t *f = p->buf + p->off;
    memset(f, 0, PFC_FRAME_BYTES);
    memcpy(f, pfc_destination, 6);
    f[6] = 0x02; /* locally administered source: the port's number */
    tr_store_be(f + 8, 4, port);
    tr_store_be(f + 12, 2, MAC_CONTROL);
    tr_store_be(f + 14, 2, OP_PFC);
    tr_store_be(f + 16, 2, 1u << priority);
    tr_store_be(f + 18 + 2 * priority, 2, quanta);
    p->len = PFC_FRAME_BYTES;
    p->egress_port = port;
    t->stats.pfc_sent++;
    s->account.made_frames++;
    tr_port_send(s, p, s->now_ps);
    tr_pfc_state *st = &t->pfc_state[priority];
    uint64_t duration_ps = pause_ps(t, quanta);
    uint64_t sent_ps =
        t->busy_until_ps > s->now_ps ? t->busy_until_ps : s->now_ps;
    st->refresh_ps = quanta == 0 || duration_ps == TR_NEVER
                         ? TR_NEVER
                         : sent_ps + (duration_ps / 2 > MIN_REFRESH_PS
                                          ? duration_ps / 2
                                          : MIN_REFRESH_PS);
    st->insist_ps = sent_ps + OBEYED_PS;
    if (quanta)
        st->stats.xoff_sent++;
    else
        st->stats.xon_sent++;
    tr_port_touch(s, port);
    return 1;
}

/* Sets the state of a sender that is no longer paused. */
static void forget_pause(const tr_switch *s, tr_pfc_state *st)
{
    if (!st->paused)
        return;
    st->paused = 0;
    st->refresh_ps = TR_NEVER;
    st->stats.pausing_ps += s->now_ps - st->pausing_from_ps;
}

void tr_pfc_notify(tr_switch *s, uint32_t port, uint32_t priority, int stop)
{
    tr_pfc_state *st = &s->ports[port]->pfc_state[priority];
    uint16_t quanta = stop ? s->ports[port]->pfc.quanta : 0;
    if (!send_pause(s, port, priority, quanta))
        return;
    if (!quanta) {
        forget_pause(s, st);
    } else if (!st->paused) {
        st->paused = 1;
        st->pausing_from_ps = s->now_ps;
    }
}

void tr_pfc_insist(tr_switch *s, uint32_t port, uint32_t priority)
{
    tr_port *t = s->ports[port];
    if (!t->down && s->now_ps >= t->pfc_state[priority].insist_ps)
        send_pause(s, port, priority, t->pfc.quanta);
}

void tr_pfc_pause_until(tr_port *t, uint32_t priority, uint64_t until_ps,
                        uint64_t now_ps)
{
    tr_queue *q = &t->queue[priority];
    tr_pfc_state *st = &t->pfc_state[priority];
    if (until_ps < now_ps)
        until_ps = now_ps;
    tr_watch_settle(t, priority, now_ps); /* the watchdog's leaky bucket */
    /* t->stats counts a pause in full when it begins, so the part of the old
     * pause that does not happen is subtracted */
    if (q->pause_until_ps != TR_NEVER && q->pause_until_ps > now_ps)
        t->stats.paused_ps -= q->pause_until_ps - now_ps;
    if (until_ps != TR_NEVER)
        t->stats.paused_ps += until_ps - now_ps;
    st->stats.paused_ps += pause_elapsed(q, st, now_ps);
    st->stats.times_paused += until_ps > now_ps && q->pause_until_ps <= now_ps;
    st->paused_from_ps = now_ps;
    q->pause_until_ps = until_ps;
}

/* Obeys a pause frame: pauses the queue for duration_ps; 0 resumes it. */
static void pause_queue(tr_port *t, uint32_t priority, uint64_t duration_ps,
                        uint64_t now_ps)
{
    tr_pfc_state *st = &t->pfc_state[priority];
    uint64_t until_ps =
        duration_ps > TR_NEVER - now_ps ? TR_NEVER : now_ps + duration_ps;
    /* a resume frame does not prolong a storm */
    if (duration_ps || until_ps < st->asked_until_ps)
        st->asked_until_ps = until_ps;
    if (st->stats.storming)
        return;
    tr_pfc_pause_until(t, priority, until_ps, now_ps);
    if (t->pfc.watchdog.detect_ps)
        t->watched |= (uint8_t)(1u << priority);
}

/* Ends the pause of a queue, and its storm. */
static void release_queue(tr_switch *s, uint32_t port, uint32_t priority)
{
    tr_port *t = s->ports[port];
    if (t->pfc_state[priority].asked_until_ps > s->now_ps)
        pause_queue(t, priority, 0, s->now_ps);
    tr_watch_end(s, port, priority, s->now_ps);
}

void tr_pfc_set(tr_switch *s, tr_port *t, uint32_t port,
                const tr_pfc_config *cfg)
{
    if (!t->pfc_state && !(t->pfc_state = new_states()))
        return;
    /* pauses end for priorities that are no longer lossless */
    for (uint32_t i = 0; i < PFC_CLASSES; i++) {
        tr_watch_settle(t, i, s->now_ps);
        if (cfg->enabled >> i & 1) {
            if (!cfg->watchdog.detect_ps)
                tr_watch_end(s, port, i, s->now_ps);
            else if (t->pfc_state[i].asked_until_ps > s->now_ps)
                t->watched |= (uint8_t)(1u << i);
            continue;
        }
        if (t->pfc_state[i].paused)
            tr_pfc_notify(s, port, i, 0);
        release_queue(s, port, i);
    }
    t->pfc = *cfg;
    tr_watch_action(t);
    tr_port_touch(s, port);
    tr_buffer_reserve(s);
}

void tr_pfc_forget(tr_switch *s, tr_port *t)
{
    for (uint32_t i = 0; t->pfc_state && i < PFC_CLASSES; i++) {
        tr_pfc_state *st = &t->pfc_state[i];
        forget_pause(s, st);
        st->shared = st->headroom = 0;
        st->stats.bytes = st->stats.headroom_bytes = 0;
    }
}

void tr_pfc_link(tr_switch *s, uint32_t port, int up)
{
    tr_port *t = s->ports[port];
    for (uint32_t i = 0; t->pfc_state && i < PFC_CLASSES; i++) {
        if (!up)
            release_queue(s, port, i);
        if (up && t->pfc_state[i].paused)
            t->pfc_state[i].refresh_ps = s->now_ps;
    }
}

uint64_t tr_pfc_refresh(tr_switch *s, uint32_t port, uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    uint64_t next = TR_NEVER;
    for (uint32_t i = 0; !t->down && i < PFC_CLASSES; i++) {
        tr_pfc_state *st = &t->pfc_state[i];
        if (st->paused && st->refresh_ps <= now_ps)
            send_pause(s, port, i, t->pfc.quanta);
        if (st->paused && st->refresh_ps < next)
            next = st->refresh_ps;
    }
    return next;
}

enum tr_drop tr_pfc_obey(tr_switch *s, uint32_t port, const uint8_t *data,
                         uint32_t len, uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    if (len < ETHER_BYTES || tr_load_be(data + 12, 2) != MAC_CONTROL)
        return TR_DROP_COUNT;
    if (len < PFC_BYTES || tr_load_be(data + 14, 2) != OP_PFC ||
        memcmp(data, pfc_destination, 6)) {
        t->stats.pfc_ignored++;
        return TR_DROP_MAC_CONTROL;
    }
    uint64_t classes = tr_load_be(data + 16, 2);
    t->stats.pfc_received++;
    for (uint32_t i = 0; i < PFC_CLASSES; i++) {
        if (!(classes & t->pfc.enabled & 1u << i))
            continue;
        uint32_t quanta = (uint32_t)tr_load_be(data + 18 + 2 * i, 2);
        t->pfc_state[i].stats.received++;
        pause_queue(t, i, quanta ? pause_ps(t, quanta) : 0, now_ps);
    }
    tr_port_touch(s, port);
    return TR_DROP_PFC_FRAME;
}

uint64_t tr_trace_paused(const tr_switch *s, uint32_t port, uint32_t priority)
{
    const tr_port *t = port < TR_MAX_PORTS ? s->ports[port] : NULL;
    if (!t || !t->pfc_state || priority >= PFC_CLASSES)
        return 0;
    const tr_pfc_state *st = &t->pfc_state[priority];
    return st->stats.paused_ps +
           pause_elapsed(&t->queue[priority], st, s->now_ps);
}

int tr_pfc_read(tr_switch *s, uint32_t port, uint32_t prio, uint64_t at_ps,
                tr_pfc_stats *out)
{
    if (port >= TR_MAX_PORTS || prio >= PFC_CLASSES)
        return TR_ERANGE;
    tr_switch_lock(s);
    memset(out, 0, sizeof *out);
    const tr_port *t = s->ports[port];
    if (t && t->pfc_state) {
        const tr_pfc_state *st = &t->pfc_state[prio];
        uint64_t now_ps = at_ps > s->now_ps ? at_ps : s->now_ps;
        *out = st->stats;
        out->paused_ps += pause_elapsed(&t->queue[prio], st, now_ps);
        if (st->paused)
            out->pausing_ps += now_ps - st->pausing_from_ps;
        if (out->storming)
            out->storm_ps += now_ps - st->storm_from_ps;
    }
    tr_switch_unlock(s);
    return TR_OK;
}
