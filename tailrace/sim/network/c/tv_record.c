/* The record of a run: arrivals and losses of frames, for replays.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_bytes.h"
#include "tv_net.h"

#include <stdlib.h>

#define ETHERNET_BYTES 14u
#define ETHERTYPE_MAC_CONTROL 0x8808u
/* In a PFC frame: the enabled priorities, and the time to pause each. */
#define ENABLED_AT 17u
#define QUANTA_AT 18u
#define PRIORITIES 8u
#define FIRST_ENTRIES 4096u
#define MOST_ENTRIES (UINT64_C(1) << 23)
#define DSCP_SHIFT 2          /* in the TOS byte */
#define ECN_MASK 3u
#define ECN_CE 3u
#define MASK_24 0xffffffu
/* From the PSN back to the opcode and to the queue pair number of the BTH. */
#define OPCODE_BEFORE 9
#define QPN_BEFORE 4

static int has_space(tv_recorder *r)
{
    if (r->n < r->cap)
        return 1;
    size_t cap = r->cap ? r->cap * 2 : FIRST_ENTRIES;
    tv_entry *entries = cap > MOST_ENTRIES
                            ? NULL
                            : realloc(r->entries, cap * sizeof *entries);
    if (!entries) {
        r->full = 1;
        return 0;
    }
    r->entries = entries;
    r->cap = cap;
    return 1;
}

/* The priorities that a PFC frame pauses, a bit for each. */
static uint8_t paused_by(const tc_frame *f)
{
    uint8_t paused = 0;
    for (unsigned i = 0; i < PRIORITIES; i++) {
        uint32_t at = QUANTA_AT + 2 * i;
        if (f->len >= at + 2 && f->data[ENABLED_AT] >> i & 1 &&
            tc_get16(f->data + at))
            paused |= (uint8_t)(1u << i);
    }
    return paused;
}

/* Sets what the headers of a frame say. */
static void describe(const tv_formats *formats, const tc_frame *f, tv_entry *e)
{
    if (!f->data || f->len < ETHERNET_BYTES)
        return;
    const uint8_t *ip = tv_match_ipv4(formats, f->data, f->len);
    uint32_t type = tc_get16(f->data + ETHERNET_BYTES - 2);
    if (!ip) {
        if (type == ETHERTYPE_MAC_CONTROL) {
            e->protocol = TV_MAC_CONTROL;
            e->type = paused_by(f);
        } else if (type == formats->local_type && f->len > ETHERNET_BYTES) {
            e->protocol = TV_LOCAL;
            e->type = f->data[ETHERNET_BYTES];
        }
        return;
    }
    e->protocol = TV_IP;
    e->src = tc_get32(ip + 12);
    e->dst = tc_get32(ip + 16);
    if (formats->trimmed >> (ip[1] >> DSCP_SHIFT) & 1)
        e->flags |= TV_IS_TRIMMED;
    /* codec/layers/bth.py: retransmissions have the identification 1 */
    if (tc_get16(ip + 4))
        e->flags |= TV_IS_RETRANSMITTED;
    if ((ip[1] & ECN_MASK) == ECN_CE)
        e->flags |= TV_IS_MARKED;
    const uint8_t *psn =
        tv_match_psn(formats, ip, f->len - (uint32_t)(ip - f->data));
    if (psn) {
        e->protocol = TV_ROCE;
        e->type = psn[-OPCODE_BEFORE];
        e->qpn = tc_get32(psn - QPN_BEFORE - 1) & MASK_24;
        e->psn = tc_get32(psn - 1) & MASK_24;
    }
}

static tv_hop *hop_slot(tv_hop *hops, size_t cap, const tv_hop *h)
{
    uint64_t hash = ((uint64_t)h->src << 32 | h->dst) * TV_MIX_1;
    hash = (hash ^ ((uint64_t)h->qpn << 32 | h->node)) * TV_MIX_2;
    size_t i = (size_t)(hash >> 20) & (cap - 1);
    while (hops[i].src && (hops[i].src != h->src || hops[i].dst != h->dst ||
                           hops[i].qpn != h->qpn || hops[i].node != h->node))
        i = (i + 1) & (cap - 1);
    return &hops[i];
}

static int hops_grow(tv_recorder *r)
{
    size_t cap = r->hop_cap ? r->hop_cap * 2 : FIRST_ENTRIES;
    tv_hop *hops = calloc(cap, sizeof *hops);
    if (!hops) {
        r->full = 1;
        return 0;
    }
    for (size_t i = 0; i < r->hop_cap; i++)
        if (r->hops[i].src)
            *hop_slot(hops, cap, &r->hops[i]) = r->hops[i];
    free(r->hops);
    r->hops = hops;
    r->hop_cap = cap;
    return 1;
}

/* Whether a flow's data arrives at a node on another wire than before. */
static int is_new_hop(tv_recorder *r, const tv_wire *w, const tv_entry *e)
{
    tv_hop h = {e->src, e->dst, e->qpn, w->target, w->index};
    if (r->n_hops * 2 >= r->hop_cap && !hops_grow(r))
        return 0;
    tv_hop *known = hop_slot(r->hops, r->hop_cap, &h);
    int is_new = !known->src || known->wire != h.wire;
    r->n_hops += !known->src;
    *known = h;
    return is_new;
}

void tv_record_add(tv_net *net, enum tv_recorded what, uint32_t place,
                   const tc_frame *f)
{
    tv_recorder *r = net->recorder;
    tv_entry e = {.time_ps = f->time_ps, .place = place,
                  .bytes = f->len + f->virt, .what = (uint8_t)what};
    describe(&net->formats, f, &e);
    int is_pfc = e.protocol == TV_MAC_CONTROL;
    if (what == TV_ARRIVED && !r->packets && !(e.flags & TV_IS_TRIMMED) &&
        !is_pfc && !(f->virt && e.src && is_new_hop(r, net->wires[place], &e)))
        return;
    if (what == TV_DROPPED && is_pfc) /* the switch has obeyed it */
        return;
    if (has_space(r))
        r->entries[r->n++] = e;
}

void tv_record_free(tv_recorder *r)
{
    if (!r)
        return;
    free(r->hops);
    free(r->entries);
    free(r);
}
