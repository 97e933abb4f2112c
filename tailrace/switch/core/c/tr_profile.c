/* Action profiles and selectors: members, groups and selection by hash.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_table.h"
#include "tr_mem.h"

#include <stdlib.h>

static void group_free(tr_group *g)
{
    if (!g)
        return;
    tr_entry_free(g->first);
    free(g->members);
    free(g);
}

void tr_profile_clear(tr_profile *p)
{
    for (uint32_t i = 0; i < p->n_members; i++)
        tr_entry_free(p->members[i]);
    for (uint32_t i = 0; i < p->n_groups; i++)
        group_free(p->groups[i]);
    free(p->members);
    free(p->groups);
    free(p->member_handles.freed);
    free(p->group_handles.freed);
    const tr_profile_desc *desc = p->desc;
    memset(p, 0, sizeof *p);
    p->desc = desc;
}

static tr_entry *member(const tr_profile *p, int handle)
{
    return handle < 0 || (uint32_t)handle >= p->n_members
               ? NULL
               : p->members[handle];
}

static tr_group *group(const tr_profile *p, int handle)
{
    return handle < 0 || (uint32_t)handle >= p->n_groups ? NULL
                                                         : p->groups[handle];
}

int tr_profile_add(tr_profile *p, const tr_target *action)
{
    tr_entry *e = tr_entry_new(p->desc->data_limbs, 0, 0);
    if (!e)
        return TR_ENOMEM;
    int h = tr_entry_target(e, action, p->desc->data_limbs);
    if (h == TR_OK)
        h = tr_handle_new(&p->member_handles, (void ***)&p->members,
                          &p->n_members);
    if (h < 0) {
        tr_entry_free(e);
        return h;
    }
    tr_rest(e)->handle = h;
    p->members[h] = e;
    p->count++;
    return h;
}

int tr_profile_modify(tr_profile *p, int handle, const tr_target *action)
{
    tr_entry *e = member(p, handle);
    return e ? tr_entry_target(e, action, p->desc->data_limbs) : TR_ENOENT;
}

int tr_profile_remove(tr_profile *p, int handle)
{
    tr_entry *e = member(p, handle);
    if (!e)
        return TR_ENOENT;
    tr_entry_free(e);
    p->members[handle] = NULL;
    tr_handle_free(&p->member_handles, (uint32_t)handle);
    p->count--;
    return TR_OK;
}

/* drawn: a random draw selects the member for each packet, not the hash. */
int tr_profile_group_add(tr_profile *p, int drawn, const tr_target *first)
{
    tr_group *g = tr_calloc(1, sizeof(tr_group));
    if (!g)
        return TR_ENOMEM;
    g->drawn = drawn;
    if (first) {
        g->first = tr_entry_new(p->desc->data_limbs, 0, 0);
        int rc = g->first ? tr_entry_target(g->first, first,
                                            p->desc->data_limbs)
                          : TR_ENOMEM;
        if (rc != TR_OK) {
            group_free(g);
            return rc;
        }
    }
    int h = tr_handle_new(&p->group_handles, (void ***)&p->groups,
                          &p->n_groups);
    if (h < 0)
        group_free(g);
    else
        p->groups[h] = g;
    return h;
}

int tr_profile_group_set(tr_profile *p, int handle, const int *members,
                         uint32_t n)
{
    tr_group *g = group(p, handle);
    if (!g)
        return TR_ENOENT;
    for (uint32_t i = 0; i < n; i++)
        if (!member(p, members[i]))
            return TR_ENOENT;
    int *copy = tr_malloc((n ? n : 1) * sizeof *copy);
    if (!copy)
        return TR_ENOMEM;
    if (n)
        memcpy(copy, members, n * sizeof *copy);
    free(g->members);
    g->members = copy;
    g->n = n;
    return TR_OK;
}

int tr_profile_group_remove(tr_profile *p, int handle)
{
    tr_group *g = group(p, handle);
    if (!g)
        return TR_ENOENT;
    group_free(g);
    p->groups[handle] = NULL;
    tr_handle_free(&p->group_handles, (uint32_t)handle);
    return TR_OK;
}

tr_entry *tr_profile_resolve(tr_switch *s, const tr_pkt *p, uint32_t profile,
                             const tr_entry *e, uint64_t hash,
                             const tr_entry **first)
{
    const tr_profile *members = &s->profiles[profile];
    int is_group = e->kind == TR_TARGET_GROUP;
    const tr_group *g = is_group ? group(members, (int)e->id) : NULL;
    int handle = is_group ? -1 : (int)e->id;
    uint32_t size = g ? g->n : 0, position = 0;
    *first = g ? g->first : NULL;
    if (size) {
        position =
            (uint32_t)(g->drawn ? tr_random(s, 0, size - 1) : hash % size);
        if (p->mark)
            position = tr_choose(s, p, TR_CHOICE_MEMBER, size, position);
        handle = g->members[position];
    }
    tr_entry *selected = member(members, handle);
    if (p->mark)
        TR_TRACE_ALWAYS(s, p, TR_RECORD_MEMBER, profile,
                        is_group ? e->id + 1ULL : 0, position, size,
                        selected ? (uint64_t)handle + 1 : 0);
    return selected;
}
