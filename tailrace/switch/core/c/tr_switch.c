/* Creation of a switch, program loading, and calls of the data plane.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_mem.h"
#include "tr_table.h"
#include "tr_tm.h"

#include <stdlib.h>

/* ---- creation, loading, freeing ---- */

/* One cache line more than the registers need, to align them. */
static size_t block_bytes(const tr_block_desc *d)
{
    return d->size * d->stride + TR_LINE;
}

/* Frees memory, and clears the pointer to it. */
#define FREE(pointer) (free(pointer), (pointer) = NULL)

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
    for (uint32_t i = 0; s->blocks && i < g->n_blocks; i++)
        tr_mem_array_free(s->blocks[i], block_bytes(&g->blocks[i]));
    for (uint32_t i = 0; s->meters && i < g->n_meters; i++)
        free(s->meters[i]);
    for (uint32_t i = 0; s->vsets && i < g->n_vsets; i++)
        free(s->vsets[i].values);
    FREE(s->tables);
    FREE(s->profiles);
    FREE(s->counters);
    FREE(s->registers);
    FREE(s->blocks);
    FREE(s->meters);
    FREE(s->vsets);
    FREE(s->digests);
}

/* Frees the multicast groups or clone sessions (packet replication). */
static void pre_free(tr_replicas ***table)
{
    for (uint32_t i = 0; i < TR_PRE_PAGES; i++) {
        for (uint32_t k = 0; table[i] && k < TR_PRE_PAGE; k++)
            free(table[i][k]);
        free(table[i]);
        table[i] = NULL;
    }
}

/* The i-th free list to free: the largest buffers first, because their memory
 * is returned to the operating system. */
static unsigned larger_first(unsigned i)
{
    return i < TR_SIZE_CLASSES ? TR_SIZE_CLASSES - 1 - i : i;
}

tr_pkt *tr_pkt_memory(tr_switch *s, size_t size, int inside)
{
    uint64_t limit = s->cfg.packet_bytes / (inside ? 1 : 2);
    uint64_t most = s->cfg.packet_bytes ? limit : UINT64_MAX;
    for (unsigned i = 0; i < TR_SIZE_CLASSES + TR_PACKED_LINES; i++) {
        tr_pkt **list = &s->free_pkts[larger_first(i)];
        while (s->packet_bytes + size > most && *list) {
            tr_pkt *freed = *list;
            *list = freed->next;
            tr_pkt_memory_free(s, freed);
        }
    }
    tr_pkt *p = s->packet_bytes + size > most ? NULL : tr_mem_new(size);
    if (p)
        s->packet_bytes += size;
    return p;
}

void tr_pkt_memory_free(tr_switch *s, tr_pkt *p)
{
    s->packet_bytes -= p->size;
    tr_mem_free(p, p->size);
}

static void list_free(tr_switch *s, tr_pkt **head)
{
    while (*head) {
        tr_pkt *freed = *head;
        *head = freed->next;
        tr_pkt_memory_free(s, freed);
    }
}

/* Drops the packets of a list, because the program is replaced. */
static void list_lose(tr_switch *s, tr_pkt **head)
{
    for (const tr_pkt *p = *head; p; p = p->next) {
        tr_lost lost = tr_pkt_lost(p);
        tr_lose(s, TR_DROP_RELOAD, &lost);
    }
    list_free(s, head);
}

/* Drops all packets and frees all buffers, since their PHVs have the size of
 * the old program's PHV. */
static void packets_free(tr_switch *s)
{
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        if (s->ports[i])
            tr_port_flush(s, s->ports[i]);
    tr_ports_clear(s);
    list_lose(s, &s->resubmitted.head);
    list_lose(s, &s->recirculated.head);
    list_lose(s, &s->out_head);
    tr_buffer_clear(s);
    memset(&s->resubmitted, 0, sizeof s->resubmitted);
    memset(&s->recirculated, 0, sizeof s->recirculated);
    s->out_tail = NULL;
    s->out_bytes = 0;
    s->recirc_busy_ps = 0;
    s->next_event_ps = TR_NEVER;
    for (uint32_t i = 0; i < TR_SIZE_CLASSES + TR_PACKED_LINES; i++)
        list_free(s, &s->free_pkts[i]);
}

static void *array(uint64_t n, size_t size)
{
    return tr_calloc(n ? n : 1, size);
}

static int externs_new(tr_switch *s, const tr_program *g)
{
    int ok = 1;
    for (uint32_t i = 0; i < g->n_counters; i++)
        ok &= !!(s->counters[i] = array(g->counters[i].size,
                                        sizeof **s->counters));
    for (uint32_t i = 0; i < g->n_blocks; i++)
        ok &= !!(s->blocks[i] = tr_mem_array(block_bytes(&g->blocks[i])));
    for (uint32_t i = 0; ok && i < g->n_registers; i++) {
        uintptr_t block = (uintptr_t)s->blocks[g->registers[i].block];
        s->registers[i] =
            (uint8_t *)((block + TR_LINE - 1) / TR_LINE * TR_LINE) +
            g->registers[i].offset;
    }
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
    s->blocks = array(g->n_blocks, sizeof *s->blocks);
    s->meters = array(g->n_meters, sizeof *s->meters);
    s->vsets = array(g->n_vsets, sizeof *s->vsets);
    if (g->digest_limbs)
        s->digests = array((uint64_t)TR_DIGEST_RING * (g->digest_limbs + 2),
                           sizeof *s->digests);
    s->digest_head = s->digest_count = 0;
    if (!s->tables || !s->profiles || !s->counters || !s->registers ||
        !s->blocks ||
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
    tr_tracer_detach(s);
    packets_free(s);
    s->generation++;
    s->storm_digests[0] = s->storm_digests[1] = -1;
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

#define SWAP(a, b)                                                            \
    do {                                                                      \
        unsigned char t_[sizeof(a)];                                          \
        memcpy(t_, &(a), sizeof(a));                                          \
        memcpy(&(a), &(b), sizeof(a));                                        \
        memcpy(&(b), t_, sizeof(a));                                          \
    } while (0)

void tr_switch_exchange(tr_switch *s, tr_switch *other)
{
    tr_switch_lock(s);
    tr_tracer_detach(s);
    tr_tracer_detach(other);
    packets_free(s);
    s->generation++;
    SWAP(s->prog, other->prog);
    SWAP(s->tables, other->tables);
    SWAP(s->profiles, other->profiles);
    SWAP(s->counters, other->counters);
    SWAP(s->registers, other->registers);
    SWAP(s->blocks, other->blocks);
    SWAP(s->meters, other->meters);
    SWAP(s->vsets, other->vsets);
    SWAP(s->groups, other->groups);
    SWAP(s->sessions, other->sessions);
    SWAP(s->digests, other->digests);
    SWAP(s->digest_head, other->digest_head);
    SWAP(s->digest_count, other->digest_count);
    SWAP(s->storm_digests, other->storm_digests);
    tr_switch_unlock(s);
}

void tr_switch_clock(tr_switch *s, uint64_t now_ps)
{
    tr_switch_lock(s);
    if (now_ps > s->now_ps)
        s->now_ps = now_ps;
    tr_switch_unlock(s);
}

void tr_set_clock(tr_switch *s, tr_clock_fn fn, void *arg)
{
    tr_switch_lock(s);
    s->clock = fn;
    s->clock_arg = arg;
    tr_switch_unlock(s);
}

tr_switch *tr_switch_new(const tr_program *prog, const tr_switch_config *cfg)
{
    if (cfg->priorities < 1 || cfg->priorities > TR_MAX_PRIORITIES ||
        cfg->tick_ps == 0)
        return NULL;
    tr_switch *s = tr_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->cfg = *cfg;
    s->rng = cfg->seed;
    s->next_event_ps = TR_NEVER;
    atomic_init(&s->waiting, 0);
    /* recursive: a caller with the lock can make a batch of control calls */
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
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
    s->lost = NULL; /* drops are not reported any more */
    packets_free(s);
    pre_free(s->groups);
    pre_free(s->sessions);
    state_free(s);
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++) {
        if (s->ports[i])
            free(s->ports[i]->pfc_state);
        tr_mem_free(s->ports[i], sizeof *s->ports[i]);
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

/* ---- data plane ---- */

/* Each program contains a copy of the data plane (tr_data.h). */
int tr_rx_virtual(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt, uint64_t now_ps)
{
    return (s->prog ? s->prog->rx : tr_data_rx)(s, port, data, len, virt,
                                                now_ps);
}

int tr_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
          uint64_t now_ps)
{
    return tr_rx_virtual(s, port, data, len, 0, now_ps);
}

void tr_origin(tr_switch *s, uint32_t origin)
{
    s->origin = origin;
}

uint64_t tr_run(tr_switch *s, uint64_t now_ps)
{
    return (s->prog ? s->prog->run : tr_data_run)(s, now_ps);
}

void tr_port_block(tr_switch *s, uint32_t port, int blocked)
{
    tr_port *t = tr_port_get(s, port);
    if (!t)
        return;
    t->blocked = blocked != 0;
    tr_port_touch(s, port);
}

void tr_port_up(tr_switch *s, uint32_t port, int up)
{
    tr_port *t = tr_port_get(s, port);
    if (!t || t->down == !up)
        return;
    t->down = !up;
    tr_pfc_link(s, port, up);
    tr_port_touch(s, port);
}
