/* Match-action tables: tuple space search, with a hash table for each mask.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tuple is the hash table of one mask. An exact table has one tuple, an LPM
 * table one for each prefix length in use, a ternary table one for each mask.
 * Tuples are searched in order of decreasing priority (LPM: prefix length), and
 * the search ends at the first tuple that cannot have a better entry. Ternary
 * tables with many masks, and range tables, have bit vectors instead
 * (tr_vectors.c); small range tables are searched linearly.
 */
#include "tr_table.h"

#include "tr_mem.h"

#include <stdlib.h>

/* Minimum number of slots for each entry; number of slots of an empty hash
 * table. */
#define SLOTS_PER_ENTRY 2u
#define FIRST_SLOTS 16u
/* Measured: bit vectors are faster when a table has more than MASKS masks plus
 * one mask for every ENTRIES_PER_MASK entries. Vectors may use VECTOR_BYTES of
 * memory for each entry. An update of the table adds at most MOVES_PER_UPDATE
 * older entries to the vectors. */
#define MASKS 6u
#define ENTRIES_PER_MASK 256u
#define VECTOR_BYTES 512u
#define MOVES_PER_UPDATE 64u

static uint32_t key_bytes(const tr_table *t)
{
    return t->desc->key_words * 8u;
}

void tr_entry_free(tr_entry *e)
{
    if (e)
        tr_mem_free(tr_rest(e), tr_rest(e)->size);
}

tr_entry *tr_entry_new(uint32_t data_limbs, uint32_t key_words, int metered)
{
    uint32_t limbs = 2u * key_words + data_limbs;
    size_t size = sizeof(tr_entry_rest) + sizeof(tr_entry) +
                  limbs * sizeof(uint64_t) + (metered ? sizeof(tr_meter) : 0);
    tr_entry_rest *rest = tr_mem_new(size);
    if (!rest)
        return NULL;
    rest->size = (uint32_t)size;
    tr_entry *e = (tr_entry *)(rest + 1);
    e->data = e->limbs + key_words;
    if (metered)
        rest->meter = (tr_meter *)(void *)(e->limbs + limbs);
    return e;
}

/* Sets the target of an entry; TR_EINVAL: the action data are too long, or the
 * kind is invalid. */
int tr_entry_target(tr_entry *e, const tr_target *target, uint32_t data_limbs)
{
    if (target->limbs > data_limbs || target->kind > TR_TARGET_GROUP)
        return TR_EINVAL;
    e->kind = target->kind;
    e->id = target->id;
    if (target->limbs)
        memcpy(e->data, target->data, target->limbs * sizeof *e->data);
    return TR_OK;
}

static void slots_free(const tr_table *t, tr_tuple *u)
{
    tr_mem_free(u->slots, (size_t)u->n_slots * t->desc->slot_bytes);
}

static void tuples_free(tr_table *t)
{
    for (uint32_t i = 0; i < t->n_tuples; i++) {
        slots_free(t, &t->tuples[i]);
        free(t->tuples[i].mask);
    }
    free(t->tuples);
    t->tuples = NULL;
    t->n_tuples = 0;
}

void tr_table_clear(tr_table *t)
{
    for (uint32_t i = 0; i < t->n_handles; i++)
        tr_entry_free(t->by_handle[i]);
    tuples_free(t);
    tr_entry_free(t->defaults);
    free(t->by_handle);
    free(t->handles.freed);
    tr_index_clear(t);
    tr_vectors_free(t->vectors);
    const tr_table_desc *desc = t->desc;
    memset(t, 0, sizeof *t);
    t->desc = desc;
}

/* ---- tuples ---- */

/* Restores the order of the tuples after the top priority of tuple i rose. */
static void tuple_resort(tr_table *t, uint32_t i)
{
    tr_tuple u = t->tuples[i];
    for (; i > 0 && t->tuples[i - 1].top_priority < u.top_priority; i--)
        t->tuples[i] = t->tuples[i - 1];
    t->tuples[i] = u;
}

static int tuple_find(const tr_table *t, const uint8_t *mask)
{
    for (uint32_t i = 0; i < t->n_tuples; i++)
        if (!memcmp(t->tuples[i].mask, mask, key_bytes(t)))
            return (int)i;
    return -1;
}

static int tuple_add(tr_table *t, const uint8_t *mask)
{
    tr_tuple *list =
        tr_realloc(t->tuples, (t->n_tuples + 1) * sizeof *t->tuples);
    if (!list)
        return -1;
    t->tuples = list;
    uint8_t *copy = tr_malloc(key_bytes(t) ? key_bytes(t) : 1);
    size_t size = (size_t)FIRST_SLOTS * t->desc->slot_bytes;
    uint8_t *slots = tr_mem_new(size);
    if (!copy || !slots) {
        free(copy);
        tr_mem_free(slots, size);
        return -1;
    }
    memcpy(copy, mask, key_bytes(t));
    tr_tuple *u = &t->tuples[t->n_tuples];
    memset(u, 0, sizeof *u);
    u->mask = copy;
    if (key_bytes(t))
        memcpy(&u->mask_word, copy, sizeof u->mask_word);
    u->slots = slots;
    u->seed = tr_seed();
    u->n_slots = FIRST_SLOTS;
    u->top_priority = INT32_MIN;
    return (int)t->n_tuples++;
}

static void tuple_remove(tr_table *t, uint32_t i)
{
    slots_free(t, &t->tuples[i]);
    free(t->tuples[i].mask);
    t->n_tuples--;
    memmove(t->tuples + i, t->tuples + i + 1,
            (t->n_tuples - i) * sizeof *t->tuples);
}

static tr_slot *slot_of(const tr_table *t, const tr_tuple *u,
                        const uint8_t *masked_key)
{
    return tr_slot_of(u, masked_key, NULL, t->desc->key_words,
                      t->desc->slot_bytes);
}

static tr_slot *slot_at(const tr_table *t, const tr_tuple *u, uint32_t i)
{
    return (tr_slot *)(void *)(u->slots + (size_t)i * t->desc->slot_bytes);
}

/* Copies to a slot what lookups need: id, handle, key, and the entry's address
 * (if desc->entries) or action data. */
static void slot_fill(const tr_table *t, tr_slot *slot, const tr_entry *e)
{
    const tr_table_desc *d = t->desc;
    slot->id = e->id;
    slot->taken = (uint32_t)tr_rest(e)->handle + 1;
    memcpy(slot->words, tr_key_of(e), key_bytes(t));
    if (d->entries)
        slot->words[d->key_words] = (uintptr_t)e;
    else if (d->data_limbs)
        memcpy(slot->words + d->key_words, e->data,
               d->data_limbs * sizeof *e->data);
}

/* Frees a slot. Linear probing ends at a free slot. So the taken slots after it
 * move up, unless they would move in front of the slot that their hash selects.
 */
static void slot_clear(const tr_table *t, tr_tuple *u, tr_slot *freed)
{
    uint32_t bytes = t->desc->slot_bytes, last = u->n_slots - 1;
    uint32_t hole = (uint32_t)((size_t)((uint8_t *)freed - u->slots) / bytes);
    for (uint32_t i = (hole + 1) & last; slot_at(t, u, i)->taken;
         i = (i + 1) & last) {
        tr_slot *slot = slot_at(t, u, i);
        uint32_t hashed =
            (uint32_t)tr_hash_words((const uint8_t *)slot->words,
                                    t->desc->key_words, NULL, u->seed) &
            last;
        if (((i - hashed) & last) >= ((i - hole) & last)) {
            memcpy(slot_at(t, u, hole), slot, bytes);
            hole = i;
        }
    }
    memset(slot_at(t, u, hole), 0, bytes);
}

/* Doubles the slots; 0: no memory. */
static int tuple_grow(const tr_table *t, tr_tuple *u)
{
    tr_tuple old = *u;
    size_t bytes = (size_t)2u * old.n_slots * t->desc->slot_bytes;
    uint8_t *bigger = tr_mem_new(bytes);
    if (!bigger)
        return 0;
    u->slots = bigger;
    u->n_slots = 2u * old.n_slots;
    for (uint32_t i = 0; i < old.n_slots; i++) {
        const tr_slot *slot = slot_at(t, &old, i);
        if (slot->taken)
            memcpy(slot_of(t, u, (const uint8_t *)slot->words), slot,
                   t->desc->slot_bytes);
    }
    slots_free(t, &old);
    return 1;
}

/* The entry with the masked key, mask and priority of `like`; NULL: none. */
static tr_entry *find_equal(const tr_table *t, const tr_entry *like)
{
    if (tr_indexed(t))
        return tr_index_find(t, like);
    int i = tuple_find(t, tr_mask_of_entry(t, like));
    if (i < 0)
        return NULL;
    const tr_slot *slot = slot_of(t, &t->tuples[i], tr_key_of(like));
    return slot->taken ? t->by_handle[slot->taken - 1] : NULL;
}

/* ---- ranges without bit vectors ---- */

static int in_field(const tr_table *t, const tr_key_field *f,
                    const tr_entry *e, const uint8_t *key)
{
    const uint8_t *k = key + f->offset;
    const uint8_t *low_or_key = tr_key_of(e) + f->offset;
    const uint8_t *high_or_mask = tr_mask_of_entry(t, e) + f->offset;
    if (f->range)
        return memcmp(k, low_or_key, f->nbytes) >= 0 &&
               memcmp(k, high_or_mask, f->nbytes) <= 0;
    for (unsigned i = 0; i < f->nbytes; i++)
        if ((k[i] & high_or_mask[i]) != low_or_key[i])
            return 0;
    return 1;
}

tr_entry *tr_lookup_range(const tr_table *t, const uint8_t *key)
{
    if (t->by_vectors)
        return tr_lookup_vectors(t, key);
    const tr_table_desc *d = t->desc;
    tr_entry *best = NULL;
    for (uint32_t i = 0; i < t->handles.top; i++) {
        tr_entry *e = t->by_handle[i];
        uint32_t f = 0;
        if (!e || (best && !tr_entry_wins(e, best)))
            continue;
        while (f < d->n_fields && in_field(t, &d->fields[f], e, key))
            f++;
        if (f == d->n_fields)
            best = e;
    }
    return best;
}

/* ---- bit vectors ---- */

/* Whether bit vectors would be faster than the other lookups, and their memory
 * is within the limit. */
static int vectors_wanted(const tr_table *t)
{
    const tr_table_desc *d = t->desc;
    return (d->match == TR_RANGE ||
            (d->match == TR_TERNARY &&
             t->n_tuples > MASKS + t->handles.top / ENTRIES_PER_MASK)) &&
           tr_vectors_bytes(d, t->handles.top) / VECTOR_BYTES <= t->count;
}

/* Updates the vectors after e was added. Vectors are filled gradually, with
 * some entries at each update, so that no update takes long. Complete vectors
 * replace the tuples until the table is empty, so updates need not search many
 * masks. Without memory for vectors the table keeps its tuples. */
static void vectors_update(tr_table *t, const tr_entry *e)
{
    if (t->by_vectors) {
        t->vectored = t->handles.top;
        return;
    }
    if (!t->vectors && vectors_wanted(t))
        t->vectors = tr_vectors_new(t->desc);
    if (!t->vectors)
        return;
    if ((uint32_t)tr_rest(e)->handle < t->vectored)
        tr_vectors_add(t, e);
    for (uint32_t n = 0;
         n < MOVES_PER_UPDATE && t->vectored < t->handles.top; n++) {
        e = t->by_handle[t->vectored];
        if (e && tr_vectors_add(t, e) != TR_OK)
            break;
        t->vectored++;
    }
    t->by_vectors = t->vectored == t->handles.top && vectors_wanted(t);
    if (t->by_vectors)
        tuples_free(t);
}

/* Removes an entry from the vectors; frees vectors and handles of an empty
 * table. */
static void vectors_remove(tr_table *t, const tr_entry *e)
{
    if ((uint32_t)tr_rest(e)->handle < t->vectored)
        tr_vectors_remove(t, e);
    if (t->count == 0) {
        tr_vectors_free(t->vectors);
        t->vectors = NULL;
        t->vectored = 0;
        t->by_vectors = 0;
        tr_handles_clear(&t->handles);
    }
}

/* ---- control ---- */

tr_entry *tr_table_entry(const tr_table *t, int handle)
{
    if (handle == -1)
        return t->defaults;
    if (handle < 0 || (uint32_t)handle >= t->n_handles)
        return NULL;
    return t->by_handle[handle];
}

/* Adds e to its tuple. best: the entry that e replaces in the slot of e's key;
 * NULL: none. */
static int tuple_insert(tr_table *t, const tr_entry *e, const tr_entry *best)
{
    int i = tuple_find(t, tr_mask_of_entry(t, e));
    if (i < 0)
        i = tuple_add(t, tr_mask_of_entry(t, e));
    if (i < 0)
        return TR_ENOMEM;
    tr_tuple *u = &t->tuples[i];
    if (!best && u->count >= u->n_slots / SLOTS_PER_ENTRY &&
        !tuple_grow(t, u))
        return TR_ENOMEM;
    slot_fill(t, slot_of(t, u, tr_key_of(e)), e);
    u->count += !best;
    if (e->priority > u->top_priority) {
        u->top_priority = e->priority;
        tuple_resort(t, (uint32_t)i);
    }
    return TR_OK;
}

/* Removes e from its tuple. best: the entry that gets e's slot, or NULL. */
static void tuple_take_out(tr_table *t, const tr_entry *e, const tr_entry *best)
{
    uint32_t i = (uint32_t)tuple_find(t, tr_mask_of_entry(t, e));
    tr_tuple *u = &t->tuples[i];
    tr_slot *slot = slot_of(t, u, tr_key_of(e));
    if (best) {
        slot_fill(t, slot, best);
        return;
    }
    slot_clear(t, u, slot);
    if (--u->count == 0)
        tuple_remove(t, i);
}

/* Sets key and mask of an entry; masks the key except in range fields. */
static void fill_key(const tr_table *t, tr_entry *e, const uint8_t *key,
                     const uint8_t *mask)
{
    const tr_table_desc *d = t->desc;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        const tr_key_field *f = &d->fields[i];
        for (unsigned b = f->offset; b < f->offset + (unsigned)f->nbytes;
             b++) {
            uint8_t m = d->match == TR_EXACT ? 0xff : mask[b];
            tr_mask_of_entry(t, e)[b] = m;
            tr_key_of(e)[b] = f->range ? key[b] : key[b] & m;
        }
    }
}

/* Adds an entry to the data structure for lookups: vectors or tuples. */
static int entry_put(tr_table *t, const tr_entry *e)
{
    if (t->by_vectors)
        return tr_vectors_add(t, e);
    if (t->desc->match == TR_RANGE)
        return TR_OK;
    const tr_entry *best = tr_indexed(t) ? tr_index_best(t, e) : NULL;
    return best && tr_entry_wins(best, e) ? TR_OK : tuple_insert(t, e, best);
}

int tr_table_add(tr_table *t, const uint8_t *key, const uint8_t *mask,
                 int32_t priority, const tr_target *target,
                 uint64_t timeout_ps, uint64_t now_ps)
{
    tr_entry *e = tr_entry_new(t->desc->data_limbs, t->desc->key_words,
                               t->desc->metered);
    if (!e)
        return TR_ENOMEM;
    fill_key(t, e, key, mask);
    e->priority = priority;
    tr_rest(e)->timeout_ps = timeout_ps;
    e->last_hit_ps = now_ps;
    int rc = tr_entry_target(e, target, t->desc->data_limbs);
    if (rc == TR_OK && find_equal(t, e))
        rc = TR_EEXIST;
    if (rc == TR_OK && t->count >= t->max_size)
        rc = TR_EFULL;
    if (rc == TR_OK && tr_indexed(t))
        rc = tr_index_reserve(t);
    int handle = rc == TR_OK ? tr_handle_new(&t->handles,
                                             (void ***)&t->by_handle,
                                             &t->n_handles)
                             : rc;
    if (handle >= 0) {
        e->seq = t->next_seq++;
        tr_rest(e)->handle = handle;
        rc = entry_put(t, e);
        if (rc != TR_OK)
            tr_handle_free(&t->handles, (uint32_t)handle);
    }
    if (handle < 0 || rc != TR_OK) {
        tr_entry_free(e);
        return rc != TR_OK ? rc : handle;
    }
    t->by_handle[handle] = e;
    t->count++;
    if (tr_indexed(t))
        tr_index_add(t, e);
    vectors_update(t, e);
    return handle;
}

int tr_table_retarget(tr_table *t, tr_entry *e, const tr_target *target)
{
    int rc = tr_entry_target(e, target, t->desc->data_limbs);
    if (rc != TR_OK || t->desc->match == TR_RANGE || t->by_vectors)
        return rc;
    if (!tr_indexed(t) || tr_index_best(t, e) == e) {
        int i = tuple_find(t, tr_mask_of_entry(t, e));
        slot_fill(t, slot_of(t, &t->tuples[i], tr_key_of(e)), e);
    }
    return TR_OK;
}

int tr_table_remove(tr_table *t, int handle)
{
    tr_entry *e = handle < 0 ? NULL : tr_table_entry(t, handle);
    if (!e)
        return TR_ENOENT;
    const tr_entry *best = NULL; /* of the same key and mask, without e */
    int was_best = !tr_indexed(t) || tr_index_best(t, e) == e;
    if (tr_indexed(t)) {
        tr_index_remove(t, e);
        best = tr_index_best(t, e);
    }
    if (was_best && !t->by_vectors && t->desc->match != TR_RANGE)
        tuple_take_out(t, e, best);
    t->count--;
    t->by_handle[handle] = NULL;
    tr_handle_free(&t->handles, (uint32_t)handle);
    vectors_remove(t, e);
    tr_entry_free(e);
    return TR_OK;
}

int tr_table_set_default(tr_table *t, const tr_target *target)
{
    if (!target) {
        tr_entry_free(t->defaults);
        t->defaults = NULL;
        return TR_OK;
    }
    tr_entry *e = t->defaults;
    if (!e)
        e = tr_entry_new(t->desc->data_limbs, 0, t->desc->metered);
    if (!e)
        return TR_ENOMEM;
    tr_rest(e)->handle = -1;
    int rc = tr_entry_target(e, target, t->desc->data_limbs);
    if (rc != TR_OK && e != t->defaults)
        tr_entry_free(e);
    else
        t->defaults = e;
    return rc;
}
