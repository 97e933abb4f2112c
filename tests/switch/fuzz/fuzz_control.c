/* Random control calls, between packets, as a careless controller makes them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "fuzz.h"

/* Longest key, in bytes, and action data, in limbs, that calls may need. */
#define MAX_KEY 4096u
#define MAX_LIMBS 512u
/* Entries kept a table: enough for collisions, few enough to stay fast. */
#define MAX_ENTRIES 48
#define MAX_REPLICAS 8u
#define MAX_MEMBERS 4u

/* An index below n most of the time, now and then just past it or absurd. */
static uint32_t index_near(fuzz_rng *rng, uint64_t n)
{
    uint64_t dice = fuzz_below(rng, 32);
    if (dice == 0)
        return (uint32_t)fuzz_next(rng);
    if (dice == 1)
        return (uint32_t)n;
    return n ? (uint32_t)fuzz_below(rng, n) : 0;
}

/* A handle: small, so that it often exists; sometimes the default's. */
static int any_handle(fuzz_rng *rng)
{
    return (int)fuzz_below(rng, MAX_ENTRIES + 4) - 2;
}

/* Small numbers and short spans are likelier to mean something. What is not
 * used is not drawn, here and below: choices are dear where they are input. */
static uint64_t number(fuzz_rng *rng)
{
    uint32_t bits = 1 + (uint32_t)fuzz_below(rng, 64);
    uint64_t x = 0;
    fuzz_bytes(rng, (uint8_t *)&x, (bits + 7) / 8);
    return bits < 64 ? x & ((1ULL << bits) - 1) : x;
}

static tr_target random_target(fuzz_rng *rng, uint32_t kind, uint32_t limbs)
{
    static uint64_t data[MAX_LIMBS];
    tr_target target = {
        .kind = kind,
        .id = (uint32_t)fuzz_below(rng, 24),
        .data = data,
        .limbs = limbs < MAX_LIMBS ? limbs : MAX_LIMBS,
    };
    for (uint32_t i = 0; i < target.limbs; i++)
        data[i] = number(rng);
    if (fuzz_below(rng, 32) == 0)
        target.limbs = (uint32_t)fuzz_below(rng, target.limbs + 1);
    if (fuzz_below(rng, 64) == 0)
        target.kind = (uint32_t)fuzz_below(rng, 4);
    return target;
}

static tr_meter_rates random_rates(fuzz_rng *rng)
{
    tr_meter_rates rates = {number(rng), number(rng), number(rng),
                            number(rng), 0};
    if (fuzz_below(rng, 2)) {
        rates.pir = rates.cir;
        rates.pburst = rates.cburst;
        rates.eburst = number(rng);
    }
    return rates;
}

/* Key bytes, and a mask that suits the kind of table: all ones up to
 * prefix_bits, or whole bytes open or closed, or the upper end of a range. */
static uint32_t random_key(fuzz_rng *rng, const tr_table_desc *d, uint8_t *key,
                           uint8_t *mask)
{
    uint32_t prefix = (uint32_t)fuzz_below(rng, d->key_bytes * 8u + 1);
    uint32_t pattern = (uint32_t)fuzz_below(rng, 8);
    fuzz_bytes(rng, key, d->key_bytes);
    uint32_t sparse = (uint32_t)fuzz_below(rng, 4);
    for (uint32_t i = 0; i < d->key_bytes; i++) {
        if (sparse && fuzz_below(rng, 2))
            key[i] = 0;
        if (d->match == TR_LPM)
            mask[i] = prefix >= 8 * (i + 1) ? 0xff
                    : prefix <= 8 * i ? 0
                    : (uint8_t)(0xff00u >> (prefix - 8 * i));
        else
            mask[i] = pattern >> (i % 3) & 1 ? 0xff : 0;
    }
    for (uint32_t i = 0; i < d->key_bytes; i++) {
        if (d->match == TR_RANGE)
            mask[i] |= key[i];
        else if (d->match != TR_EXACT)
            key[i] &= mask[i];
    }
    return prefix;
}

static void insert_entry(tr_switch *s, fuzz_rng *rng, uint32_t table,
                         uint64_t now_ps)
{
    static uint8_t key[MAX_KEY], mask[MAX_KEY];
    const tr_table_desc *d = &s->prog->tables[table];
    if (d->key_bytes > MAX_KEY)
        return;
    if (tr_table_count(s, table) >= MAX_ENTRIES)
        tr_table_delete(s, table, any_handle(rng));
    uint32_t prefix = random_key(rng, d, key, mask);
    uint32_t kind = TR_TARGET_ACTION;
    if (d->indirect)
        kind = fuzz_below(rng, 2) ? TR_TARGET_MEMBER : TR_TARGET_GROUP;
    tr_target target = random_target(rng, kind, d->data_limbs);
    tr_table_insert(s, table, key, mask, prefix,
                    (int32_t)fuzz_below(rng, 16), &target,
                    fuzz_below(rng, 4) ? 0 : number(rng), now_ps);
}

static void table_call(tr_switch *s, fuzz_rng *rng, uint64_t now_ps)
{
    uint32_t n = s->prog->n_tables;
    uint32_t table = index_near(rng, n);
    uint32_t limbs = table < n ? s->prog->tables[table].data_limbs : 0;
    tr_target target;
    tr_meter_rates rates;
    int handle = any_handle(rng);
    int expired[8];
    uint32_t next = (uint32_t)fuzz_below(rng, 64);
    uint64_t a, b, colours[2 * TR_COLOURS];
    switch (fuzz_below(rng, 13)) {
    case 0:
        target = random_target(rng, TR_TARGET_ACTION, limbs);
        tr_table_modify(s, table, handle, &target, number(rng));
        break;
    case 1:
        tr_table_delete(s, table, handle);
        break;
    case 2:
        target = random_target(rng, TR_TARGET_ACTION, limbs);
        tr_table_default(s, table, fuzz_below(rng, 8) ? &target : NULL);
        break;
    case 3:
        tr_entry_counter(s, table, handle, &a, &b);
        tr_entry_counter_set(s, table, handle, number(rng), number(rng));
        break;
    case 4:
        rates = random_rates(rng);
        tr_entry_meter(s, table, handle, fuzz_below(rng, 4) ? &rates : NULL);
        break;
    case 5:
        if (tr_entry_colours(s, table, handle, colours) == TR_OK)
            tr_entry_colours_set(s, table, handle, colours);
        break;
    case 6:
        tr_entry_last_hit(s, table, handle, &a);
        tr_table_expired(s, table, now_ps, &next, 32, expired, 8);
        break;
    default:
        if (table < n)
            insert_entry(s, rng, table, now_ps);
        break;
    }
}

static void profile_call(tr_switch *s, fuzz_rng *rng)
{
    uint32_t n = s->prog->n_profiles;
    uint32_t profile = index_near(rng, n);
    uint32_t limbs = profile < n ? s->prog->profiles[profile].data_limbs : 0;
    tr_target target;
    int members[MAX_REPLICAS];
    uint32_t size;
    switch (fuzz_below(rng, 8)) {
    case 0:
        target = random_target(rng, TR_TARGET_ACTION, limbs);
        tr_member_modify(s, profile, any_handle(rng), &target);
        break;
    case 1:
        tr_member_delete(s, profile, any_handle(rng));
        break;
    case 2:
        target = random_target(rng, TR_TARGET_ACTION, limbs);
        tr_group_add(s, profile, (int)fuzz_below(rng, 2),
                     fuzz_below(rng, 2) ? &target : NULL);
        break;
    case 3:
        tr_group_delete(s, profile, any_handle(rng));
        break;
    case 4:
    case 5:
        size = (uint32_t)fuzz_below(rng, MAX_REPLICAS + 1);
        for (uint32_t i = 0; i < size; i++)
            members[i] = (int)fuzz_below(rng, 16);
        tr_group_set(s, profile, (int)fuzz_below(rng, 8), members, size);
        break;
    default:
        target = random_target(rng, TR_TARGET_ACTION, limbs);
        tr_member_add(s, profile, &target);
        break;
    }
}

static void extern_call(tr_switch *s, fuzz_rng *rng)
{
    static uint64_t limbs[MAX_LIMBS];
    static uint8_t values[MAX_MEMBERS * MAX_KEY], masks[MAX_MEMBERS * MAX_KEY];
    const tr_program *prog = s->prog;
    tr_meter_rates rates;
    uint32_t i = index_near(rng, 4);
    uint64_t cell = index_near(rng, 64);
    uint64_t pair[2], colours[2 * TR_COLOURS];
    uint32_t n, bytes;
    switch (fuzz_below(rng, 7)) {
    case 0:
        pair[0] = number(rng);
        pair[1] = number(rng);
        tr_counter_write(s, i, cell, 1, pair);
        tr_counter_read(s, i, cell, 1, pair);
        break;
    case 1:
        tr_register_read(s, i, cell, 1, limbs);
        break;
    case 2:
        n = i < prog->n_registers ? (prog->registers[i].bits + 63) / 64 : 0;
        for (uint32_t at = 0; at < n && at < MAX_LIMBS; at++)
            limbs[at] = number(rng);
        tr_register_write(s, i, cell, 1, limbs);
        break;
    case 3:
        tr_meter_read(s, i, cell, 1, &rates, values);
        break;
    case 4:
        if (tr_colours_read(s, i, cell, 1, colours) == TR_OK)
            tr_colours_write(s, i, cell, 1, colours);
        break;
    case 5:
        rates = random_rates(rng);
        tr_meter_write(s, i, cell, fuzz_below(rng, 3),
                       fuzz_below(rng, 4) ? &rates : NULL);
        break;
    default:
        n = (uint32_t)fuzz_below(rng, MAX_MEMBERS + 1);
        bytes = i < prog->n_vsets ? s->vsets[i].key_bytes : 0;
        if (bytes > MAX_KEY)
            break;
        fuzz_bytes(rng, values, n * bytes);
        fuzz_bytes(rng, masks, n * bytes);
        tr_vset_write(s, i, values, masks, n);
        break;
    }
}

static void replication_call(tr_switch *s, fuzz_rng *rng)
{
    tr_replica replicas[MAX_REPLICAS];
    uint32_t n = (uint32_t)fuzz_below(rng, MAX_REPLICAS + 1);
    for (uint32_t i = 0; i < n; i++) {
        replicas[i].port = index_near(rng, 16);
        replicas[i].instance = (uint32_t)fuzz_below(rng, 70000);
    }
    uint32_t id = index_near(rng, 16);
    switch (fuzz_below(rng, 4)) {
    case 0:
        tr_mcast_set(s, id, replicas, n);
        break;
    case 1:
        tr_clone_set(s, id, replicas, n, (uint32_t)fuzz_below(rng, 10),
                     fuzz_below(rng, 2) ? 0 : (uint32_t)fuzz_below(rng, 200));
        break;
    case 2:
        tr_mcast_delete(s, id);
        break;
    default:
        tr_clone_delete(s, id);
        break;
    }
}

static tr_pfc_config random_pfc(fuzz_rng *rng)
{
    tr_pfc_config pfc = {
        .enabled = (uint8_t)fuzz_below(rng, 256),
        .quanta = (uint16_t)fuzz_below(rng, 65536),
        .rise = (uint8_t)(fuzz_below(rng, 2) ? 0 : fuzz_below(rng, 256)),
    };
    for (unsigned i = 0; i < TR_MAX_PRIORITIES; i++) {
        pfc.limits[i].xoff_bytes = fuzz_below(rng, 10000);
        pfc.limits[i].xon_bytes = fuzz_below(rng, pfc.limits[i].xoff_bytes + 1);
        pfc.limits[i].headroom_bytes = fuzz_below(rng, 10000);
    }
    if (fuzz_below(rng, 4) == 0) {
        pfc.watchdog.detect_ps = number(rng);
        pfc.watchdog.restore_ps = number(rng);
        pfc.watchdog.share_ppm = (uint32_t)fuzz_below(rng, TR_ALWAYS_PPM + 1);
        pfc.watchdog.ignore = (uint32_t)fuzz_below(rng, 2);
    }
    return pfc;
}

static tr_buffer_config random_buffer(fuzz_rng *rng)
{
    tr_buffer_config buffer = {
        .bytes = fuzz_below(rng, 2) ? 0 : fuzz_below(rng, 200000),
        .port_bytes = fuzz_below(rng, 2) ? 0 : fuzz_below(rng, 20000),
        .alpha_num = fuzz_below(rng, 2) ? 0 : (uint32_t)fuzz_below(rng, 8),
        .alpha_den = (uint32_t)fuzz_below(rng, 16),
    };
    return buffer;
}

static void port_call(tr_switch *s, fuzz_rng *rng)
{
    uint32_t port = index_near(rng, 16);
    uint32_t prio = index_near(rng, TR_MAX_PRIORITIES + 1);
    tr_buffer_config buffer;
    tr_pfc_config pfc;
    switch (fuzz_below(rng, 7)) {
    case 0:
        tr_port_rate(s, port, fuzz_below(rng, 2) ? 0 : number(rng));
        break;
    case 1:
        tr_port_delay(s, port, fuzz_below(rng, 100000));
        break;
    case 2:
        /* sometimes of all ports */
        pfc = random_pfc(rng);
        tr_port_pfc(s, fuzz_below(rng, 4) ? port : TR_MAX_PORTS, &pfc);
        break;
    case 3:
        /* never 0, no limit: a blocked port would keep all that comes */
        tr_queue_depth(s, port, prio, 1 + (uint32_t)fuzz_below(rng, 32),
                       fuzz_below(rng, 2) ? 0 : fuzz_below(rng, 100000));
        break;
    case 4:
        tr_queue_rate_pps(s, port, prio, fuzz_below(rng, 2) ? 0 : number(rng));
        break;
    case 5:
        buffer = random_buffer(rng);
        tr_buffer_set(s, &buffer);
        break;
    default:
        /* the data plane's own calls want the lock held */
        tr_switch_lock(s);
        tr_port_block(s, port, fuzz_below(rng, 4) == 0);
        tr_port_up(s, port, fuzz_below(rng, 4) != 0);
        tr_switch_unlock(s);
        break;
    }
}

void fuzz_control(tr_switch *s, fuzz_rng *rng, uint64_t now_ps, int ports)
{
    switch (fuzz_below(rng, 10)) {
    case 0:
        profile_call(s, rng);
        break;
    case 1:
        extern_call(s, rng);
        break;
    case 2:
        replication_call(s, rng);
        break;
    case 3:
        if (ports)
            port_call(s, rng);
        break;
    default:
        table_call(s, rng, now_ps);
        break;
    }
}
