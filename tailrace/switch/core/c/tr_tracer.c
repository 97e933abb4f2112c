/* The tracer: records what a switch does to packets, step by step.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tracer_internal.h"

#include "tr_mem.h"

#include <stdlib.h>

tr_tracer *tr_tracer_new(uint32_t size, uint32_t points, uint32_t tables)
{
    tr_tracer *g = tr_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->capacity = size;
    g->points = points;
    g->tables = tables;
    g->records = tr_malloc((size + 1ULL) * sizeof *g->records);
    g->coverage = tr_calloc(points + 1ULL, sizeof *g->coverage);
    g->entries = tr_calloc(tables + 1ULL, sizeof *g->entries);
    if (!g->records || !g->coverage || !g->entries) {
        tr_tracer_free(g);
        return NULL;
    }
    return g;
}

void tr_tracer_free(tr_tracer *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; g->entries && i < g->tables; i++)
        free(g->entries[i].bits);
    free(g->entries);
    free(g->selected);
    free(g->coverage);
    free(g->records);
    free(g->last);
    free(g->undo);
    free(g->bytes);
    free(g);
}

int tr_tracer_grow(void **list, uint32_t *capacity, uint32_t want, size_t item)
{
    if (want <= *capacity)
        return 1;
    uint32_t bigger = *capacity ? *capacity : 64u;
    while (bigger < want)
        bigger *= 2;
    void *more = tr_realloc(*list, bigger * item);
    if (!more)
        return 0;
    memset((uint8_t *)more + *capacity * item, 0, (bigger - *capacity) * item);
    *list = more;
    *capacity = bigger;
    return 1;
}

/* ---- records ---- */

/* Fields of a record's head: kind, packet number, time, count of the others. */
#define HEAD_SIZE 4u

/* Kinds of records of a packet that is traced in brief. */
#define BRIEF_KINDS                                                           \
    (1u << TR_RECORD_ENTER | 1u << TR_RECORD_RESUBMIT |                       \
     1u << TR_RECORD_RECIRCULATE | 1u << TR_RECORD_COPY |                     \
     1u << TR_RECORD_QUEUE | 1u << TR_RECORD_EGRESS | 1u << TR_RECORD_SENT |  \
     1u << TR_RECORD_DROP)

_Static_assert(TR_RECORD_KINDS <= 32, "a bit for each kind");

/* After a record that does not fit no more records are added, since a gap would
 * be misleading. */
void tr_trace_bytes(tr_switch *s, const tr_pkt *p, const uint64_t *fields,
                    uint32_t n, const void *bytes, uint32_t len)
{
    tr_tracer *g = s->tracer;
    uint32_t more = (len + 7) / 8, count = n - 1 + more;
    int brief = p->mark & TR_TRACE_BRIEF && !(BRIEF_KINDS >> fields[0] & 1);
    if (!g || g->cut || !p->mark || brief)
        return;
    if (count + HEAD_SIZE > g->capacity - g->n) {
        g->cut = 1;
        return;
    }
    uint64_t *w = g->records + g->n;
    g->n += count + HEAD_SIZE;
    w[0] = fields[0];
    w[1] = p->mark;
    w[2] = s->now_ps;
    w[3] = count;
    w += HEAD_SIZE;
    memcpy(w, fields + 1, (n - 1) * sizeof *w);
    if (more) {
        w[count - 1] = 0;
        memcpy(w + n - 1, bytes, len);
    }
}

void tr_trace(tr_switch *s, const tr_pkt *p, const uint64_t *fields, uint32_t n)
{
    tr_trace_bytes(s, p, fields, n, NULL, 0);
}

int tr_trace_text(tr_switch *s, int level, const char *text)
{
    if (!s->traced_pkt || !s->traced_pkt->mark)
        return 0;
    uint32_t len = (uint32_t)strlen(text);
    const uint64_t fields[] = {TR_RECORD_TEXT, (uint64_t)level, len};
    tr_trace_bytes(s, s->traced_pkt, fields, 3, text, len);
    return 1;
}

/* Whether a packet that arrives now on this port is traced in full; without a
 * list of selected arrivals, all packets are traced in full. */
static int is_selected(const tr_tracer *g, uint64_t now_ps, uint32_t port)
{
    for (uint32_t i = 0; i < g->n_selected; i++)
        if (g->selected[i].time_ps == now_ps && g->selected[i].port == port)
            return 1;
    return !g->selected;
}

void tr_trace_mark(tr_switch *s, tr_pkt *p)
{
    tr_tracer *g = s->tracer;
    if (!g || g->dry_run || !g->recording)
        return;
    /* complete records of some packets are better than incomplete records of
     * all packets */
    if (g->cut || g->n > g->capacity / 2)
        g->missed++;
    else
        p->mark = ++g->packets |
                  (is_selected(g, s->now_ps, p->ingress_port) ? 0
                                                              : TR_TRACE_BRIEF);
}

/* ---- changes ---- */

void tr_trace_begin(tr_switch *s, const tr_pkt *p, enum tr_stage stage,
                    const void *phv, uint32_t phv_size, uint32_t locals_size)
{
    tr_tracer *g = s->tracer;
    s->traced_pkt = p;
    if (!g || !p->mark || p->mark & TR_TRACE_BRIEF)
        return;
    const uint64_t fields[] = {TR_RECORD_STAGE, stage, phv_size};
    tr_trace_bytes(s, p, fields, 3, phv, phv_size);
    uint32_t size = phv_size + locals_size;
    if (!tr_tracer_grow((void **)&g->last, &g->last_capacity, size, 1)) {
        g->cut = 1;
        return;
    }
    g->phv_size = phv_size;
    g->locals_size = locals_size;
    memcpy(g->last, phv, phv_size);
    memset(g->last + phv_size, 0, locals_size);
}

/* Records each run of consecutive bytes that differ from the last record's.
 * space: 0 PHV, 1 C locals. */
static void record_changes(tr_switch *s, const tr_pkt *p, uint64_t space,
                           uint8_t *seen, const uint8_t *now, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (seen[i] == now[i])
            continue;
        uint32_t first = i;
        while (i < size && seen[i] != now[i])
            i++;
        const uint64_t fields[] = {TR_RECORD_CHANGE, space, first, i - first};
        tr_trace_bytes(s, p, fields, 4, now + first, i - first);
        memcpy(seen + first, now + first, i - first);
    }
}

void tr_trace_changes(tr_switch *s, const tr_pkt *p, const void *phv,
                      const void *locals)
{
    tr_tracer *g = s->tracer;
    if (!g || !p->mark || p->mark & TR_TRACE_BRIEF || g->cut)
        return;
    record_changes(s, p, 0, g->last, phv, g->phv_size);
    if (locals)
        record_changes(s, p, 1, g->last + g->phv_size, locals,
                       g->locals_size);
}

void tr_trace_copy(tr_switch *s, const tr_pkt *p, tr_pkt *q, uint32_t port,
                   uint32_t instance)
{
    if (!s->tracer || !p->mark)
        return;
    q->mark = ++s->tracer->packets | (p->mark & TR_TRACE_BRIEF);
    TR_TRACE_ALWAYS(s, p, TR_RECORD_COPY, q->mark, port, instance);
}

/* ---- attaching ---- */

int tr_tracer_fits(const tr_switch *s, const tr_program *regular)
{
    return regular && regular == (s->regular ? s->regular : s->prog);
}

void tr_tracer_detach(tr_switch *s)
{
    if (s->regular)
        s->prog = s->regular;
    if (s->tracer)
        s->marked = s->tracer->packets;
    s->regular = NULL;
    s->tracer = NULL;
    s->coverage = NULL;
    s->traced_pkt = NULL;
}

int tr_tracer_attach(tr_switch *s, tr_tracer *g, const tr_program *regular,
                     const tr_program *tracing, int recording)
{
    int rc = TR_OK;
    tr_switch_lock(s);
    tr_tracer_detach(s);
    if (g && !tr_tracer_fits(s, regular)) {
        rc = TR_EINVAL;
    } else if (g) {
        s->regular = s->prog;
        s->prog = tracing;
        s->tracer = g;
        s->coverage = g->coverage;
        g->recording = recording;
        g->packets = s->marked;
    }
    tr_switch_unlock(s);
    return rc;
}

int tr_tracer_select(tr_switch *s, tr_tracer *g, const uint64_t *times_ps,
                     const uint32_t *ports, uint32_t n)
{
    arrival *list = tr_calloc(n + 1ULL, sizeof *list);
    if (!list)
        return TR_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (arrival){times_ps[i], ports[i]};
    tr_switch_lock(s);
    free(g->selected);
    g->selected = list;
    g->n_selected = n;
    tr_switch_unlock(s);
    return TR_OK;
}

uint32_t tr_tracer_take(tr_switch *s, tr_tracer *g, uint64_t *records,
                        uint32_t most, uint32_t *cut, uint32_t *missed)
{
    tr_switch_lock(s);
    uint32_t n = g->n <= most ? g->n : 0;
    if (n)
        memcpy(records, g->records, n * sizeof *records);
    *cut = g->cut || g->n > most;
    *missed = g->missed;
    g->n = g->cut = g->missed = 0;
    tr_switch_unlock(s);
    return n;
}

/* ---- coverage ---- */

void tr_tracer_mark_entry(tr_switch *s, uint32_t table, uint64_t hit)
{
    tr_tracer *g = s->tracer;
    if (!g || !hit || table >= g->tables)
        return;
    uint32_t handle = (uint32_t)(hit - 1);
    if (!tr_tracer_grow((void **)&g->entries[table].bits,
                        &g->entries[table].bytes, handle / 8 + 1, 1))
        return;
    g->entries[table].bits[handle / 8] |= (uint8_t)(1u << handle % 8);
}

void tr_tracer_coverage(tr_switch *s, const tr_tracer *g, uint64_t *counts)
{
    tr_switch_lock(s);
    memcpy(counts, g->coverage, g->points * sizeof *counts);
    tr_switch_unlock(s);
}

int tr_tracer_entry_hit(tr_switch *s, const tr_tracer *g, uint32_t table,
                        uint32_t handle)
{
    tr_switch_lock(s);
    int hit = table < g->tables && handle / 8 < g->entries[table].bytes &&
              g->entries[table].bits[handle / 8] >> handle % 8 & 1;
    tr_switch_unlock(s);
    return hit;
}
