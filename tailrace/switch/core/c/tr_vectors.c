/* Bit vectors: lookups in tables with many masks, and with ranges.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For each nibble (4 bits) of the key and each of its 16 values there is a row:
 * a bit vector of the entries that match if the nibble has this value. The
 * intersection of the rows for all nibbles of a key is the set of matching
 * entries. A nibble of a range field has four groups of rows: above and equal
 * to the lower bound, below and equal to the upper bound. These are combined
 * like the digits in a comparison of two numbers, from the last digit to the
 * first. Entries are divided into blocks, whose rows occupy two cache lines.
 * Most blocks have no match left after a few selective nibbles. The time does
 * not depend on the number of masks, and an update changes one bit of each row.
 *
 * T. V. Lakshman, D. Stiliadis: High-speed policy-based packet forwarding using
 * efficient multi-dimensional range matching, SIGCOMM 1998. A lookup leaves a
 * block when no match is left; this replaces the aggregated bit vectors of
 * F. Baboescu, G. Varghese: Scalable packet classification, SIGCOMM 2001.
 */
#include "tr_table.h"

#include "tr_mem.h"

#include <stdlib.h>

#define WORDS 16u             /* words of a row; with 8, lookups take twice as
                               * long */
#define BLOCK (64u * WORDS)   /* entries of a block */
#define VALUES 16u            /* values of a nibble */

/* Groups of rows for a nibble of a range field: its value is above, equal to the
 * lower bound's nibble; below, equal to the upper bound's nibble. */
enum { RANGE_ABOVE, RANGE_LOW, RANGE_BELOW, RANGE_HIGH, RANGE_ROWS };

typedef uint64_t row[WORDS];

typedef struct block {
    alignas(64) row taken;    /* positions that have an entry */
    uint32_t count;
    int32_t top_priority;     /* at least the priority of every entry */
    uint32_t n_order;
    uint32_t *order;          /* nibbles that a mask covers, the most
                                 selective first */
    uint32_t *expected;       /* by nibble: mean number of matching entries */
    uint32_t (*matches)[VALUES]; /* by nibble and value: matching entries */
    row *rows;                /* VALUES rows for each group */
} block;

struct tr_vectors {
    uint32_t nibbles;         /* nibbles of a key */
    uint32_t groups;          /* groups of VALUES rows in a block */
    uint32_t n_blocks;
    block **blocks;
    uint32_t group[];         /* by nibble: its first group */
};

static unsigned nibble(const uint8_t *bytes, uint32_t i)
{
    return i & 1u ? bytes[i / 2] & 15u : bytes[i / 2] >> 4;
}

static size_t bytes_of(uint32_t nibbles, uint32_t groups)
{
    return sizeof(block) + (size_t)groups * VALUES * sizeof(row) +
           (size_t)nibbles * (2u + VALUES) * sizeof(uint32_t);
}

static size_t block_bytes(const tr_vectors *v)
{
    return bytes_of(v->nibbles, v->groups);
}

size_t tr_vectors_bytes(const tr_table_desc *d, uint32_t entries)
{
    uint32_t groups = 0;
    uint32_t blocks = (entries + BLOCK - 1u) / BLOCK;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        groups += 2u * f->nbytes * (f->range ? RANGE_ROWS : 1u);
    }
    return bytes_of(2u * d->key_bytes, groups) * blocks;
}

tr_vectors *tr_vectors_new(const tr_table_desc *d)
{
    uint32_t nibbles = 2u * d->key_bytes;
    tr_vectors *v = tr_calloc(1, sizeof *v + nibbles * sizeof *v->group);
    if (!v)
        return NULL;
    v->nibbles = nibbles;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        for (uint32_t h = 2u * f->offset; h < 2u * (f->offset + f->nbytes);
             h++) {
            v->group[h] = v->groups;
            v->groups += f->range ? RANGE_ROWS : 1u;
        }
    }
    return v;
}

void tr_vectors_free(tr_vectors *v)
{
    if (!v)
        return;
    for (uint32_t i = 0; i < v->n_blocks; i++)
        tr_mem_free(v->blocks[i], block_bytes(v));
    free(v->blocks);
    free(v);
}

/* The block of a handle, created if necessary; NULL: no memory. */
static block *block_of(tr_vectors *v, uint32_t handle)
{
    uint32_t i = handle / BLOCK;
    if (i >= v->n_blocks) {
        block **list = tr_realloc(v->blocks, (i + 1u) * sizeof *list);
        if (!list)
            return NULL;
        memset(list + v->n_blocks, 0, (i + 1u - v->n_blocks) * sizeof *list);
        v->blocks = list;
        v->n_blocks = i + 1u;
    }
    if (!v->blocks[i]) {
        block *b = tr_mem_new(block_bytes(v));
        if (!b)
            return NULL;
        b->rows = (row *)(b + 1);
        b->matches =
            (uint32_t (*)[VALUES])(b->rows + (size_t)v->groups * VALUES);
        b->expected = (uint32_t *)(b->matches + v->nibbles);
        b->order = b->expected + v->nibbles;
        b->top_priority = INT32_MIN;
        v->blocks[i] = b;
    }
    return v->blocks[i];
}

static void set_bit(uint64_t *bits, uint32_t i, int on)
{
    uint64_t bit = UINT64_C(1) << (i % 64u);
    bits[i / 64u] = on ? bits[i / 64u] | bit : bits[i / 64u] & ~bit;
}

/* Adds `by` to b->matches of nibble h: 1 for an added entry, -1 for a removed
 * entry. */
static void add_matches(block *b, uint32_t h, unsigned key, unsigned mask,
                        int by)
{
    for (unsigned x = 0; x < VALUES; x++)
        if ((x & mask) == key)
            b->matches[h][x] += (uint32_t)by;
}

/* Sorts the nibbles by selectivity after an update, for packets whose keys are
 * distributed like the keys of the entries: access lists mostly concern a few
 * networks. */
static void sort_nibbles(block *b, const tr_table_desc *d)
{
    b->n_order = 0;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        for (uint32_t h = 2u * f->offset;
             !f->range && h < 2u * (f->offset + f->nbytes); h++) {
            uint64_t sum = 0, squares = 0;
            for (unsigned x = 0; x < VALUES; x++) {
                sum += b->matches[h][x];
                squares += (uint64_t)b->matches[h][x] * b->matches[h][x];
            }
            if (sum == (uint64_t)VALUES * b->count)
                continue;     /* no entry's mask covers this nibble */
            b->expected[h] = (uint32_t)(squares / sum);
            uint32_t place = b->n_order++;
            for (; place > 0 &&
                   b->expected[b->order[place - 1]] > b->expected[h];
                 place--)
                b->order[place] = b->order[place - 1];
            b->order[place] = h;
        }
    }
}

int tr_vectors_add(const tr_table *t, const tr_entry *e)
{
    tr_vectors *v = t->vectors;
    const tr_table_desc *d = t->desc;
    const uint8_t *key = tr_key_of(e), *mask = tr_mask_of_entry(t, e);
    uint32_t handle = (uint32_t)tr_rest(e)->handle, bit = handle % BLOCK;
    block *b = block_of(v, handle);
    if (!b)
        return TR_ENOMEM;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        for (uint32_t h = 2u * f->offset; h < 2u * (f->offset + f->nbytes);
             h++) {
            unsigned k = nibble(key, h), m = nibble(mask, h);
            row *rows = b->rows + (size_t)v->group[h] * VALUES;
            for (unsigned x = 0; x < VALUES; x++) {
                if (!f->range) {
                    set_bit(rows[x], bit, (x & m) == k);
                    continue;
                }
                set_bit(rows[RANGE_ABOVE * VALUES + x], bit, x > k);
                set_bit(rows[RANGE_LOW * VALUES + x], bit, x == k);
                set_bit(rows[RANGE_BELOW * VALUES + x], bit, x < m);
                set_bit(rows[RANGE_HIGH * VALUES + x], bit, x == m);
            }
            if (!f->range)
                add_matches(b, h, k, m, 1);
        }
    }
    set_bit(b->taken, bit, 1);
    b->count++;
    sort_nibbles(b, d);
    if (e->priority > b->top_priority)
        b->top_priority = e->priority;
    return TR_OK;
}

void tr_vectors_remove(const tr_table *t, const tr_entry *e)
{
    tr_vectors *v = t->vectors;
    const tr_table_desc *d = t->desc;
    const uint8_t *key = tr_key_of(e), *mask = tr_mask_of_entry(t, e);
    uint32_t handle = (uint32_t)tr_rest(e)->handle;
    block *b = v->blocks[handle / BLOCK];
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        for (uint32_t h = 2u * f->offset;
             !f->range && h < 2u * (f->offset + f->nbytes); h++)
            add_matches(b, h, nibble(key, h), nibble(mask, h), -1);
    }
    set_bit(b->taken, handle % BLOCK, 0);
    if (--b->count == 0)
        b->top_priority = INT32_MIN;
    sort_nibbles(b, d);
}

/* hits &= rows; returns whether an entry is left. */
static int narrow(row hits, const row rows)
{
    uint64_t any = 0;
    for (unsigned w = 0; w < WORDS; w++)
        any |= hits[w] &= rows[w];
    return any != 0;
}

/* Removes from hits the entries whose range of field f does not contain the
 * key's value; returns whether an entry is left. */
static int narrow_range(const tr_vectors *v, const block *b,
                        const tr_key_field *f, const uint8_t *key, row hits)
{
    /* entries whose lower (upper) bound admits the key's nibbles from h on */
    row low, high;
    memset(low, 0xff, sizeof low);
    memset(high, 0xff, sizeof high);
    for (uint32_t n = 2u * f->nbytes; n > 0; n--) {
        uint32_t h = 2u * f->offset + n - 1u;
        const row *rows =
            b->rows + (size_t)v->group[h] * VALUES + nibble(key, h);
        for (unsigned w = 0; w < WORDS; w++) {
            low[w] = rows[RANGE_ABOVE * VALUES][w] |
                     (rows[RANGE_LOW * VALUES][w] & low[w]);
            high[w] = rows[RANGE_BELOW * VALUES][w] |
                      (rows[RANGE_HIGH * VALUES][w] & high[w]);
        }
    }
    return narrow(hits, low) && narrow(hits, high);
}

static const uint64_t *row_of(const tr_vectors *v, const block *b, uint32_t h,
                              const uint8_t *key)
{
    return b->rows[(size_t)v->group[h] * VALUES + nibble(key, h)];
}

/* Sets hits to the matching entries of a block; returns whether there are any.
 */
static int block_hits(const tr_vectors *v, const tr_table_desc *d,
                      const block *b, const uint8_t *key, row hits)
{
    memcpy(hits, b->taken, sizeof b->taken);
    uint32_t i = 0;
    for (; i + 4u <= b->n_order; i += 4u) {
        const uint64_t *r0 = row_of(v, b, b->order[i], key);
        const uint64_t *r1 = row_of(v, b, b->order[i + 1], key);
        const uint64_t *r2 = row_of(v, b, b->order[i + 2], key);
        const uint64_t *r3 = row_of(v, b, b->order[i + 3], key);
        uint64_t any = 0;
        for (unsigned w = 0; w < WORDS; w++)
            any |= hits[w] &= r0[w] & r1[w] & r2[w] & r3[w];
        if (!any)
            return 0;
    }
    for (; i < b->n_order; i++)
        if (!narrow(hits, row_of(v, b, b->order[i], key)))
            return 0;
    for (i = 0; i < d->n_fields && d->match == TR_RANGE; i++)
        if (d->fields[i].range &&
            !narrow_range(v, b, &d->fields[i], key, hits))
            return 0;
    return 1;
}

/* Removes one entry from hits and returns its position; -1: none is left. */
static int take_hit(row hits)
{
    for (unsigned w = 0; w < WORDS; w++)
        if (hits[w]) {
            int i = (int)(64u * w) + __builtin_ctzll(hits[w]);
            hits[w] &= hits[w] - 1u;
            return i;
        }
    return -1;
}

tr_entry *tr_lookup_vectors(const tr_table *t, const uint8_t *key)
{
    const tr_vectors *v = t->vectors;
    tr_entry *best = NULL;
    for (uint32_t i = 0; i < v->n_blocks; i++) {
        const block *b = v->blocks[i];
        row hits;
        if (!b || !b->count || (best && best->priority > b->top_priority) ||
            !block_hits(v, t->desc, b, key, hits))
            continue;
        for (int hit; (hit = take_hit(hits)) >= 0;) {
            tr_entry *e = t->by_handle[i * BLOCK + (uint32_t)hit];
            if (!best || tr_entry_wins(e, best))
                best = e;
        }
    }
    return best;
}
