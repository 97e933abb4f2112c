/* Index of entries by key and mask, and allocation of handles, for updates.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ternary and range tables may have many entries with the same key and mask but
 * different priorities. The index is a hash table with the best entry of each
 * key and mask. The best entry links to a treap of the entries with lower
 * priorities (R. Seidel, C. R. Aragon: Randomized search trees, Algorithmica
 * 1996). So an update takes logarithmic time.
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

/* ---- treaps: `above` has higher priorities, `below` lower priorities ---- */

/* The heap order of a treap is pseudorandom; clients cannot predict it. */
static uint64_t rank(const tr_entry *e)
{
    uint64_t seq = e->seq;
    return tr_hash_words((const uint8_t *)&seq, 1, NULL, seed);
}

static tr_entry **tree_find(tr_entry **link, int32_t priority)
{
    while (*link && (*link)->priority != priority)
        link = priority > (*link)->priority ? &tr_rest(*link)->above
                                            : &tr_rest(*link)->below;
    return link;
}

static void tree_add(tr_entry **link, tr_entry *e)
{
    while (*link && rank(*link) > rank(e))
        link = e->priority > (*link)->priority ? &tr_rest(*link)->above
                                               : &tr_rest(*link)->below;
    tr_entry *subtree = *link, **above = &tr_rest(e)->above,
             **below = &tr_rest(e)->below;
    *link = e;
    while (subtree) {         /* splits the subtree that e replaces */
        if (subtree->priority > e->priority) {
            *above = subtree;
            above = &tr_rest(subtree)->below;
            subtree = *above;
        } else {
            *below = subtree;
            below = &tr_rest(subtree)->above;
            subtree = *below;
        }
    }
    *above = *below = NULL;
}

static void tree_remove(tr_entry **link)
{
    tr_entry *above = tr_rest(*link)->above, *below = tr_rest(*link)->below;
    while (above && below) {  /* joins the children of the removed entry */
        if (rank(above) > rank(below)) {
            *link = above;
            link = &tr_rest(above)->below;
            above = *link;
        } else {
            *link = below;
            link = &tr_rest(below)->above;
            below = *link;
        }
    }
    *link = above ? above : below;
}

/* ---- the index ---- */

static tr_entry **bucket(const tr_table *t, const tr_entry *e)
{
    unsigned words = t->desc->key_words;
    uint64_t hash = tr_hash_words(tr_key_of(e), words, NULL, seed);
    hash = tr_hash_words(tr_mask_of_entry(t, e), words, NULL, hash ^ seed);
    return &t->index[hash & (t->n_index - 1)];
}

/* The pointer to the best entry with the key and mask of `like`; if there is
 * none, the NULL pointer in which it would be stored. */
static tr_entry **find_best(const tr_table *t, const tr_entry *like)
{
    size_t bytes = t->desc->key_words * sizeof(uint64_t);
    tr_entry **link = bucket(t, like);
    while (*link &&
           (memcmp(tr_key_of(*link), tr_key_of(like), bytes) ||
            memcmp(tr_mask_of_entry(t, *link), tr_mask_of_entry(t, like),
                   bytes)))
        link = &tr_rest(*link)->chain;
    return link;
}

int tr_indexed(const tr_table *t)
{
    return t->desc->match == TR_TERNARY || t->desc->match == TR_RANGE;
}

tr_entry *tr_index_best(const tr_table *t, const tr_entry *like)
{
    return t->n_index ? *find_best(t, like) : NULL;
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

int tr_index_reserve(tr_table *t)
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
            tr_entry **link = bucket(t, e);
            next = tr_rest(e)->chain;
            tr_rest(e)->chain = *link;
            *link = e;
        }
    index_free(old, n);
    return TR_OK;
}

void tr_index_add(tr_table *t, tr_entry *e)
{
    tr_entry **link = find_best(t, e), *best = *link;
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
    *link = e;
}

void tr_index_remove(tr_table *t, tr_entry *e)
{
    tr_entry **link = find_best(t, e), *best = *link;
    if (best != e) {
        tree_remove(tree_find(&tr_rest(best)->worse, e->priority));
        return;
    }
    tr_entry *chain = tr_rest(e)->chain, *worse = tr_rest(e)->worse;
    *link = chain;
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
    *link = best;
}

void tr_index_clear(tr_table *t)
{
    index_free(t->index, t->n_index);
    t->index = NULL;
    t->n_index = t->n_keys = 0;
}

/* ---- handles ---- */

int tr_handle_new(tr_handle_pool *pool, void ***list, uint32_t *capacity)
{
    if (pool->n_freed) {
        uint32_t least = pool->freed[0], last = pool->freed[--pool->n_freed];
        uint32_t i = 0;
        for (uint32_t child; (child = 2 * i + 1) < pool->n_freed; i = child) {
            if (child + 1 < pool->n_freed &&
                pool->freed[child + 1] < pool->freed[child])
                child++;
            if (pool->freed[child] > last)
                break;
            pool->freed[i] = pool->freed[child];
        }
        pool->freed[i] = last;
        return (int)least;
    }
    if (pool->top == *capacity) {
        uint32_t more = *capacity ? 2u * *capacity : 8u;
        uint32_t *freed = tr_realloc(pool->freed, more * sizeof *freed);
        if (!freed)
            return TR_ENOMEM;
        pool->freed = freed;
        void **bigger = tr_realloc(*list, more * sizeof *bigger);
        if (!bigger)
            return TR_ENOMEM;
        memset(bigger + *capacity, 0, (more - *capacity) * sizeof *bigger);
        *list = bigger;
        *capacity = more;
    }
    return (int)pool->top++;
}

void tr_handle_free(tr_handle_pool *pool, uint32_t handle)
{
    uint32_t i = pool->n_freed++;
    for (; i > 0 && pool->freed[(i - 1) / 2] > handle; i = (i - 1) / 2)
        pool->freed[i] = pool->freed[(i - 1) / 2];
    pool->freed[i] = handle;
}

void tr_handles_clear(tr_handle_pool *pool)
{
    pool->n_freed = pool->top = 0;
}
