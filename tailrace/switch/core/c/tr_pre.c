/* Packet replication: multicast groups and clone sessions.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_core.h"
#include "tr_mem.h"

#include <stdlib.h>

/* The table's pointer to the replicas of a group or session; NULL: its page is
 * not allocated. */
static tr_replicas **slot_of(tr_replicas **const *table, uint32_t id)
{
    tr_replicas **page =
        id < TR_PRE_PAGES * TR_PRE_PAGE ? table[id / TR_PRE_PAGE] : NULL;
    return page ? page + id % TR_PRE_PAGE : NULL;
}

static int by_instance_then_port(const void *a, const void *b)
{
    const tr_replica *x = a, *y = b;
    if (x->instance != y->instance)
        return x->instance < y->instance ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

static int replace(tr_switch *s, tr_replicas ***table, uint32_t id,
                   const tr_replica *replicas, uint32_t n, uint32_t cos,
                   uint32_t truncate)
{
    for (uint32_t i = 0; i < n; i++)
        if (replicas[i].port >= TR_MAX_PORTS || replicas[i].instance > 0xffff)
            return TR_ERANGE;
    tr_replicas *r = tr_calloc(1, sizeof *r + n * sizeof *replicas);
    if (!r)
        return TR_ENOMEM;
    r->n = n;
    r->class_of_service = cos;
    r->truncate = truncate;
    if (n)
        memcpy(r->replica, replicas, n * sizeof *replicas);
    /* a defined order of copies, so that runs are reproducible */
    qsort(r->replica, n, sizeof *r->replica, by_instance_then_port);
    tr_switch_lock(s);
    tr_replicas ***page = &table[id / TR_PRE_PAGE];
    if (!*page)
        *page = tr_calloc(TR_PRE_PAGE, sizeof **page);
    tr_replicas **slot = slot_of(table, id);
    if (slot) {
        free(*slot);
        *slot = r;
    } else {
        free(r);
    }
    tr_switch_unlock(s);
    return slot ? TR_OK : TR_ENOMEM;
}

int tr_mcast_set(tr_switch *s, uint32_t group, const tr_replica *replicas,
                 uint32_t n)
{
    if (group == 0 || group > 0xffff)
        return TR_ERANGE;
    return replace(s, s->groups, group, replicas, n, 0, 0);
}

int tr_clone_set(tr_switch *s, uint32_t session, const tr_replica *replicas,
                 uint32_t n, uint32_t class_of_service, uint32_t truncate)
{
    if (session >= TR_CLONE_VALID)
        return TR_ERANGE;
    return replace(s, s->sessions, session, replicas, n, class_of_service,
                   truncate);
}

static int delete(tr_switch *s, tr_replicas ***table, uint32_t id)
{
    tr_switch_lock(s);
    tr_replicas **slot = slot_of(table, id);
    int rc = slot && *slot ? TR_OK : TR_ENOENT;
    if (slot) {
        free(*slot);
        *slot = NULL;
    }
    tr_switch_unlock(s);
    return rc;
}

int tr_mcast_delete(tr_switch *s, uint32_t group)
{
    return delete(s, s->groups, group);
}

int tr_clone_delete(tr_switch *s, uint32_t session)
{
    return delete(s, s->sessions, session);
}

const tr_replicas *tr_group_find(const tr_switch *s, uint32_t group)
{
    tr_replicas **slot = slot_of(s->groups, group);
    return slot ? *slot : NULL;
}

const tr_replicas *tr_session_find(const tr_switch *s, uint32_t session)
{
    tr_replicas **slot = slot_of(s->sessions, session);
    return slot ? *slot : NULL;
}
