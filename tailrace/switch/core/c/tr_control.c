/* Control calls: each takes the lock, checks its indices and calls a function.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_mem.h"
#include "tr_table.h"
#include "tr_tm.h"

#include <stdlib.h>

/* Runs `call` under the lock and returns its result; TR_ERANGE if not valid. */
#define LOCKED(s, valid, call)                                                \
    do {                                                                      \
        int rc_ = TR_ERANGE;                                                  \
        tr_switch_lock(s);                                                    \
        if ((s)->prog && (valid))                                             \
            rc_ = (call);                                                     \
        tr_switch_unlock(s);                                                  \
        return rc_;                                                           \
    } while (0)

#define HAS_TABLE(s, i) ((i) < (s)->prog->n_tables)
#define HAS_PROFILE(s, i) ((i) < (s)->prog->n_profiles)
/* Whether array i of counters, registers or meters has the cells first ..
 * first + n - 1. */
#define HAS_CELLS(s, arrays, i, first, n)                                     \
    ((i) < (s)->prog->n_##arrays &&                                           \
     (first) <= (s)->prog->arrays[i].size &&                                  \
     (n) <= (s)->prog->arrays[i].size - (first))

/* Like LOCKED, for a call that uses e, an entry of a table; TR_ENOENT if there
 * is none with this handle. */
#define LOCKED_ENTRY(s, table, handle, call)                                  \
    do {                                                                      \
        int rc_ = TR_ERANGE;                                                  \
        tr_switch_lock(s);                                                    \
        if ((s)->prog && HAS_TABLE(s, table)) {                               \
            tr_entry *e = tr_table_entry(&(s)->tables[table], handle);        \
            rc_ = e ? (call) : TR_ENOENT;                                     \
        }                                                                     \
        tr_switch_unlock(s);                                                  \
        return rc_;                                                           \
    } while (0)

/* ---- tables ---- */

int tr_table_insert(tr_switch *s, uint32_t table, const uint8_t *key,
                    const uint8_t *mask, uint32_t prefix_bits,
                    int32_t priority, const tr_target *target,
                    uint64_t timeout_ps, uint64_t now_ps)
{
    LOCKED(s, HAS_TABLE(s, table),
           tr_table_add(&s->tables[table], key, mask,
                        s->tables[table].desc->match == TR_LPM
                            ? (int32_t)prefix_bits
                        : s->tables[table].desc->match == TR_EXACT ? 0
                                                                   : priority,
                        target, timeout_ps,
                        now_ps > s->now_ps ? now_ps : s->now_ps));
}

static int modify(tr_table *t, int handle, const tr_target *target,
                  uint64_t timeout_ps)
{
    tr_entry *e = handle < 0 ? NULL : tr_table_entry(t, handle);
    if (!e)
        return TR_ENOENT;
    tr_rest(e)->timeout_ps = timeout_ps;
    return tr_table_retarget(t, e, target);
}

int tr_table_modify(tr_switch *s, uint32_t table, int handle,
                    const tr_target *target, uint64_t timeout_ps)
{
    LOCKED(s, HAS_TABLE(s, table),
           modify(&s->tables[table], handle, target, timeout_ps));
}

int tr_table_delete(tr_switch *s, uint32_t table, int handle)
{
    LOCKED(s, HAS_TABLE(s, table), tr_table_remove(&s->tables[table], handle));
}

int tr_table_default(tr_switch *s, uint32_t table, const tr_target *target)
{
    LOCKED(s, HAS_TABLE(s, table),
           tr_table_set_default(&s->tables[table], target));
}

int tr_table_count(tr_switch *s, uint32_t table)
{
    LOCKED(s, HAS_TABLE(s, table), (int)s->tables[table].count);
}

static int resize(tr_table *t, uint32_t max_size)
{
    if (max_size < t->count)
        return TR_EINVAL;
    t->max_size = max_size;
    return TR_OK;
}

int tr_table_resize(tr_switch *s, uint32_t table, uint32_t max_size)
{
    LOCKED(s, HAS_TABLE(s, table), resize(&s->tables[table], max_size));
}

/* The counts of n meters; m NULL: the entry has no meter. */
static int copy_colours(const tr_meter *m, uint64_t n, uint64_t *bytes_packets)
{
    for (uint64_t i = 0; m && i < n; i++)
        memcpy(bytes_packets + i * 2 * TR_COLOURS, m[i].counts,
               sizeof m[i].counts);
    return m ? TR_OK : TR_EINVAL;
}

static int set_colours(tr_meter *m, uint64_t n, const uint64_t *bytes_packets)
{
    for (uint64_t i = 0; m && i < n; i++)
        memcpy(m[i].counts, bytes_packets + i * 2 * TR_COLOURS,
               sizeof m[i].counts);
    return m ? TR_OK : TR_EINVAL;
}

static int counter_get(const tr_entry *e, uint64_t *bytes, uint64_t *packets)
{
    *bytes = tr_rest(e)->bytes;
    *packets = tr_rest(e)->packets;
    return TR_OK;
}

int tr_entry_counter(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes, uint64_t *packets)
{
    LOCKED_ENTRY(s, table, handle, counter_get(e, bytes, packets));
}

static int counter_set(tr_entry *e, uint64_t bytes, uint64_t packets)
{
    tr_rest(e)->bytes = bytes;
    tr_rest(e)->packets = packets;
    return TR_OK;
}

int tr_entry_counter_set(tr_switch *s, uint32_t table, int handle,
                         uint64_t bytes, uint64_t packets)
{
    LOCKED_ENTRY(s, table, handle, counter_set(e, bytes, packets));
}

int tr_entry_meter(tr_switch *s, uint32_t table, int handle,
                   const tr_meter_rates *rates)
{
    LOCKED_ENTRY(s, table, handle,
                 tr_rest(e)->meter
                     ? tr_meter_config(tr_rest(e)->meter, rates, s->now_ps)
                     : TR_EINVAL);
}

int tr_entry_colours(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes_packets)
{
    LOCKED_ENTRY(s, table, handle,
                 copy_colours(tr_rest(e)->meter, 1, bytes_packets));
}

int tr_entry_colours_set(tr_switch *s, uint32_t table, int handle,
                         const uint64_t *bytes_packets)
{
    LOCKED_ENTRY(s, table, handle,
                 set_colours(tr_rest(e)->meter, 1, bytes_packets));
}

static int last_hit(const tr_entry *e, uint64_t *time_ps)
{
    *time_ps = e->last_hit_ps;
    return TR_OK;
}

int tr_entry_last_hit(tr_switch *s, uint32_t table, int handle,
                      uint64_t *time_ps)
{
    LOCKED_ENTRY(s, table, handle, last_hit(e, time_ps));
}

/* Whether span_ps have passed since then_ps. */
static int passed(uint64_t then_ps, uint64_t now_ps, uint64_t span_ps)
{
    return now_ps >= then_ps && now_ps - then_ps >= span_ps;
}

static int expired(const tr_table *t, uint64_t now_ps, uint32_t *next,
                   uint32_t scan, int *handles, int max)
{
    int n = 0;
    uint32_t i = *next;
    for (; i < t->n_handles && scan > 0 && n < max; i++, scan--) {
        const tr_entry *e = t->by_handle[i];
        tr_entry_rest *rest = e ? tr_rest(e) : NULL;
        if (!e || !rest->timeout_ps ||
            !passed(e->last_hit_ps, now_ps, rest->timeout_ps) ||
            (rest->notified_ps &&
             !passed(rest->notified_ps, now_ps, rest->timeout_ps)))
            continue;
        rest->notified_ps = now_ps;
        handles[n++] = rest->handle;
    }
    *next = i < t->n_handles ? i : 0;
    return n;
}

int tr_table_expired(tr_switch *s, uint32_t table, uint64_t now_ps,
                     uint32_t *next, uint32_t scan, int *handles, int max)
{
    LOCKED(s, HAS_TABLE(s, table),
           expired(&s->tables[table], now_ps, next, scan, handles, max));
}

/* ---- action profiles ---- */

int tr_member_add(tr_switch *s, uint32_t profile, const tr_target *action)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_add(&s->profiles[profile], action));
}

int tr_member_modify(tr_switch *s, uint32_t profile, int handle,
                     const tr_target *action)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_modify(&s->profiles[profile], handle, action));
}

int tr_member_delete(tr_switch *s, uint32_t profile, int handle)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_remove(&s->profiles[profile], handle));
}

int tr_group_add(tr_switch *s, uint32_t profile, int drawn,
                 const tr_target *first)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_group_add(&s->profiles[profile], drawn, first));
}

int tr_group_set(tr_switch *s, uint32_t profile, int handle,
                 const int *members, uint32_t n)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_group_set(&s->profiles[profile], handle, members, n));
}

int tr_group_delete(tr_switch *s, uint32_t profile, int handle)
{
    LOCKED(s, HAS_PROFILE(s, profile),
           tr_profile_group_remove(&s->profiles[profile], handle));
}

/* ---- externs ---- */

static int copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return TR_OK;
}

int tr_counter_read(tr_switch *s, uint32_t counter, uint64_t first,
                    uint64_t n, uint64_t *bytes_packets)
{
    LOCKED(s, HAS_CELLS(s, counters, counter, first, n),
           copy(bytes_packets, s->counters[counter] + first,
                n * sizeof(tr_counter_cell)));
}

int tr_counter_write(tr_switch *s, uint32_t counter, uint64_t first,
                     uint64_t n, const uint64_t *bytes_packets)
{
    LOCKED(s, HAS_CELLS(s, counters, counter, first, n),
           copy(s->counters[counter] + first, bytes_packets,
                n * sizeof(tr_counter_cell)));
}

/* Number of bytes of a cell that are copied to or from limbs (64-bit words).
 * Cells are stored little-endian in 1, 2, 4, 8, 16 or 8 n bytes. */
static uint32_t bytes_in_use(const tr_array_desc *d)
{
    uint32_t limb_bytes = (d->bits + 63) / 64 * 8;
    return d->cell_bytes < limb_bytes ? d->cell_bytes : limb_bytes;
}

static int load_cells(const tr_array_desc *d, const uint8_t *cells,
                      uint64_t first, uint64_t n, uint64_t *limbs)
{
    uint32_t per_cell = (d->bits + 63) / 64;
    memset(limbs, 0, n * per_cell * sizeof *limbs);
    for (uint64_t i = 0; i < n; i++)
        memcpy(limbs + i * per_cell, cells + (first + i) * d->stride,
               bytes_in_use(d));
    return TR_OK;
}

static int store_cells(const tr_array_desc *d, uint8_t *cells, uint64_t first,
                       uint64_t n, const uint64_t *limbs)
{
    uint32_t per_cell = (d->bits + 63) / 64;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *cell = cells + (first + i) * d->stride;
        memset(cell, 0, d->cell_bytes);
        memcpy(cell, limbs + i * per_cell, bytes_in_use(d));
    }
    return TR_OK;
}

int tr_register_read(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                     uint64_t *limbs)
{
    LOCKED(s, HAS_CELLS(s, registers, reg, first, n),
           load_cells(&s->prog->registers[reg], s->registers[reg], first, n,
                      limbs));
}

int tr_register_write(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                      const uint64_t *limbs)
{
    LOCKED(s, HAS_CELLS(s, registers, reg, first, n),
           store_cells(&s->prog->registers[reg], s->registers[reg], first, n,
                       limbs));
}

static int load_meters(const tr_meter *m, uint64_t n, tr_meter_rates *rates,
                       uint8_t *configured)
{
    for (uint64_t i = 0; i < n; i++) {
        configured[i] = m[i].mode != TR_METER_UNSET;
        rates[i] = tr_meter_rates_of(&m[i]);
    }
    return TR_OK;
}

int tr_meter_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                  tr_meter_rates *rates, uint8_t *configured)
{
    LOCKED(s, HAS_CELLS(s, meters, meter, first, n),
           load_meters(s->meters[meter] + first, n, rates, configured));
}

/* Whether a meter has these rates; rates NULL: none. */
static int has_rates(const tr_meter *m, const tr_meter_rates *rates)
{
    if (!rates || m->mode == TR_METER_UNSET)
        return !rates && m->mode == TR_METER_UNSET;
    tr_meter_rates current = tr_meter_rates_of(m);
    return !memcmp(&current, rates, sizeof current);
}

static int store_meters(const tr_switch *s, tr_meter *m, uint64_t n,
                        const tr_meter_rates *rates)
{
    int rc = TR_OK;
    for (uint64_t i = 0; rc == TR_OK && i < n; i++)
        if (!has_rates(&m[i], rates))
            rc = tr_meter_config(&m[i], rates, s->now_ps);
    return rc;
}

int tr_meter_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                   const tr_meter_rates *rates)
{
    LOCKED(s, HAS_CELLS(s, meters, meter, first, n),
           store_meters(s, s->meters[meter] + first, n, rates));
}

int tr_colours_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                    uint64_t *bytes_packets)
{
    LOCKED(s, HAS_CELLS(s, meters, meter, first, n),
           copy_colours(s->meters[meter] + first, n, bytes_packets));
}

int tr_colours_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                     const uint64_t *bytes_packets)
{
    LOCKED(s, HAS_CELLS(s, meters, meter, first, n),
           set_colours(s->meters[meter] + first, n, bytes_packets));
}

int tr_vset_write(tr_switch *s, uint32_t vset, const uint8_t *values,
                  const uint8_t *masks, uint32_t n)
{
    /* n is not limited here. The P4Runtime server limits the number of members;
     * a member with ranges is several values here. */
    LOCKED(s, vset < s->prog->n_vsets,
           tr_vset_config(&s->vsets[vset], values, masks, n));
}

/* ---- ports and queues: these calls work without a program, too ---- */

/* Runs `statement` under the lock, with t as the port's state, and marks the
 * port to be served. Returns TR_ERANGE if there is no such port. */
#define LOCKED_PORT(s, port, t, statement)                                    \
    do {                                                                      \
        tr_switch_lock(s);                                                    \
        tr_port *t = tr_port_get(s, port);                                    \
        if (t) {                                                              \
            statement;                                                        \
            tr_port_touch(s, port);                                           \
        }                                                                     \
        tr_switch_unlock(s);                                                  \
        return t ? TR_OK : TR_ERANGE;                                         \
    } while (0)

int tr_port_rate(tr_switch *s, uint32_t port, uint64_t bps)
{
    LOCKED_PORT(s, port, t, t->rate_bps = bps; t->frac = 0);
}

int tr_port_delay(tr_switch *s, uint32_t port, uint64_t delay_ps)
{
    LOCKED_PORT(s, port, t, t->delay_ps = delay_ps);
}

static int pfc_default(tr_switch *s, const tr_pfc_config *cfg)
{
    tr_switch_lock(s);
    s->pfc = *cfg;
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        if (s->ports[i])
            tr_pfc_set(s, s->ports[i], i, cfg);
    tr_switch_unlock(s);
    return TR_OK;
}

int tr_port_pfc(tr_switch *s, uint32_t port, const tr_pfc_config *cfg)
{
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++)
        if (cfg->limits[i].xon_bytes > cfg->limits[i].xoff_bytes)
            return TR_EINVAL;
    if (port == TR_MAX_PORTS)
        return pfc_default(s, cfg);
    LOCKED_PORT(s, port, t, tr_pfc_set(s, t, port, cfg));
}

/* Sets the depth (if `depth`) or the rate of one queue of a port, or of all its
 * queues (prio TR_MAX_PRIORITIES). */
static void set_queues(tr_port *t, uint32_t prio, uint32_t packets,
                       uint64_t bytes, uint64_t pps, int depth)
{
    for (uint32_t i = 0; i < TR_MAX_PRIORITIES; i++) {
        if (prio != TR_MAX_PRIORITIES && prio != i)
            continue;
        if (depth) {
            t->queue[i].max_packets = packets;
            t->queue[i].max_bytes = bytes;
        } else {
            t->queue[i].pps = pps;
            t->queue[i].next_ps = 0;
        }
    }
}

int tr_queue_depth(tr_switch *s, uint32_t port, uint32_t prio,
                   uint32_t packets, uint64_t bytes)
{
    if (prio > TR_MAX_PRIORITIES)
        return TR_ERANGE;
    LOCKED_PORT(s, port, t, set_queues(t, prio, packets, bytes, 0, 1));
}

int tr_queue_rate_pps(tr_switch *s, uint32_t port, uint32_t prio, uint64_t pps)
{
    if (prio > TR_MAX_PRIORITIES || pps > 1000000000ULL)
        return TR_ERANGE;
    LOCKED_PORT(s, port, t, set_queues(t, prio, 0, 0, pps, 0));
}

int tr_queue_level(tr_switch *s, uint32_t port, uint32_t prio,
                   uint32_t *packets, uint64_t *bytes)
{
    if (port >= TR_MAX_PORTS || prio >= TR_MAX_PRIORITIES)
        return TR_ERANGE;
    tr_switch_lock(s);
    const tr_port *t = s->ports[port];
    *packets = t ? t->queue[prio].packets : 0;
    *bytes = t ? t->queue[prio].bytes : 0;
    tr_switch_unlock(s);
    return TR_OK;
}

int tr_port_state(const tr_switch *s, uint32_t port, uint64_t at_ps,
                  tr_port_state_t *out)
{
    memset(out, 0, sizeof *out);
    if (port >= TR_MAX_PORTS)
        return TR_ERANGE;
    const tr_port *t = s->ports[port];
    if (!t)
        return TR_OK;
    out->rate_bps = t->rate_bps;
    out->delay_ps = t->delay_ps;
    out->tx_bytes = t->stats.tx_bytes;
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++) {
        const tr_queue *q = &t->queue[i];
        out->queue_packets += q->packets;
        out->queue_bytes += q->bytes;
        if (q->pause_until_ps > at_ps)
            out->paused |= (uint8_t)(1u << i);
    }
    return TR_OK;
}

int tr_port_stats_read(tr_switch *s, uint32_t port, tr_port_stats *out)
{
    if (port >= TR_MAX_PORTS)
        return TR_ERANGE;
    tr_switch_lock(s);
    memset(out, 0, sizeof *out);
    if (s->ports[port])
        *out = s->ports[port]->stats;
    tr_switch_unlock(s);
    return TR_OK;
}

void tr_drops_read(tr_switch *s, uint64_t out[TR_DROP_COUNT])
{
    tr_switch_lock(s);
    memcpy(out, s->drops, sizeof s->drops);
    tr_switch_unlock(s);
}

/* ---- account of all frames ---- */

static void count_held(const tr_pkt *p, tr_account *a)
{
    for (; p; p = p->next) {
        a->held_frames++;
        a->held_virt += p->virt;
        /* frames whose virtual payload will not be truncated */
        a->held_data += p->virt && !p->copy &&
                        (uint64_t)p->len + p->virt <= p->trunc;
    }
}

void tr_account_read(tr_switch *s, tr_account *out)
{
    tr_switch_lock(s);
    *out = s->account;
    out->rx_frames = out->dropped_frames = out->held_frames = 0;
    out->held_virt = out->held_data = 0;
    for (unsigned i = 0; i < TR_DROP_COUNT; i++)
        out->dropped_frames += s->drops[i];
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++) {
        const tr_port *t = s->ports[i];
        if (!t)
            continue;
        out->rx_frames += t->stats.rx_packets;
        for (unsigned k = 0; k < TR_MAX_PRIORITIES; k++)
            count_held(t->queue[k].head, out);
    }
    count_held(s->resubmitted.head, out);
    count_held(s->recirculated.head, out);
    count_held(s->out_head, out);
    tr_switch_unlock(s);
}
