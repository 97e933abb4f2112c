/* Index of entries by key and mask, and free numbers, for updates.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ternary and range tables may hold many entries of one key and mask, which
 * differ in priority. The index has the best of them, and in its treap (R.
 * Seidel, C. R. Aragon: Randomized search trees, Algorithmica 1996) those of
 * lower priority. So an update takes logarithmic time.
 */
#define _GNU_SOURCE 1
#include "tr_table.h"

#include "tr_mem.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_BUCKETS 16u

static uint64_t seed;

__attribute__((constructor)) static void make_seed(void)
{
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)time(NULL) ^ (uintptr_t)&seed;
}

uint64_t tr_seed(void)
{
    return seed;
}

/* ---- trees: of higher priority above, of lower below ---- */

/* Who is nearer to the root: as good as random, and unknown to clients. */
static uint64_t rank(const tr_entry *e)
{
    uint64_t number = e->seq;
    return tr_hash_words((const uint8_t *)&number, 1, NULL, seed);
}

static tr_entry **tree_find(tr_entry **at, int32_t priority)
{
    while (*at && (*at)->priority != priority)
        at = priority > (*at)->priority ? &tr_rest(*at)->above
                                        : &tr_rest(*at)->below;
    return at;
}

static void tree_add(tr_entry **at, tr_entry *e)
{
    while (*at && rank(*at) > rank(e))
        at = e->priority > (*at)->priority ? &tr_rest(*at)->above
                                           : &tr_rest(*at)->below;
    tr_entry *rest = *at, **above = &tr_rest(e)->above,
             **below = &tr_rest(e)->below;
    *at = e;
    while (rest) {            /* what was there is split */
        if (rest->priority > e->priority) {
            *above = rest;
            above = &tr_rest(rest)->below;
            rest = *above;
        } else {
            *below = rest;
            below = &tr_rest(rest)->above;
            rest = *below;
        }
    }
    *above = *below = NULL;
}

static void tree_remove(tr_entry **at)
{
    tr_entry *above = tr_rest(*at)->above, *below = tr_rest(*at)->below;
    while (above && below) {  /* its children are joined */
        if (rank(above) > rank(below)) {
            *at = above;
            at = &tr_rest(above)->below;
            above = *at;
        } else {
            *at = below;
            at = &tr_rest(below)->above;
            below = *at;
        }
    }
    *at = above ? above : below;
}

/* ---- the index ---- */

static tr_entry **bucket(const tr_table *t, const tr_entry *e)
{
    unsigned words = t->desc->key_words;
    uint64_t hash = tr_hash_words(tr_key_of(e), words, NULL, seed);
    hash = tr_hash_words(tr_mask_of_entry(t, e), words, NULL, hash ^ seed);
    return &t->index[hash & (t->n_index - 1)];
}

/* Where the best entry of like's key and mask stands, or would. */
static tr_entry **place(const tr_table *t, const tr_entry *like)
{
    size_t bytes = t->desc->key_words * sizeof(uint64_t);
    tr_entry **at = bucket(t, like);
    while (*at && (memcmp(tr_key_of(*at), tr_key_of(like), bytes) ||
                   memcmp(tr_mask_of_entry(t, *at), tr_mask_of_entry(t, like),
                          bytes)))
        at = &tr_rest(*at)->chain;
    return at;
}

int tr_indexed(const tr_table *t)
{
    return t->desc->match == TR_TERNARY || t->desc->match == TR_RANGE;
}

tr_entry *tr_index_best(const tr_table *t, const tr_entry *like)
{
    return t->n_index ? *place(t, like) : NULL;
}

tr_entry *tr_index_find(const tr_table *t, const tr_entry *like)
{
    tr_entry *best = tr_index_best(t, like);
    return !best || best->priority == like->priority
               ? best
               : *tree_find(&tr_rest(best)->worse, like->priority);
}

static void index_free(tr_entry **index, uint32_t n)
{
    if (index)
        tr_mem_free(index, n * sizeof *index);
}

int tr_index_room(tr_table *t)
{
    if (t->n_keys < t->n_index)
        return TR_OK;
    uint32_t n = t->n_index, more = n ? 2u * n : FIRST_BUCKETS;
    tr_entry **old = t->index, **index = tr_mem_new(more * sizeof *index);
    if (!index)
        return TR_ENOMEM;
    t->index = index;
    t->n_index = more;
    for (uint32_t i = 0; i < n; i++)
        for (tr_entry *e = old[i], *next; e; e = next) {
            tr_entry **at = bucket(t, e);
            next = tr_rest(e)->chain;
            tr_rest(e)->chain = *at;
            *at = e;
        }
    index_free(old, n);
    return TR_OK;
}

void tr_index_add(tr_table *t, tr_entry *e)
{
    tr_entry **at = place(t, e), *best = *at;
    if (best && tr_entry_wins(best, e)) {
        tree_add(&tr_rest(best)->worse, e);
        return;
    }
    tr_entry *chain = NULL, *worse = NULL;
    if (best) {
        chain = tr_rest(best)->chain;
        worse = tr_rest(best)->worse;
        tree_add(&worse, best);
    } else {
        t->n_keys++;
    }
    tr_rest(e)->chain = chain;
    tr_rest(e)->worse = worse;
    *at = e;
}

void tr_index_remove(tr_table *t, tr_entry *e)
{
    tr_entry **at = place(t, e), *best = *at;
    if (best != e) {
        tree_remove(tree_find(&tr_rest(best)->worse, e->priority));
        return;
    }
    tr_entry *chain = tr_rest(e)->chain, *worse = tr_rest(e)->worse;
    *at = chain;
    if (!worse) {
        t->n_keys--;
        return;
    }
    tr_entry **next = &worse;
    while (tr_rest(*next)->above)
        next = &tr_rest(*next)->above;
    best = *next;
    tree_remove(next);
    tr_rest(best)->chain = chain;
    tr_rest(best)->worse = worse;
    *at = best;
}

void tr_index_clear(tr_table *t)
{
    index_free(t->index, t->n_index);
    t->index = NULL;
    t->n_index = t->n_keys = 0;
}

/* ---- numbers ---- */

int tr_number_new(tr_numbers *n, void ***list, uint32_t *room)
{
    if (n->n_freed) {
        uint32_t least = n->freed[0], last = n->freed[--n->n_freed], at = 0;
        for (uint32_t child; (child = 2 * at + 1) < n->n_freed; at = child) {
            if (child + 1 < n->n_freed &&
                n->freed[child + 1] < n->freed[child])
                child++;
            if (n->freed[child] > last)
                break;
            n->freed[at] = n->freed[child];
        }
        n->freed[at] = last;
        return (int)least;
    }
    if (n->top == *room) {
        uint32_t more = *room ? 2u * *room : 8u;
        uint32_t *freed = tr_realloc(n->freed, more * sizeof *freed);
        if (!freed)
            return TR_ENOMEM;
        n->freed = freed;
        void **bigger = tr_realloc(*list, more * sizeof *bigger);
        if (!bigger)
            return TR_ENOMEM;
        memset(bigger + *room, 0, (more - *room) * sizeof *bigger);
        *list = bigger;
        *room = more;
    }
    return (int)n->top++;
}

void tr_number_free(tr_numbers *n, uint32_t number)
{
    uint32_t at = n->n_freed++;
    for (; at > 0 && n->freed[(at - 1) / 2] > number; at = (at - 1) / 2)
        n->freed[at] = n->freed[(at - 1) / 2];
    n->freed[at] = number;
}

void tr_numbers_clear(tr_numbers *n)
{
    n->n_freed = n->top = 0;
}
