/* The inner loops of the lookup benchmark: one table, no packets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "tr_table.h"

#define WORDS ((BENCH_KEY_BYTES + 7u) / 8u)
#define SLOT_BYTES 32u

/* IPv4 addresses, protocol, ports; ports are ranges in a range table. */
static const tr_key_field TERNARY[] = {
    { 0, 4, 0 }, { 4, 4, 0 }, { 8, 1, 0 }, { 9, 2, 0 }, { 11, 2, 0 },
};
static const tr_key_field RANGES[] = {
    { 0, 4, 0 }, { 4, 4, 0 }, { 8, 1, 0 }, { 9, 2, 1 }, { 11, 2, 1 },
};

struct bench_table {
    tr_table_desc desc;
    tr_table table;
};

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bench_table *bench_table_new(int ranges, uint32_t max_size)
{
    bench_table *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->desc = (tr_table_desc){
        .name = "bench",
        .match = ranges ? TR_RANGE : TR_TERNARY,
        .key_bytes = BENCH_KEY_BYTES,
        .key_words = WORDS,
        .max_size = max_size,
        .profile = -1,
        .entries = 1,
        .slot_bytes = SLOT_BYTES,
        .fields = ranges ? RANGES : TERNARY,
        .n_fields = 5,
    };
    b->table.desc = &b->desc;
    b->table.max_size = max_size;
    return b;
}

void bench_table_free(bench_table *b)
{
    tr_table_clear(&b->table);
    free(b);
}

/* The handle, or a negative error; ns gets the CPU time. */
int bench_table_add(bench_table *b, const uint8_t *key, const uint8_t *mask,
                    int32_t priority, uint64_t *ns)
{
    tr_target target = { .kind = TR_TARGET_ACTION };
    uint64_t begin = cpu_ns();
    int handle = tr_table_add(&b->table, key, mask, priority, &target, 0, 0);
    *ns = cpu_ns() - begin;
    return handle;
}

int bench_table_remove(bench_table *b, int handle, uint64_t *ns)
{
    uint64_t begin = cpu_ns();
    int error = tr_table_remove(&b->table, handle);
    *ns = cpu_ns() - begin;
    return error;
}

/* Looks keys up, WORDS words each and one after the other, in turn; hits: how
 * many found an entry. Returns the CPU time in ns. */
uint64_t bench_table_look_up(const bench_table *b, const uint8_t *keys,
                             uint32_t n_keys, uint64_t lookups, uint64_t *hits)
{
    const tr_table *t = &b->table;
    uint64_t begin = cpu_ns(), found = 0;
    uint32_t at = 0;
    for (uint64_t i = 0; i < lookups; i++) {
        const uint8_t *key = keys + (size_t)at * WORDS * 8u;
        const tr_entry *e = b->desc.match == TR_RANGE
                                ? tr_lookup_range(t, key)
                                : tr_lookup(t, key, WORDS, TR_TERNARY,
                                            SLOT_BYTES);
        found += e != NULL;
        at = at + 1u < n_keys ? at + 1u : 0u;
    }
    *hits = found;
    return cpu_ns() - begin;
}

static int matches(const tr_table *t, const tr_entry *e, const uint8_t *key)
{
    const uint8_t *low = tr_key_of(e), *high = tr_mask_of_entry(t, e);
    for (uint32_t i = 0; i < t->desc->n_fields; i++) {
        const tr_key_field *f = &t->desc->fields[i];
        unsigned b = f->offset, end = b + f->nbytes;
        if (f->range) {
            if (memcmp(key + b, low + b, f->nbytes) < 0 ||
                memcmp(key + b, high + b, f->nbytes) > 0)
                return 0;
            continue;
        }
        for (; b < end; b++)
            if ((key[b] & high[b]) != low[b])
                return 0;
    }
    return 1;
}

/* The same by looking at one entry after the other. */
uint64_t bench_table_scan(const bench_table *b, const uint8_t *keys,
                          uint32_t n_keys, uint64_t lookups, uint64_t *hits)
{
    const tr_table *t = &b->table;
    uint64_t begin = cpu_ns(), found = 0;
    for (uint64_t i = 0; i < lookups; i++) {
        const uint8_t *key = keys + (size_t)(i % n_keys) * WORDS * 8u;
        const tr_entry *best = NULL;
        for (uint32_t h = 0; h < t->handles.top; h++) {
            const tr_entry *e = t->by_handle[h];
            if (e && (!best || e->priority > best->priority) &&
                matches(t, e, key))
                best = e;
        }
        found += best != NULL;
    }
    *hits = found;
    return cpu_ns() - begin;
}
