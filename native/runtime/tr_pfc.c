/* PFC of the traffic manager: ingress accounting, pause frames out and in.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

#include <stdlib.h>

#define PFC_FRAME_BYTES 60u
#define PFC_CLASSES 8u
/* Pauses are repeated no faster than this, however short they are. */
#define MIN_REFRESH_PS 1000000u

static const uint8_t pfc_destination[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/* ps that `quanta` pause quanta last on this port; TR_NEVER when the port has
 * no rate, so that only an explicit resume ends the pause. */
static uint64_t pause_ps(const tr_port *t, uint32_t quanta)
{
    if (!t->rate_bps)
        return TR_NEVER;
    tr_u128 ps = (tr_u128)quanta * 512 * TR_PS_PER_S / t->rate_bps;
    return ps < TR_NEVER ? (uint64_t)ps : TR_NEVER;
}

static void send_pause(tr_switch *s, uint32_t port, uint32_t priority,
                       uint16_t quanta)
{
    tr_port *t = s->ports[port];
    tr_pkt *p = tr_pkt_new(s, PFC_FRAME_BYTES);
    if (!p)
        return;
    uint8_t *f = p->buf + p->off;
    memset(f, 0, PFC_FRAME_BYTES);
    memcpy(f, pfc_destination, 6);
    f[6] = 0x02; /* locally administered source: the port's number */
    tr_store_be(f + 8, 4, port);
    tr_store_be(f + 12, 2, 0x8808);
    tr_store_be(f + 14, 2, 0x0101);
    tr_store_be(f + 16, 2, 1u << priority);
    tr_store_be(f + 18 + 2 * priority, 2, quanta);
    p->len = PFC_FRAME_BYTES;
    p->egress_port = port;
    t->stats.pfc_sent++;
    s->account.made_frames++;
    tr_port_send(s, p, s->now_ps);
    tr_pfc_state *st = &t->pfc_state[priority];
    uint64_t lasts = pause_ps(t, quanta);
    uint64_t sent_ps =
        t->busy_until_ps > s->now_ps ? t->busy_until_ps : s->now_ps;
    st->paused = quanta != 0;
    st->refresh_ps = quanta == 0 || lasts == TR_NEVER
                         ? TR_NEVER
                         : sent_ps + (lasts / 2 > MIN_REFRESH_PS ? lasts / 2
                                                    : MIN_REFRESH_PS);
    tr_port_touch(s, port);
}

void tr_pfc_set(tr_port *t, const tr_pfc_config *cfg)
{
    if (!t->pfc_state)
        t->pfc_state = calloc(TR_MAX_PRIORITIES, sizeof *t->pfc_state);
    if (!t->pfc_state)
        return;
    t->pfc = *cfg;
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++)
        if (!t->pfc_state[i].paused)
            t->pfc_state[i].refresh_ps = TR_NEVER;
}

static tr_pfc_state *state_of(const tr_switch *s, uint32_t port,
                              uint32_t priority)
{
    const tr_port *t = port < TR_MAX_PORTS ? s->ports[port] : NULL;
    if (!t || !t->pfc_state || !(t->pfc.enabled >> priority & 1))
        return NULL;
    return &t->pfc_state[priority];
}

int tr_pfc_admit(tr_switch *s, tr_pkt *p, uint32_t priority)
{
    p->pfc_bytes = 0;
    tr_pfc_state *st = state_of(s, p->pfc_port, priority);
    if (!st)
        return 1;
    const tr_pfc_config *c = &s->ports[p->pfc_port]->pfc;
    uint32_t bytes = tr_pkt_bytes(p);
    if (st->bytes + bytes > c->xoff_bytes + c->headroom_bytes)
        return 0;
    st->bytes += bytes;
    p->pfc_bytes = bytes;
    if (!st->paused && st->bytes > c->xoff_bytes)
        send_pause(s, p->pfc_port, priority, c->quanta);
    return 1;
}

void tr_pfc_release(tr_switch *s, tr_pkt *p)
{
    tr_pfc_state *st =
        p->pfc_bytes ? state_of(s, p->pfc_port, p->priority) : NULL;
    if (!st)
        return;
    st->bytes -= st->bytes < p->pfc_bytes ? st->bytes : p->pfc_bytes;
    p->pfc_bytes = 0;
    if (st->paused && st->bytes <= s->ports[p->pfc_port]->pfc.xon_bytes)
        send_pause(s, p->pfc_port, p->priority, 0);
}

uint64_t tr_pfc_refresh(tr_switch *s, uint32_t port, uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    uint64_t next = TR_NEVER;
    for (uint32_t i = 0; i < PFC_CLASSES; i++) {
        tr_pfc_state *st = &t->pfc_state[i];
        if (st->paused && st->refresh_ps <= now_ps)
            send_pause(s, port, i, t->pfc.quanta);
        if (st->paused && st->refresh_ps < next)
            next = st->refresh_ps;
    }
    return next;
}

int tr_pfc_obey(tr_switch *s, uint32_t port, const uint8_t *data,
                uint32_t len, uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    if (!t->pfc_state || len < 34 || tr_load_be(data + 12, 2) != 0x8808 ||
        tr_load_be(data + 14, 2) != 0x0101 ||
        memcmp(data, pfc_destination, 6))
        return 0;
    uint64_t classes = tr_load_be(data + 16, 2);
    t->stats.pfc_received++;
    for (uint32_t i = 0; i < PFC_CLASSES; i++) {
        if (!(classes >> i & 1))
            continue;
        tr_queue *q = &t->queue[i];
        uint32_t quanta = (uint32_t)tr_load_be(data + 18 + 2 * i, 2);
        uint64_t lasts = quanta ? pause_ps(t, quanta) : 0;
        uint64_t until = lasts > TR_NEVER - now_ps ? TR_NEVER : now_ps + lasts;
        if (q->pause_until_ps != TR_NEVER && q->pause_until_ps > now_ps)
            t->stats.paused_ps -= q->pause_until_ps - now_ps;
        if (until != TR_NEVER)
            t->stats.paused_ps += until - now_ps;
        q->pause_until_ps = until;
    }
    tr_port_touch(s, port);
    return 1;
}
