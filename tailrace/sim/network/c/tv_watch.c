/* The paths of flows: arrivals of their packets at switches, over time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_bytes.h"
#include "tv_net.h"

#include <stdlib.h>

#define PSN_MASK 0xffffffu

/* The PSN of an IPv4 packet of len bytes; UINT32_MAX: it has none. */
static uint32_t psn_of(const tv_formats *f, const uint8_t *ip, uint32_t len)
{
    const uint8_t *psn = tv_match_psn(f, ip, len);
    return psn ? tc_get32(psn - 1) & PSN_MASK : UINT32_MAX; /* 24 bits */
}

static int record(tv_watch *w, tv_sight sight)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 256;
        if (tv_resize(&w->sights, cap * sizeof *w->sights) < 0)
            return -1;
        w->cap = cap;
    }
    w->sights[w->n++] = sight;
    return 0;
}

int tv_watch_arrival(const tv_node *n, const tv_wire *w, const tc_frame *f)
{
    tv_net *net = n->net;
    const uint8_t *ip = tv_match_ipv4(&net->formats, f->data, f->len);
    if (!ip)
        return 0;
    uint32_t src = tc_get32(ip + 12), dst = tc_get32(ip + 16);
    for (tv_watch *t = net->watches; t; t = t->next) {
        if (t->src != src || t->dst != dst)
            continue;
        uint32_t psn = psn_of(&net->formats, ip,
                              f->len - (uint32_t)(ip - f->data));
        if (record(t, (tv_sight){f->time_ps, net->seen++, n->index,
                                 w->target_port, psn}) < 0)
            return -1;
    }
    return 0;
}

void tv_watch_free(tv_watch *w)
{
    while (w) {
        tv_watch *gone = w;
        w = w->next;
        free(gone->sights);
        free(gone);
    }
}
