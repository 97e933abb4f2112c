/* How far an update or a lookup of a table walks at most.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_table.h"

/* The most slots in a row that are taken. */
uint32_t shape_longest_run(const tr_switch *s, uint32_t table)
{
    const tr_table *t = &s->tables[table];
    uint32_t longest = 0;
    for (uint32_t i = 0; i < t->n_tuples; i++) {
        const tr_tuple *u = &t->tuples[i];
        uint32_t run = 0;
        for (uint32_t k = 0; k < u->n_slots; k++) {
            const void *at = u->slots + (size_t)k * t->desc->slot_bytes;
            run = ((const tr_slot *)at)->taken ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
    }
    return longest;
}

static uint32_t depth(const tr_entry *e)
{
    if (!e)
        return 0;
    uint32_t above = depth(tr_rest(e)->above), below = depth(tr_rest(e)->below);
    return 1 + (above > below ? above : below);
}

/* The most keys and masks in one bucket of the index, or the deepest tree. */
uint32_t shape_longest_chain(const tr_switch *s, uint32_t table)
{
    const tr_table *t = &s->tables[table];
    uint32_t longest = 0;
    for (uint32_t i = 0; i < t->n_index; i++) {
        uint32_t chain = 0;
        for (const tr_entry *e = t->index[i]; e; e = tr_rest(e)->chain) {
            uint32_t tree = depth(tr_rest(e)->worse);
            longest = tree > longest ? tree : longest;
            chain++;
        }
        longest = chain > longest ? chain : longest;
    }
    return longest;
}

uint32_t shape_masks(const tr_switch *s, uint32_t table)
{
    return s->tables[table].n_tuples;
}

/* The longest run of taken slots of the worst of so many seeds: keys count up in a table that is half full. */
unsigned shape_worst_run(unsigned seeds, unsigned shift)
{
    enum { SLOTS = 8192 };
    static uint8_t taken[SLOTS];
    unsigned worst = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        memset(taken, 0, sizeof taken);
        for (uint64_t i = 0; i < SLOTS / 2; i++) {
            uint64_t key = i << shift;
            uint64_t slot = tr_hash_words((const uint8_t *)&key, 1, NULL, seed * 0x9e3779b97f4a7c15ULL);
            while (taken[slot % SLOTS])
                slot++;
            taken[slot % SLOTS] = 1;
        }
        unsigned run = 0;
        for (unsigned i = 0; i < 2 * SLOTS; i++) {
            run = taken[i % SLOTS] ? run + 1 : 0;
            worst = run > worst ? run : worst;
        }
    }
    return worst;
}
