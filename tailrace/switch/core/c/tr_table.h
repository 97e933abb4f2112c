/* Tables, action profiles and externs, for the control calls; the caller has
 * the lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_TABLE_H
#define TR_TABLE_H

#include "tr_core.h"

TR_INLINE uint8_t *tr_key_of(const tr_entry *e)
{
    return (uint8_t *)(uintptr_t)e->limbs;
}

TR_INLINE uint8_t *tr_mask_of_entry(const tr_table *t, const tr_entry *e)
{
    return (uint8_t *)(uintptr_t)(e->limbs + t->desc->key_words +
                                  t->desc->data_limbs);
}

/* Allocates an entry with space for action data, key and mask, and with a meter
 * if metered; NULL: no memory. */
tr_entry *tr_entry_new(uint32_t data_limbs, uint32_t key_words, int metered);
void tr_entry_free(tr_entry *e);
int tr_entry_target(tr_entry *e, const tr_target *target,
                    uint32_t data_limbs);
void tr_table_clear(tr_table *t);
/* Adds an entry; returns its handle (>= 0) or an error (< 0). */
int tr_table_add(tr_table *t, const uint8_t *key, const uint8_t *mask,
                 int32_t priority, const tr_target *target,
                 uint64_t timeout_ps, uint64_t now_ps);
/* Replaces the target of an entry. */
int tr_table_retarget(tr_table *t, tr_entry *e, const tr_target *target);
int tr_table_remove(tr_table *t, int handle);
int tr_table_set_default(tr_table *t, const tr_target *target);
/* The entry with this handle (-1: the default entry); NULL: there is none. */
tr_entry *tr_table_entry(const tr_table *t, int handle);

/* ---- bit vectors (tr_vectors.c) ---- */

/* The memory in bytes that vectors for this many entries need. */
size_t tr_vectors_bytes(const tr_table_desc *d, uint32_t entries);
/* Creates empty vectors; NULL: no memory. */
tr_vectors *tr_vectors_new(const tr_table_desc *d);
void tr_vectors_free(tr_vectors *v);
/* Adds an entry. Allocates memory only for handles not used before; TR_ENOMEM:
 * no memory. */
int tr_vectors_add(const tr_table *t, const tr_entry *e);
void tr_vectors_remove(const tr_table *t, const tr_entry *e);

/* ---- index of entries, for updates (tr_index.c) ---- */

/* The seed of all hashes: a secret of the process. */
uint64_t tr_seed(void);

/* Whether a table has an index: a ternary or a range table. */
int tr_indexed(const tr_table *t);
/* tr_index_best returns the best entry with the key and mask of `like`,
 * tr_index_find the entry that also has the priority of `like`; NULL: none. */
tr_entry *tr_index_best(const tr_table *t, const tr_entry *like);
tr_entry *tr_index_find(const tr_table *t, const tr_entry *like);
/* Makes space for another entry: TR_OK or TR_ENOMEM. */
int tr_index_reserve(tr_table *t);
void tr_index_add(tr_table *t, tr_entry *e);
void tr_index_remove(tr_table *t, tr_entry *e);
void tr_index_clear(tr_table *t);

/* Allocates the smallest free handle, an index into a list of `capacity`
 * pointers, which grows if it is full; TR_ENOMEM: no memory. */
int tr_handle_new(tr_handle_pool *pool, void ***list, uint32_t *capacity);
void tr_handle_free(tr_handle_pool *pool, uint32_t handle);
/* Frees all handles. */
void tr_handles_clear(tr_handle_pool *pool);

void tr_profile_clear(tr_profile *p);
int tr_profile_add(tr_profile *p, const tr_target *action);
int tr_profile_modify(tr_profile *p, int handle, const tr_target *action);
int tr_profile_remove(tr_profile *p, int handle);
int tr_profile_group_add(tr_profile *p, int drawn, const tr_target *first);
int tr_profile_group_set(tr_profile *p, int handle, const int *members,
                         uint32_t n);
int tr_profile_group_remove(tr_profile *p, int handle);

/* ---- meters and value sets (tr_extern.c) ---- */

/* rates NULL: every packet is green. Returns TR_EINVAL if cir > pir, or if
 * there is an excess burst and pir or pburst differ from cir and cburst. */
int tr_meter_config(tr_meter *m, const tr_meter_rates *rates,
                    uint64_t now_ps);
tr_meter_rates tr_meter_rates_of(const tr_meter *m);
int tr_vset_config(tr_vset *v, const uint8_t *values, const uint8_t *masks,
                   uint32_t n);

#endif
