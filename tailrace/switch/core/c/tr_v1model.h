/* The v1model architecture around a program's controls. Each generated program
 * includes this file at its end, so that the compiler optimises all packet
 * processing together.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   parse -> verify -> ingress -> clone, digest, resubmit, multicast, drop or
 *   queue -> egress -> clone, drop, deparse, recirculate or send
 *
 * (simple_switch's order: targets/simple_switch/simple_switch.cpp.)
 *
 * The program defines, before including this:
 *   struct tr_phv (PHV: parsed headers and metadata of a packet, here h);
 *   trp_set_X(h, value), trp_get_X(h) for the fields X of standard_metadata;
 *   trp_parse (sets p->parsed, returns the parser error),
 *   trp_verify (1: a checksum is wrong), trp_ingress, trp_egress,
 *   trp_deparse (0: too many headers), trp_copy_fields, trp_reset_metadata,
 *   trp_digest; TRP_CARRIED, the leading bytes of the PHV that egress needs;
 *   TRP_ASKS_INGRESS, TRP_ASKS_ENQUEUED and TRP_ASKS_EGRESS: whether the
 *   program reads the ingress timestamp, the enqueue timestamp (or the time in
 *   the queue), and the egress timestamp.
 */
#ifndef TR_V1MODEL_H
#define TR_V1MODEL_H

#include "tr_core.h"

/* A time in ticks (tr_switch_config.tick_ps). The last result is cached, since
 * a packet reads the same time repeatedly. */
static inline uint64_t trm_ticks(tr_switch *s, uint64_t now_ps)
{
    if (s->ticks_at_ps != now_ps) {
        s->ticks_at_ps = now_ps;
        s->ticks = now_ps / s->cfg.tick_ps;
    }
    return s->ticks;
}

/* The time in ticks: of the clock that tr_set_clock has set, else now_ps. */
static inline uint64_t trm_clock(tr_switch *s, uint64_t now_ps)
{
    return s->clock ? s->clock(s->clock_arg) / s->cfg.tick_ps
                    : trm_ticks(s, now_ps);
}

static void trm_parse(tr_switch *s, tr_pkt *p, struct tr_phv *h)
{
    p->parsed = 0;
    uint32_t error = trp_parse(s, p, h);
    if (error)
        TR_TRACE(s, p, TR_RECORD_ERROR, error);
    trp_set_parser_error(h, error);
    trp_set_checksum_error(h, trp_verify(s, p, h));
}

static void trm_enqueue(tr_switch *s, tr_pkt *p, uint32_t port)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    uint32_t priority = (uint32_t)trp_get_priority(h);
    if (TRP_ASKS_ENQUEUED)
        trp_set_enq_timestamp(h, trm_clock(s, s->now_ps));
    trp_set_enq_qdepth(h, tr_queue_packets(s, port, priority));
    if (!TR_TRACE_QUEUE(s, p, port, priority))
        tr_enqueue(s, p, port, priority);
}

/* Queues a copy of p for each replica; the caller still has to free p. */
static void trm_replicate(tr_switch *s, const tr_pkt *p, const tr_replicas *r)
{
    for (uint32_t i = 0; i < r->n && TR_TRACE_MAY_COPY(s, p); i++) {
        s->steps++;
        s->account.made_frames++;
        s->account.made_virt += p->virt;
        tr_pkt *q = tr_pkt_copy(s, p, 1);
        if (!q) {
            const tr_lost lost = {.virt = p->virt, .copy = 1};
            tr_lose(s, TR_DROP_NO_BUFFER, &lost);
            continue;
        }
        q->copy = 1;
        TR_TRACE_COPY(s, p, q, r->replica[i].port, r->replica[i].instance);
        trp_set_egress_rid((struct tr_phv *)q->phv, r->replica[i].instance);
        if (r->truncate)
            q->trunc = r->truncate;
        trm_enqueue(s, q, r->replica[i].port);
    }
}

/* Clones p to egress, as the program has requested: p with its bytes at the
 * start of ingress, parsed again (I2E), or p as it is at the end of egress
 * (E2E). The copies, one for each replica of the session, keep only the metadata
 * in the field list of the request.
 *
 * instance: TR_INSTANCE_INGRESS_CLONE (I2E) or TR_INSTANCE_EGRESS_CLONE (E2E).
 * entry_len: packet_length at the start of ingress (I2E). */
static void trm_clone(tr_switch *s, tr_pkt *p, uint32_t instance,
                      uint32_t entry_len)
{
    int of_ingress = instance == TR_INSTANCE_INGRESS_CLONE;
    uint32_t id = p->clone_session & ~TR_CLONE_VALID, fields = p->clone_fields;
    const tr_replicas *session = tr_session_find(s, id);
    p->clone_session = p->clone_fields = 0;
    TR_TRACE(s, p, TR_RECORD_CLONE, id, session != NULL);
    if (!session)
        return;
    tr_pkt *q = tr_pkt_copy(s, p, !of_ingress);
    if (!q) {
        const tr_lost lost = {.copy = 1};
        s->account.made_frames++;
        tr_lose(s, TR_DROP_NO_BUFFER, &lost);
        return;
    }
    struct tr_phv *h = (struct tr_phv *)q->phv;
    TR_TRACE_COPY(s, p, q, TR_MAX_PORTS, 0); /* q has no port yet */
    if (of_ingress) {
        memset(h, 0, sizeof *h);
        q->plen = entry_len;
        trp_set_ingress_port(h, p->ingress_port);
        trm_parse(s, q, h);
    }
    trp_reset_metadata(h);
    trp_copy_fields(h, (const struct tr_phv *)p->phv, fields);
    trp_set_instance_type(h, instance);
    if (session->class_of_service)
        trp_set_priority(h, session->class_of_service);
    trm_replicate(s, q, session);
    TR_TRACE(s, q, TR_RECORD_DROP, TR_DROP_REPLICATED);
    tr_pkt_free(s, q);
}

/* Clears the PHV for another pass, except the fields in field list `list`. */
static void trm_restart(tr_pkt *p, uint32_t list, uint32_t instance,
                        uint32_t length)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    struct tr_phv old = *h;
    memset(h, 0, sizeof *h);
    trp_copy_fields(h, &old, list);
    trp_set_instance_type(h, instance);
    trp_set_packet_length(h, length);
    p->parsed = 0;
    p->plen = length;
    p->digest = p->clone_session = p->clone_fields = 0;
    p->exit = 0;
    p->trunc = UINT32_MAX;
}

static void trm_multicast(tr_switch *s, tr_pkt *p, uint32_t group)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    const tr_replicas *r = tr_group_find(s, group);
    TR_TRACE(s, p, TR_RECORD_MULTICAST, group, r ? r->n : 0);
    if (!r || r->n == 0) {
        tr_drop(s, p, TR_DROP_MULTICAST);
        return;
    }
    trp_set_instance_type(h, TR_INSTANCE_REPLICATION);
    trm_replicate(s, p, r);
    tr_drop(s, p, TR_DROP_REPLICATED);
}

static void trm_after_ingress(tr_switch *s, tr_pkt *p, uint32_t entry_len)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    uint32_t group = (uint32_t)trp_get_mcast_grp(h);
    uint32_t port = (uint32_t)trp_get_egress_spec(h);
    if (p->clone_session)
        trm_clone(s, p, TR_INSTANCE_INGRESS_CLONE, entry_len);
    if (p->digest) {
        trp_digest(s, p, h);
        p->digest = 0;
    }
    if (p->resubmit) {
        trm_restart(p, p->resubmit, TR_INSTANCE_RESUBMIT, entry_len);
        p->recirculate = 0;
        if (!TR_TRACE_REENTRY(s, p, TR_RECORD_RESUBMIT))
            tr_resubmit(s, p, s->now_ps);
    } else if (group) {
        trm_multicast(s, p, group);
    } else if (port == s->cfg.drop_port) {
        tr_drop(s, p, TR_DROP_INGRESS);
    } else {
        trp_set_instance_type(h, TR_INSTANCE_NORMAL);
        trm_enqueue(s, p, port);
    }
}

static void trm_ingress(tr_switch *s, tr_pkt *p, uint64_t now_ps)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    uint32_t entry_len = p->plen;
    if (trp_get_instance_type(h) == TR_INSTANCE_NORMAL) {
        trp_set_ingress_port(h, p->ingress_port);
        trp_set_packet_length(h, p->in_len);
        if (TRP_ASKS_INGRESS)
            trp_set_ingress_global_timestamp(h, trm_clock(s, now_ps));
    }
    TR_TRACE_FRAME(s, p, TR_RECORD_ENTER, p->ingress_port);
    trm_parse(s, p, h);
    trp_ingress(s, p, h);
    p->exit = 0;
    if (p->failed)
        tr_drop(s, p, (enum tr_drop)(p->failed - 1));
    else
        trm_after_ingress(s, p, entry_len);
}

static void trm_truncate(tr_switch *s, tr_pkt *p)
{
    uint32_t virt = p->virt;
    if (p->len > p->trunc) {
        p->len = p->trunc;
        p->virt = 0;
    } else if (p->len + p->virt > p->trunc) {
        p->virt = p->trunc - p->len;
    }
    s->account.cut_virt += virt - p->virt;
}

static int trm_egress(tr_switch *s, tr_pkt *p, uint64_t now_ps)
{
    struct tr_phv *h = (struct tr_phv *)p->phv;
    if (TRP_ASKS_ENQUEUED || TRP_ASKS_EGRESS) {
        uint64_t ticks = trm_clock(s, now_ps);
        trp_set_egress_global_timestamp(h, ticks);
        trp_set_deq_timedelta(h, ticks - trp_get_enq_timestamp(h));
    }
    TR_TRACE(s, p, TR_RECORD_EGRESS, p->egress_port, p->priority,
             trp_get_deq_timedelta(h),
             tr_trace_paused(s, p->egress_port, p->priority));
    trp_set_deq_qdepth(h, tr_queue_packets(s, p->egress_port, p->priority));
    trp_set_qid(h, p->priority);
    trp_set_egress_port(h, p->egress_port);
    /* any value but the drop port: only mark_to_drop in egress may drop p */
    trp_set_egress_spec(h, s->cfg.drop_port + 1u);
    trp_set_packet_length(h, p->plen);
    trp_egress(s, p, h);
    if (p->failed) {
        tr_drop(s, p, (enum tr_drop)(p->failed - 1));
        return 0;
    }
    if (p->clone_session)
        trm_clone(s, p, TR_INSTANCE_EGRESS_CLONE, 0);
    if (trp_get_egress_spec(h) == s->cfg.drop_port) {
        tr_drop(s, p, TR_DROP_EGRESS);
        return 0;
    }
    if (!trp_deparse(s, p, h)) {
        tr_drop(s, p, TR_DROP_HEADROOM);
        return 0;
    }
    if (!p->recirculate)
        trm_truncate(s, p);
    if ((uint64_t)p->len + p->virt > TR_MAX_FRAME) {
        tr_drop(s, p, TR_DROP_TOO_LONG);
        return 0;
    }
    if (p->recirculate) {
        uint32_t list = p->recirculate;
        p->recirculate = 0;
        p->in_len = p->len + p->virt;
        trm_restart(p, list, TR_INSTANCE_RECIRC, p->in_len);
        if (!TR_TRACE_REENTRY(s, p, TR_RECORD_RECIRCULATE))
            tr_recirculate(s, p, now_ps);
        return 0;
    }
    return 1;
}

#include "tr_data.h"

#endif
