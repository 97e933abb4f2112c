/* Dry runs: record what a switch would do with a packet, without changing it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A dry run uses the switch's program and state. State that the program writes
 * is saved in an undo log, which is rolled back at the end. The packets of a
 * dry run wait in a separate list, so the switch's queues and their departure
 * times do not change. The caller may request the outcomes of choices: of what
 * does not follow from the packet alone (tr_tracer.h). `natural` is the outcome
 * without a dry run. tr_tracer_internal.h explains the fields of a tracer, g.
 */
#include "tr_tracer_internal.h"

/* Maximum number of passes of a dry run's packets through ingress or egress. */
#define MOST_STEPS 4096u
/* Maximum memory of the packets that wait in a dry run. */
#define MOST_PKT_BYTES (8u << 20)
/* Maximum number of bytes of state that one dry run may write. */
#define MOST_UNDO_BYTES (64u << 20)
#define MOST_CHOICES 4096u

/* ---- undo log ---- */

int tr_undo_save(tr_switch *s, const tr_pkt *p, void *bytes, uint32_t len)
{
    tr_tracer *g = s->tracer;
    if (!g || !p->mark || !g->dry_run)
        return 1;
    if (g->n_bytes > MOST_UNDO_BYTES - len ||
        !tr_tracer_grow((void **)&g->undo, &g->undo_capacity, g->n_undo + 1,
                        sizeof *g->undo) ||
        !tr_tracer_grow((void **)&g->bytes, &g->bytes_capacity,
                        g->n_bytes + len, 1)) {
        g->cut = 1;
        return 0;
    }
    g->undo[g->n_undo++] = (undo_entry){bytes, len, g->n_bytes};
    memcpy(g->bytes + g->n_bytes, bytes, len);
    g->n_bytes += len;
    return 1;
}

int tr_undo_save_entry(tr_switch *s, const tr_pkt *p, tr_entry *e)
{
    tr_entry_rest *rest = tr_rest(e);
    return tr_undo_save(s, p, &e->last_hit_ps, sizeof e->last_hit_ps) &&
           tr_undo_save(s, p, &rest->packets, sizeof rest->packets) &&
           tr_undo_save(s, p, &rest->bytes, sizeof rest->bytes) &&
           (!rest->meter ||
            tr_undo_save(s, p, rest->meter, sizeof *rest->meter));
}

static void undo(tr_tracer *g)
{
    while (g->n_undo) {
        const undo_entry *saved = &g->undo[--g->n_undo];
        memcpy(saved->address, g->bytes + saved->at, saved->len);
    }
    g->n_bytes = 0;
}

/* ---- choices ---- */

/* The outcome that the caller requested for the next choice; UINT64_MAX: none.
 */
static uint64_t requested(const tr_switch *s, const tr_pkt *p)
{
    const tr_tracer *g = s->tracer;
    if (!g || !g->dry_run || !p->mark || g->chosen >= g->n_choices)
        return UINT64_MAX;
    return g->choices[g->chosen];
}

uint32_t tr_choose(tr_switch *s, const tr_pkt *p, enum tr_choice what,
                   uint32_t n, uint32_t natural)
{
    tr_tracer *g = s->tracer;
    if (!g || !p->mark || n < 2)
        return natural;
    uint64_t wanted = requested(s, p);
    uint32_t outcome = wanted < n ? (uint32_t)wanted : natural;
    g->chosen++;
    TR_TRACE_ALWAYS(s, p, TR_RECORD_CHOICE, what, n, outcome);
    return outcome;
}

uint32_t tr_trace_meter(tr_switch *s, const tr_pkt *p, uint32_t meter,
                        uint64_t index, tr_meter *m, uint64_t amount)
{
    if (!tr_undo_save(s, p, m, sizeof *m))
        return 0;
    uint32_t colour = tr_meter_execute(m, p->in_len, amount, s->now_ps);
    if (m->mode != TR_METER_UNSET)
        colour = tr_choose(s, p, TR_CHOICE_COLOUR, 3, colour);
    TR_TRACE_ALWAYS(s, p, TR_RECORD_METER, meter, index, 1, colour);
    return colour;
}

uint64_t tr_trace_random(tr_switch *s, const tr_pkt *p, uint64_t lo,
                         uint64_t hi)
{
    uint64_t value = tr_random(s, lo, hi), span = hi - lo;
    if (span && span < TR_DRY_RUN_SPAN)
        value = lo + tr_choose(s, p, TR_CHOICE_RANDOM, (uint32_t)span + 1,
                               (uint32_t)(value - lo));
    else if (span) {
        /* a wide range: the outcomes are evenly spaced values, then the value
         * that is drawn without a dry run, then each value from lo on */
        uint64_t wanted = requested(s, p);
        uint32_t i = tr_choose(s, p, TR_CHOICE_RANDOM, TR_DRY_RUN_SPAN + 1,
                               TR_DRY_RUN_SPAN);
        if (wanted > TR_DRY_RUN_SPAN && wanted - TR_DRY_RUN_SPAN - 1 <= span)
            value = lo + (wanted - TR_DRY_RUN_SPAN - 1);
        else if (i < TR_DRY_RUN_SPAN)
            value = lo + (uint64_t)((tr_u128)span * i / (TR_DRY_RUN_SPAN - 1));
    }
    TR_TRACE_ALWAYS(s, p, TR_RECORD_RANDOM, lo, hi, value);
    return value;
}

/* ---- packets ---- */

int tr_trace_may_copy(tr_switch *s, const tr_pkt *p)
{
    tr_tracer *g = s->tracer;
    if (!g || !g->dry_run || !p->mark)
        return 1;
    if (g->packets >= MOST_STEPS || g->pkt_bytes + p->size > MOST_PKT_BYTES)
        g->full = 1;
    return !g->full;
}

static int enqueue(tr_tracer *g, tr_pkt *p, enum tr_record_kind kind)
{
    g->pkt_bytes += p->size;
    p->order = kind; /* reused for the reason why the packet waits */
    tr_list_add(&g->head, &g->tail, p);
    return 1;
}

/* The reason for which the switch would drop a packet instead of queueing it;
 * TR_DROP_COUNT: none. */
static enum tr_drop refused(tr_switch *s, uint32_t port, uint32_t priority,
                            const tr_queue *q, uint64_t bytes)
{
    if (port >= TR_MAX_PORTS)
        return TR_DROP_PORT;
    if (priority >= s->cfg.priorities)
        return TR_DROP_PRIORITY;
    if (q && q->max_packets && q->packets >= q->max_packets)
        return TR_DROP_QUEUE_PACKETS;
    if (q && q->max_bytes && q->bytes + bytes > q->max_bytes)
        return TR_DROP_QUEUE_BYTES;
    return TR_DROP_COUNT;
}

int tr_trace_queue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority)
{
    tr_tracer *g = s->tracer;
    const tr_queue *q = NULL;
    if (port < TR_MAX_PORTS && s->ports[port] && priority < s->cfg.priorities)
        q = &s->ports[port]->queue[priority];
    TR_TRACE_ALWAYS(s, p, TR_RECORD_QUEUE, port, priority, q ? q->packets : 0,
                    q ? q->bytes : 0, tr_trace_paused(s, port, priority));
    if (!g || !g->dry_run)
        return 0;
    enum tr_drop why = refused(s, port, priority, q, tr_pkt_bytes(p));
    if (why != TR_DROP_COUNT) {
        TR_TRACE_ALWAYS(s, p, TR_RECORD_DROP, why);
        tr_pkt_free(s, p);
        return 1;
    }
    p->egress_port = port;
    p->priority = (uint8_t)priority;
    return enqueue(g, p, TR_RECORD_QUEUE);
}

int tr_trace_reentry(tr_switch *s, tr_pkt *p, enum tr_record_kind kind)
{
    tr_tracer *g = s->tracer;
    TR_TRACE_ALWAYS(s, p, kind);
    if (!g || !g->dry_run)
        return 0;
    p->resubmit = 0;
    return enqueue(g, p, kind);
}

/* ---- dry runs ---- */

/* Records that p is sent or dropped at its egress port, and frees p. */
static void leave(tr_switch *s, tr_pkt *p)
{
    const tr_port *t = s->ports[p->egress_port];
    if (t && t->down) {
        TR_TRACE_ALWAYS(s, p, TR_RECORD_DROP, TR_DROP_PORT_DOWN);
    } else {
        const uint64_t fields[] = {TR_RECORD_SENT, p->egress_port, p->len,
                                   p->virt};
        tr_trace_bytes(s, p, fields, 4, p->buf + p->off, p->len);
    }
    tr_pkt_free(s, p);
}

static void run_packets(tr_switch *s, tr_tracer *g, const tr_program *tracing,
                        tr_pkt *p)
{
    tracing->ingress(s, p, s->now_ps);
    for (uint32_t steps = 0; g->head; steps++) {
        p = tr_list_take(&g->head, &g->tail);
        g->pkt_bytes -= p->size;
        if (steps >= MOST_STEPS || g->cut) {
            g->cut = 1;
            tr_pkt_free(s, p);
        } else if (p->order != TR_RECORD_QUEUE) {
            tracing->ingress(s, p, s->now_ps);
        } else if (tracing->egress(s, p, s->now_ps)) {
            leave(s, p);
        }
    }
}

#define SAVE(member) tr_undo_save(s, p, &s->member, sizeof s->member)

/* Saves the state of the switch that a packet may change, except the program's
 * state, and what run_frame sets. Returns 0 if there is no memory. */
static int save_state(tr_switch *s, const tr_pkt *p)
{
    return SAVE(prog) && SAVE(coverage) && SAVE(drops) && SAVE(account) &&
           SAVE(now_ps) && SAVE(ticks_at_ps) && SAVE(ticks) && SAVE(rng) &&
           SAVE(digest_head) && SAVE(digest_count) && SAVE(log) &&
           SAVE(lost) && SAVE(clock);
}

static int run_frame(tr_switch *s, tr_tracer *g, const tr_program *regular,
                     const tr_program *tracing, uint32_t port,
                     const uint8_t *data, uint32_t len, uint64_t now_ps)
{
    if (!tr_tracer_fits(s, regular))
        return TR_EINVAL;
    if (port >= TR_MAX_PORTS || len > TR_MAX_FRAME)
        return TR_ERANGE;
    tr_pkt *p = tr_pkt_in(s, port, data, len, 0);
    if (!p)
        return TR_ENOMEM;
    p->mark = g->packets = 1;
    tr_tracer *other_tracer = s->tracer;
    s->tracer = g;
    g->dry_run = 1;
    int saved = save_state(s, p);
    if (saved) {
        s->prog = tracing;
        s->coverage = g->coverage;
        s->log = NULL;
        s->lost = NULL;
        s->clock = NULL; /* times are the same in each dry run */
        if (now_ps > s->now_ps)
            s->now_ps = now_ps;
        run_packets(s, g, tracing, p);
    } else {
        tr_pkt_free(s, p);
    }
    g->dry_run = 0;
    undo(g);
    s->tracer = other_tracer;
    s->traced_pkt = NULL;
    return saved ? TR_OK : TR_ENOMEM;
}

int tr_dry_run(tr_switch *s, tr_tracer *g, const tr_program *regular,
               const tr_program *tracing, uint32_t port, const uint8_t *data,
               uint32_t len, uint64_t now_ps, const uint64_t *choices,
               uint32_t n)
{
    if (n > MOST_CHOICES)
        return TR_ERANGE;
    tr_switch_lock(s);
    g->n = g->cut = g->chosen = 0;
    g->full = 0;
    g->choices = choices;
    g->n_choices = n;
    int rc = run_frame(s, g, regular, tracing, port, data, len, now_ps);
    g->cut |= (uint32_t)g->full;
    g->choices = NULL;
    tr_switch_unlock(s);
    return rc;
}
