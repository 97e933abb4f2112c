/* Life of a switch, and the loop that moves packets through it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_extern.h"
#include "tr_table.h"
#include "tr_tm.h"

#include <stdlib.h>

/* Packets one tr_run may handle without time passing before it returns to its
 * caller: a program that resubmits for ever must not hang the switch. */
#define STEP_LIMIT 65536u

/* ---- life ---- */

static void state_free(tr_switch *s)
{
    const tr_program *g = s->prog;
    if (!g)
        return;
    for (uint32_t i = 0; s->tables && i < g->n_tables; i++)
        tr_table_clear(&s->tables[i]);
    for (uint32_t i = 0; s->profiles && i < g->n_profiles; i++)
        tr_profile_clear(&s->profiles[i]);
    for (uint32_t i = 0; s->counters && i < g->n_counters; i++)
        free(s->counters[i]);
    for (uint32_t i = 0; s->registers && i < g->n_registers; i++)
        free(s->registers[i]);
    for (uint32_t i = 0; s->meters && i < g->n_meters; i++)
        free(s->meters[i]);
    for (uint32_t i = 0; s->vsets && i < g->n_vsets; i++)
        free(s->vsets[i].values);
    free(s->tables);
    free(s->profiles);
    free(s->counters);
    free(s->registers);
    free(s->meters);
    free(s->vsets);
    free(s->digests);
    s->tables = NULL;
    s->profiles = NULL;
    s->counters = NULL;
    s->registers = NULL;
    s->meters = NULL;
    s->vsets = NULL;
    s->digests = NULL;
}

static void pre_free(tr_replicas **table)
{
    for (uint32_t i = 0; i < TR_PRE_BUCKETS; i++) {
        while (table[i]) {
            tr_replicas *gone = table[i];
            table[i] = gone->next;
            free(gone);
        }
    }
}

static void list_free(tr_pkt **head)
{
    while (*head) {
        tr_pkt *gone = *head;
        *head = gone->next;
        free(gone);
    }
}

/* Drops every packet and buffer: their PHV has the old program's size. */
static void packets_free(tr_switch *s)
{
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        if (s->ports[i])
            tr_port_flush(s, s->ports[i]);
    memset(s->active, 0, sizeof s->active);
    list_free(&s->reentry_head);
    list_free(&s->out_head);
    s->reentry_tail = s->out_tail = NULL;
    s->n_resubmit = s->n_recirc = 0;
    s->recirc_busy_ns = 0;
    for (uint32_t i = 0; i < TR_SIZE_CLASSES; i++)
        list_free(&s->free_pkts[i]);
}

/* Large arrays stay untouched pages until they are written. */
static void *array(uint64_t n, size_t size)
{
    return calloc(n ? n : 1, size);
}

static int externs_new(tr_switch *s, const tr_program *g)
{
    int ok = 1;
    for (uint32_t i = 0; i < g->n_counters; i++)
        ok &= !!(s->counters[i] = array(g->counters[i].size,
                                        sizeof **s->counters));
    for (uint32_t i = 0; i < g->n_registers; i++)
        ok &= !!(s->registers[i] = array(g->registers[i].size,
                                         g->registers[i].cell_bytes));
    for (uint32_t i = 0; i < g->n_meters; i++)
        ok &= !!(s->meters[i] = array(g->meters[i].size, sizeof **s->meters));
    for (uint32_t i = 0; i < g->n_vsets; i++)
        s->vsets[i].key_bytes = g->vsets[i].cell_bytes;
    return ok;
}

static int state_new(tr_switch *s, const tr_program *g)
{
    s->prog = g;
    if (!g)
        return TR_OK;
    s->tables = array(g->n_tables, sizeof *s->tables);
    s->profiles = array(g->n_profiles, sizeof *s->profiles);
    s->counters = array(g->n_counters, sizeof *s->counters);
    s->registers = array(g->n_registers, sizeof *s->registers);
    s->meters = array(g->n_meters, sizeof *s->meters);
    s->vsets = array(g->n_vsets, sizeof *s->vsets);
    if (g->digest_limbs)
        s->digests = array((uint64_t)TR_DIGEST_RING * (g->digest_limbs + 2),
                           sizeof *s->digests);
    s->digest_head = s->digest_count = 0;
    if (!s->tables || !s->profiles || !s->counters || !s->registers ||
        !s->meters || !s->vsets || (g->digest_limbs && !s->digests))
        return TR_ENOMEM;
    for (uint32_t i = 0; i < g->n_tables; i++) {
        s->tables[i].desc = &g->tables[i];
        s->tables[i].max_size = g->tables[i].max_size;
    }
    for (uint32_t i = 0; i < g->n_profiles; i++)
        s->profiles[i].desc = &g->profiles[i];
    return externs_new(s, g) ? TR_OK : TR_ENOMEM;
}

int tr_switch_load(tr_switch *s, const tr_program *prog)
{
    if (prog && prog->abi != TR_ABI)
        return TR_EINVAL;
    tr_switch_lock(s);
    packets_free(s);
    s->generation++;
    pre_free(s->groups);
    pre_free(s->sessions);
    state_free(s);
    int rc = state_new(s, prog);
    if (rc != TR_OK) {
        state_free(s);
        s->prog = NULL;
    }
    tr_switch_unlock(s);
    return rc;
}

tr_switch *tr_switch_new(const tr_program *prog, const tr_switch_config *cfg)
{
    if (cfg->priorities < 1 || cfg->priorities > TR_MAX_PRIORITIES ||
        cfg->tick_ns == 0)
        return NULL;
    tr_switch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->cfg = *cfg;
    s->rng = cfg->seed;
    s->next_event_ns = TR_NEVER;
    atomic_init(&s->waiting, 0);
    pthread_mutex_init(&s->lock, NULL);
    if (tr_switch_load(s, prog) != TR_OK) {
        tr_switch_free(s);
        return NULL;
    }
    return s;
}

void tr_switch_free(tr_switch *s)
{
    if (!s)
        return;
    packets_free(s);
    pre_free(s->groups);
    pre_free(s->sessions);
    state_free(s);
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++) {
        if (s->ports[i])
            free(s->ports[i]->pfc_state);
        free(s->ports[i]);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void tr_switch_lock(tr_switch *s)
{
    atomic_fetch_add(&s->waiting, 1);
    pthread_mutex_lock(&s->lock);
    atomic_fetch_sub(&s->waiting, 1);
}

void tr_switch_unlock(tr_switch *s)
{
    pthread_mutex_unlock(&s->lock);
}

int tr_switch_contended(const tr_switch *s)
{
    return atomic_load(&s->waiting) > 0;
}

/* ---- packets in ---- */

int tr_rx_virtual(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt, uint64_t now_ns)
{
    tr_port *t = tr_port_get(s, port);
    if (!t)
        return port < TR_MAX_PORTS ? TR_ENOMEM : TR_ERANGE;
    if (s->next_event_ns <= now_ns)
        tr_run(s, now_ns);
    if (now_ns > s->now_ns)
        s->now_ns = now_ns;
    t->stats.rx_packets++;
    t->stats.rx_bytes += (uint64_t)len + virt;
    if (t->pfc_state && tr_pfc_obey(s, port, data, len, s->now_ns)) {
        s->drops[TR_DROP_PFC_FRAME]++;
        s->next_event_ns = s->now_ns;
        return TR_OK;
    }
    if (!s->prog || len > TR_MAX_FRAME) {
        s->drops[s->prog ? TR_DROP_TOO_LONG : TR_DROP_NO_PIPELINE]++;
        return TR_OK;
    }
    tr_pkt *p = tr_pkt_new(s, len);
    if (!p) {
        s->drops[TR_DROP_NO_BUFFER]++;
        return TR_ENOMEM;
    }
    memcpy(p->buf + p->off, data, len);
    p->len = len;
    p->virt = virt;
    p->in_len = p->plen = len + virt;
    p->ingress_port = port;
    p->pfc_port = (uint16_t)port;
    memset(p->phv, 0, s->prog->phv_size);
    s->prog->ingress(s, p, s->now_ns);
    tr_run(s, s->now_ns);
    return TR_OK;
}

int tr_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
          uint64_t now_ns)
{
    return tr_rx_virtual(s, port, data, len, 0, now_ns);
}

/* ---- re-entry: resubmit and recirculate ---- */

static void reenter(tr_switch *s, tr_pkt *p)
{
    p->next = NULL;
    if (s->reentry_tail)
        s->reentry_tail->next = p;
    else
        s->reentry_head = p;
    s->reentry_tail = p;
}

void tr_resubmit(tr_switch *s, tr_pkt *p, uint64_t now_ns)
{
    if (s->n_resubmit >= TR_REENTRY_DEPTH) {
        tr_drop(s, p, TR_DROP_RESUBMIT_FULL);
        return;
    }
    s->n_resubmit++;
    p->resubmit = 1;
    p->ready_ns = now_ns;
    reenter(s, p);
}

void tr_recirculate(tr_switch *s, tr_pkt *p, uint64_t now_ns)
{
    if (s->n_recirc >= TR_REENTRY_DEPTH) {
        tr_drop(s, p, TR_DROP_RECIRC_FULL);
        return;
    }
    uint64_t start =
        s->recirc_busy_ns > now_ns ? s->recirc_busy_ns : now_ns;
    if (s->cfg.recirc_rate_bps)
        start += (uint64_t)((tr_u128)(p->len + p->virt) * 8000000000ULL /
                            s->cfg.recirc_rate_bps);
    s->recirc_busy_ns = start;
    s->n_recirc++;
    p->resubmit = 0;
    p->ready_ns = start;
    reenter(s, p);
}

/* The first packet that may enter ingress again now. Resubmitted packets do
 * not wait behind recirculated ones that are still being serialised. */
static tr_pkt *reentry_take(tr_switch *s, uint64_t now_ns)
{
    tr_pkt *before = NULL;
    for (tr_pkt *p = s->reentry_head; p; before = p, p = p->next) {
        if (p->ready_ns > now_ns)
            continue;
        if (before)
            before->next = p->next;
        else
            s->reentry_head = p->next;
        if (s->reentry_tail == p)
            s->reentry_tail = before;
        if (p->resubmit)
            s->n_resubmit--;
        else
            s->n_recirc--;
        p->resubmit = 0;
        p->next = NULL;
        return p;
    }
    return NULL;
}

static uint64_t reentry_next(const tr_switch *s)
{
    uint64_t next = TR_NEVER;
    for (const tr_pkt *p = s->reentry_head; p; p = p->next)
        if (p->ready_ns < next)
            next = p->ready_ns;
    return next;
}

/* ---- the loop ---- */

/* Lets port send what it may at now; the number of packets handled. */
static uint32_t port_work(tr_switch *s, uint32_t port, uint64_t now_ns)
{
    uint32_t n = 0;
    tr_pkt *p;
    while (n < STEP_LIMIT && (p = tr_port_dequeue(s, port, now_ns))) {
        n++;
        if (s->prog->egress(s, p, now_ns))
            tr_port_send(s, p, now_ns);
    }
    return n;
}

/* All that can be done at now; *steps counts packets. The next event. */
static uint64_t work(tr_switch *s, uint64_t now_ns, uint32_t *steps)
{
    uint32_t before;
    uint64_t next;
    do {
        before = *steps;
        next = TR_NEVER;
        tr_pkt *p;
        while (*steps < STEP_LIMIT && (p = reentry_take(s, now_ns))) {
            ++*steps;
            s->prog->ingress(s, p, now_ns);
        }
        for (uint32_t w = 0; w < TR_MAX_PORTS / 64; w++) {
            for (uint64_t bits = s->active[w]; bits; bits &= bits - 1) {
                uint32_t port = w * 64 + (uint32_t)__builtin_ctzll(bits);
                *steps += port_work(s, port, now_ns);
                uint64_t pfc = tr_pfc_refresh(s, port, now_ns);
                uint64_t at =
                    tr_port_next(s->ports[port], s->cfg.priorities, now_ns);
                if (at == TR_NEVER && pfc == TR_NEVER &&
                    !s->ports[port]->blocked)
                    s->active[w] &= ~(1ULL << (port % 64));
                if (at > pfc)
                    at = pfc;
                if (at < next)
                    next = at;
            }
        }
    } while (*steps != before && *steps < STEP_LIMIT);
    uint64_t again = reentry_next(s);
    return again < next ? again : next;
}

uint64_t tr_run(tr_switch *s, uint64_t now_ns)
{
    uint32_t steps = 0;
    if (!s->prog)
        return TR_NEVER;
    for (;;) {
        uint64_t next = work(s, s->now_ns, &steps);
        s->next_event_ns = next;
        if (next > now_ns || steps >= STEP_LIMIT)
            break;
        if (next > s->now_ns) {
            s->now_ns = next;
            steps = 0;
        }
    }
    if (steps < STEP_LIMIT && now_ns > s->now_ns)
        s->now_ns = now_ns;
    return s->next_event_ns;
}

void tr_port_block(tr_switch *s, uint32_t port, int blocked)
{
    tr_port *t = tr_port_get(s, port);
    if (!t)
        return;
    t->blocked = blocked != 0;
    if (!blocked)
        s->active[port / 64] |= 1ULL << (port % 64);
}

void tr_port_up(tr_switch *s, uint32_t port, int up)
{
    tr_port *t = tr_port_get(s, port);
    if (t)
        t->down = !up;
}
