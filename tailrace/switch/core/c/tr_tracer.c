/* A switch of glass: records of what it does, kept for who watches or tries.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tracer_internal.h"

#include "tr_mem.h"

#include <stdlib.h>

tr_glass *tr_glass_new(uint32_t words, uint32_t uses, uint32_t tables)
{
    tr_glass *g = tr_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->room = words;
    g->uses = uses;
    g->tables = tables;
    g->words = tr_malloc((words + 1ULL) * sizeof *g->words);
    g->used = tr_calloc(uses + 1ULL, sizeof *g->used);
    g->entries = tr_calloc(tables + 1ULL, sizeof *g->entries);
    if (!g->words || !g->used || !g->entries) {
        tr_glass_free(g);
        return NULL;
    }
    return g;
}

void tr_glass_free(tr_glass *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; g->entries && i < g->tables; i++)
        free(g->entries[i].bits);
    free(g->entries);
    free(g->awaited);
    free(g->used);
    free(g->words);
    free(g->seen);
    free(g->kept);
    free(g->bytes);
    free(g);
}

const uint64_t *tr_glass_words(const tr_glass *g, uint32_t *n, uint32_t *cut)
{
    *n = g->n;
    *cut = g->cut;
    return g->words;
}

int tr_glass_grow(void **list, uint32_t *room, uint32_t want, size_t item)
{
    if (want <= *room)
        return 1;
    uint32_t bigger = *room ? *room : 64u;
    while (bigger < want)
        bigger *= 2;
    void *more = tr_realloc(*list, bigger * item);
    if (!more)
        return 0;
    memset((uint8_t *)more + *room * item, 0, (bigger - *room) * item);
    *list = more;
    *room = bigger;
    return 1;
}

/* ---- records ---- */

#define HEAD_WORDS 4u

/* Kinds of which is told what is told of briefly. */
#define BRIEF_KINDS                                                           \
    (1u << TR_SEEN_ENTER | 1u << TR_SEEN_RESUBMIT |                           \
     1u << TR_SEEN_RECIRCULATE | 1u << TR_SEEN_COPY | 1u << TR_SEEN_QUEUE |   \
     1u << TR_SEEN_EGRESS | 1u << TR_SEEN_SENT | 1u << TR_SEEN_DROP)

_Static_assert(TR_SEEN_KINDS <= 32, "a bit for each kind");

/* Room for a record with n words behind its head; NULL when there is none. A
 * record that is left out ends the records: what follows would mislead. */
static uint64_t *record(tr_switch *s, const tr_pkt *p, uint64_t kind,
                        uint64_t n)
{
    tr_glass *g = s->glass;
    if (!g || g->cut)
        return NULL;
    if (p && p->mark & TR_GLASS_BRIEF && !(BRIEF_KINDS >> kind & 1))
        return NULL;
    if (n + HEAD_WORDS > g->room - g->n) {
        g->cut = 1;
        return NULL;
    }
    uint64_t *w = g->words + g->n;
    g->n += (uint32_t)n + HEAD_WORDS;
    w[0] = kind;
    w[1] = p ? p->mark : 0;
    w[2] = s->now_ps;
    w[3] = n;
    return w + HEAD_WORDS;
}

void tr_see_limbs(tr_switch *s, const tr_pkt *p, const uint64_t *words,
                  uint32_t n, const uint64_t *limbs, uint32_t more)
{
    uint64_t *w = p->mark ? record(s, p, words[0], n - 1 + more) : NULL;
    if (!w)
        return;
    memcpy(w, words + 1, (n - 1) * sizeof *w);
    if (more)
        memcpy(w + n - 1, limbs, more * sizeof *w);
}

void tr_see(tr_switch *s, const tr_pkt *p, const uint64_t *words, uint32_t n)
{
    tr_see_limbs(s, p, words, n, NULL, 0);
}

static void see_bytes(tr_switch *s, const tr_pkt *p, const uint64_t *words,
                      uint32_t n, const void *bytes, uint32_t len)
{
    uint32_t more = (len + 7) / 8;
    uint64_t *w = record(s, p, words[0], n - 1 + more);
    if (!w)
        return;
    memcpy(w, words + 1, (n - 1) * sizeof *w);
    if (more) {
        w[n - 2 + more] = 0;
        memcpy(w + n - 1, bytes, len);
    }
}

void tr_see_bytes(tr_switch *s, const tr_pkt *p, const uint64_t *words,
                  uint32_t n, const void *bytes, uint32_t len)
{
    if (p->mark)
        see_bytes(s, p, words, n, bytes, len);
}

int tr_see_text(tr_switch *s, int level, const char *text)
{
    if (!s->seen_pkt || !s->seen_pkt->mark)
        return 0;
    uint32_t len = (uint32_t)strlen(text);
    const uint64_t words[] = {TR_SEEN_TEXT, (uint64_t)level, len};
    see_bytes(s, s->seen_pkt, words, 3, text, len);
    return 1;
}

/* Whether all is told of a packet that comes in now by this port. */
static int awaited(const tr_glass *g, uint64_t now_ps, uint32_t port)
{
    for (uint32_t i = 0; i < g->n_awaited; i++)
        if (g->awaited[i].time_ps == now_ps && g->awaited[i].port == port)
            return 1;
    return !g->awaited;
}

void tr_see_mark(tr_switch *s, tr_pkt *p)
{
    tr_glass *g = s->glass;
    if (!g || g->trying || !g->told)
        return;
    /* rather all of some packets than some of all */
    if (g->cut || g->n > g->room / 2)
        g->missed++;
    else
        p->mark = ++g->packets |
                  (awaited(g, s->now_ps, p->ingress_port) ? 0
                                                          : TR_GLASS_BRIEF);
}

/* ---- changes ---- */

void tr_see_begin(tr_switch *s, const tr_pkt *p, enum tr_stage stage,
                  const void *phv, uint32_t phv_size, uint32_t locals_size)
{
    tr_glass *g = s->glass;
    s->seen_pkt = p;
    if (!g || !p->mark || p->mark & TR_GLASS_BRIEF)
        return;
    const uint64_t words[] = {TR_SEEN_STAGE, stage, phv_size};
    see_bytes(s, p, words, 3, phv, phv_size);
    uint32_t size = phv_size + locals_size;
    if (size > g->seen_room) {
        uint8_t *more = tr_realloc(g->seen, size);
        if (!more) {
            g->cut = 1;
            return;
        }
        g->seen = more;
        g->seen_room = size;
    }
    g->phv_size = phv_size;
    g->locals_size = locals_size;
    memcpy(g->seen, phv, phv_size);
    memset(g->seen + phv_size, 0, locals_size);
}

/* A run of bytes that differ, for each; a byte that does not ends a run. */
static void changes(tr_switch *s, const tr_pkt *p, uint64_t space,
                    uint8_t *seen, const uint8_t *now, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (seen[i] == now[i])
            continue;
        uint32_t first = i;
        while (i < size && seen[i] != now[i])
            i++;
        const uint64_t words[] = {TR_SEEN_CHANGE, space, first, i - first};
        see_bytes(s, p, words, 4, now + first, i - first);
        memcpy(seen + first, now + first, i - first);
    }
}

void tr_see_changes(tr_switch *s, const tr_pkt *p, const void *phv,
                    const void *locals)
{
    tr_glass *g = s->glass;
    if (!g || !p->mark || p->mark & TR_GLASS_BRIEF || g->cut)
        return;
    changes(s, p, 0, g->seen, phv, g->phv_size);
    if (locals)
        changes(s, p, 1, g->seen + g->phv_size, locals, g->locals_size);
}

void tr_see_copy(tr_switch *s, const tr_pkt *p, tr_pkt *q, uint32_t port,
                 uint32_t instance)
{
    if (!s->glass || !p->mark)
        return;
    q->mark = ++s->glass->packets | (p->mark & TR_GLASS_BRIEF);
    TR_SEE_ALWAYS(s, p, TR_SEEN_COPY, q->mark, port, instance);
}

/* ---- watching ---- */

int tr_glass_runs(const tr_switch *s, const tr_program *plain)
{
    return plain && plain == (s->plain ? s->plain : s->prog);
}

void tr_unwatch(tr_switch *s)
{
    if (s->plain)
        s->prog = s->plain;
    if (s->glass)
        s->marked = s->glass->packets;
    s->plain = NULL;
    s->glass = NULL;
    s->used = NULL;
    s->seen_pkt = NULL;
}

int tr_glass_watch(tr_switch *s, tr_glass *g, const tr_program *plain,
                   const tr_program *glass, int told)
{
    int rc = TR_OK;
    tr_switch_lock(s);
    tr_unwatch(s);
    if (g && !tr_glass_runs(s, plain)) {
        rc = TR_EINVAL;
    } else if (g) {
        s->plain = s->prog;
        s->prog = glass;
        s->glass = g;
        s->used = g->used;
        g->told = told;
        g->packets = s->marked;
    }
    tr_switch_unlock(s);
    return rc;
}

int tr_glass_await(tr_switch *s, tr_glass *g, const uint64_t *times_ps,
                   const uint32_t *ports, uint32_t n)
{
    arrival *list = tr_calloc(n + 1ULL, sizeof *list);
    if (!list)
        return TR_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (arrival){times_ps[i], ports[i]};
    tr_switch_lock(s);
    free(g->awaited);
    g->awaited = list;
    g->n_awaited = n;
    tr_switch_unlock(s);
    return TR_OK;
}

uint32_t tr_glass_take(tr_switch *s, tr_glass *g, uint64_t *words,
                       uint32_t most, uint32_t *cut, uint32_t *missed)
{
    tr_switch_lock(s);
    uint32_t n = g->n <= most ? g->n : 0;
    if (n)
        memcpy(words, g->words, n * sizeof *words);
    *cut = g->cut || g->n > most;
    *missed = g->missed;
    g->n = g->cut = g->missed = 0;
    tr_switch_unlock(s);
    return n;
}

/* ---- uses ---- */

void tr_used_entry(tr_switch *s, uint32_t table, uint64_t handle)
{
    tr_glass *g = s->glass;
    if (!g || !handle || table >= g->tables)
        return;
    uint32_t at = (uint32_t)(handle - 1);
    if (!tr_glass_grow((void **)&g->entries[table].bits,
                       &g->entries[table].bytes, at / 8 + 1, 1))
        return;
    g->entries[table].bits[at / 8] |= (uint8_t)(1u << at % 8);
}

void tr_glass_uses(tr_switch *s, const tr_glass *g, uint64_t *counts)
{
    tr_switch_lock(s);
    memcpy(counts, g->used, g->uses * sizeof *counts);
    tr_switch_unlock(s);
}

int tr_glass_entry(tr_switch *s, const tr_glass *g, uint32_t table,
                   uint32_t handle)
{
    tr_switch_lock(s);
    int used = table < g->tables && handle / 8 < g->entries[table].bytes &&
               g->entries[table].bits[handle / 8] >> handle % 8 & 1;
    tr_switch_unlock(s);
    return used;
}
