/* Tries: what a switch would do with a packet, and nothing of it changes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A try runs a packet by the switch's own program and state. What the program
 * writes to the state is kept before, and put back in reverse at the end. Its
 * packets are never queued: they wait in the try's own list, so that what waits
 * in the switch, and when it leaves, stays as it is.
 */
#include "tr_tracer_internal.h"

/* Passes of a try through ingress or egress. */
#define TRY_STEPS 4096u
/* Memory of the packets that wait in a try. */
#define TRY_BYTES (8u << 20)
/* State that one try may write. */
#define KEPT_BYTES (64u << 20)
#define MOST_CHOICES 4096u

/* ---- undoing ---- */

int tr_keep(tr_switch *s, const tr_pkt *p, void *bytes, uint32_t len)
{
    tr_glass *g = s->glass;
    if (!g || !p->mark || !g->trying)
        return 1;
    if (g->n_bytes > KEPT_BYTES - len ||
        !tr_glass_grow((void **)&g->kept, &g->kept_room, g->n_kept + 1,
                       sizeof *g->kept) ||
        !tr_glass_grow((void **)&g->bytes, &g->bytes_room, g->n_bytes + len,
                       1)) {
        g->cut = 1;
        return 0;
    }
    g->kept[g->n_kept++] = (kept){bytes, len, g->n_bytes};
    memcpy(g->bytes + g->n_bytes, bytes, len);
    g->n_bytes += len;
    return 1;
}

int tr_keep_entry(tr_switch *s, const tr_pkt *p, tr_entry *e)
{
    tr_entry_rest *rest = tr_rest(e);
    return tr_keep(s, p, &e->last_hit_ps, sizeof e->last_hit_ps) &&
           tr_keep(s, p, &rest->packets, sizeof rest->packets) &&
           tr_keep(s, p, &rest->bytes, sizeof rest->bytes) &&
           (!rest->meter ||
            tr_keep(s, p, rest->meter, sizeof *rest->meter));
}

static void put_back(tr_glass *g)
{
    while (g->n_kept) {
        const kept *k = &g->kept[--g->n_kept];
        memcpy(k->place, g->bytes + k->at, k->len);
    }
    g->n_bytes = 0;
}

/* ---- choices ---- */

/* The outcome of the next choice that a try asks for; UINT64_MAX: none. */
static uint64_t asked_for(const tr_switch *s, const tr_pkt *p)
{
    const tr_glass *g = s->glass;
    if (!g || !g->trying || !p->mark || g->chosen >= g->n_choices)
        return UINT64_MAX;
    return g->choices[g->chosen];
}

uint32_t tr_choose(tr_switch *s, const tr_pkt *p, enum tr_choice what,
                   uint32_t n, uint32_t natural)
{
    tr_glass *g = s->glass;
    if (!g || !p->mark || n < 2)
        return natural;
    uint64_t asked = asked_for(s, p);
    uint32_t taken = asked < n ? (uint32_t)asked : natural;
    g->chosen++;
    TR_SEE_ALWAYS(s, p, TR_SEEN_CHOICE, what, n, taken);
    return taken;
}

tr_entry *tr_see_resolve(tr_switch *s, const tr_pkt *p, uint32_t profile,
                         const tr_entry *e, uint64_t hash,
                         const tr_entry **first)
{
    uint64_t rng = s->rng;
    tr_entry *member = tr_profile_resolve(s, profile, e, hash, first);
    uint64_t of = 0, place = 0, group = 0;
    if (e->kind == TR_TARGET_GROUP) {
        const tr_profile *list = &s->profiles[profile];
        const tr_group *g =
            e->id < list->n_groups ? list->groups[e->id] : NULL;
        group = e->id + 1ULL;
        of = g ? g->n : 0;
        if (of) {
            /* a drawn member: the same draw again, to know its place */
            uint64_t after = s->rng;
            s->rng = rng;
            place = g->drawn ? tr_random(s, 0, of - 1) : hash % of;
            s->rng = after;
            place = tr_choose(s, p, TR_CHOICE_MEMBER, (uint32_t)of,
                              (uint32_t)place);
            int handle = g->members[place];
            member = (uint32_t)handle < list->n_members
                         ? list->members[handle]
                         : NULL;
        }
    }
    uint64_t handle = member ? (uint64_t)tr_rest(member)->handle + 1 : 0;
    const uint64_t words[] = {TR_SEEN_MEMBER, profile, group, place, of,
                              handle};
    tr_see(s, p, words, 6);
    return member;
}

uint32_t tr_see_meter(tr_switch *s, const tr_pkt *p, uint32_t meter,
                      uint64_t index, tr_meter *m, uint64_t amount)
{
    if (!tr_keep(s, p, m, sizeof *m))
        return 0;
    uint32_t colour = tr_meter_execute(m, p->in_len, amount, s->now_ps);
    if (m->mode != TR_METER_UNSET)
        colour = tr_choose(s, p, TR_CHOICE_COLOUR, 3, colour);
    const uint64_t words[] = {TR_SEEN_METER, meter, index, 1, colour};
    tr_see(s, p, words, 5);
    return colour;
}

uint64_t tr_see_random(tr_switch *s, const tr_pkt *p, uint64_t lo, uint64_t hi)
{
    uint64_t value = tr_random(s, lo, hi), span = hi - lo;
    if (span && span < TR_GLASS_SPAN)
        value = lo + tr_choose(s, p, TR_CHOICE_RANDOM, (uint32_t)span + 1,
                               (uint32_t)(value - lo));
    else if (span) {
        /* some of many, as far apart as can be; the one that comes by itself
         * is the last */
        uint64_t asked = asked_for(s, p);
        uint32_t at = tr_choose(s, p, TR_CHOICE_RANDOM, TR_GLASS_SPAN + 1,
                                TR_GLASS_SPAN);
        if (asked > TR_GLASS_SPAN && asked - TR_GLASS_SPAN - 1 <= span)
            value = lo + (asked - TR_GLASS_SPAN - 1);
        else if (at < TR_GLASS_SPAN)
            value = lo + (uint64_t)((tr_u128)span * at / (TR_GLASS_SPAN - 1));
    }
    const uint64_t words[] = {TR_SEEN_RANDOM, lo, hi, value};
    tr_see(s, p, words, 4);
    return value;
}

/* ---- packets ---- */

int tr_see_room(tr_switch *s, const tr_pkt *p)
{
    tr_glass *g = s->glass;
    if (!g || !g->trying || !p->mark)
        return 1;
    if (g->packets >= TRY_STEPS || g->held_bytes + p->size > TRY_BYTES)
        g->full = 1;
    return !g->full;
}

static int hold(tr_glass *g, tr_pkt *p, enum tr_seen how)
{
    g->held_bytes += p->size;
    p->order = how;
    p->next = NULL;
    if (g->tail)
        g->tail->next = p;
    else
        g->head = p;
    g->tail = p;
    return 1;
}

/* Why a packet would not be queued; TR_DROP_COUNT: it would. */
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

int tr_see_queue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority)
{
    tr_glass *g = s->glass;
    const tr_queue *q = NULL;
    if (port < TR_MAX_PORTS && s->ports[port] && priority < s->cfg.priorities)
        q = &s->ports[port]->queue[priority];
    TR_SEE_ALWAYS(s, p, TR_SEEN_QUEUE, port, priority, q ? q->packets : 0,
                  q ? q->bytes : 0, tr_see_paused(s, port, priority));
    if (!g || !g->trying)
        return 0;
    enum tr_drop why = refused(s, port, priority, q, tr_pkt_bytes(p));
    if (why != TR_DROP_COUNT) {
        TR_SEE_ALWAYS(s, p, TR_SEEN_DROP, why);
        tr_pkt_free(s, p);
        return 1;
    }
    p->egress_port = port;
    p->priority = (uint8_t)priority;
    return hold(g, p, TR_SEEN_QUEUE);
}

int tr_see_again(tr_switch *s, tr_pkt *p, enum tr_seen how)
{
    tr_glass *g = s->glass;
    TR_SEE_ALWAYS(s, p, how);
    if (!g || !g->trying)
        return 0;
    p->resubmit = 0;
    return hold(g, p, how);
}

/* ---- tries ---- */

static tr_pkt *take(tr_glass *g)
{
    tr_pkt *p = g->head;
    if (p) {
        g->head = p->next;
        if (!g->head)
            g->tail = NULL;
        g->held_bytes -= p->size;
        p->next = NULL;
    }
    return p;
}

static void leave(tr_switch *s, tr_pkt *p)
{
    const tr_port *t = s->ports[p->egress_port];
    if (t && t->down) {
        TR_SEE_ALWAYS(s, p, TR_SEEN_DROP, TR_DROP_PORT_DOWN);
    } else {
        const uint64_t words[] = {TR_SEEN_SENT, p->egress_port, p->len,
                                  p->virt};
        tr_see_bytes(s, p, words, 4, p->buf + p->off, p->len);
    }
    tr_pkt_free(s, p);
}

static void go(tr_switch *s, tr_glass *g, const tr_program *glass, tr_pkt *p)
{
    glass->ingress(s, p, s->now_ps);
    for (uint32_t steps = 0; (p = take(g)); steps++) {
        if (steps >= TRY_STEPS || g->cut) {
            g->cut = 1;
            tr_pkt_free(s, p);
        } else if (p->order != TR_SEEN_QUEUE) {
            glass->ingress(s, p, s->now_ps);
        } else if (glass->egress(s, p, s->now_ps)) {
            leave(s, p);
        }
    }
}

/* What a packet may change beside the program's state. */
typedef struct aside {
    const tr_program *prog;
    uint64_t drops[TR_DROP_COUNT];
    tr_account account;
    uint64_t now_ps, ticks_at_ps, ticks, rng;
    uint32_t digest_head, digest_count;
    tr_log_fn log;
    tr_lost_fn lost;
    tr_clock_fn clock;
} aside;

static aside put_aside(tr_switch *s, const tr_program *glass, uint64_t now_ps)
{
    aside a = {.prog = s->prog, .account = s->account, .now_ps = s->now_ps,
               .ticks_at_ps = s->ticks_at_ps, .ticks = s->ticks,
               .rng = s->rng, .digest_head = s->digest_head,
               .digest_count = s->digest_count, .log = s->log,
               .lost = s->lost, .clock = s->clock};
    memcpy(a.drops, s->drops, sizeof a.drops);
    s->prog = glass;
    s->log = NULL;
    s->lost = NULL;
    s->clock = NULL; /* the same try has the same times */
    if (now_ps > s->now_ps)
        s->now_ps = now_ps;
    return a;
}

static void take_back(tr_switch *s, const aside *a)
{
    s->prog = a->prog;
    memcpy(s->drops, a->drops, sizeof s->drops);
    s->account = a->account;
    s->now_ps = a->now_ps;
    s->ticks_at_ps = a->ticks_at_ps;
    s->ticks = a->ticks;
    s->rng = a->rng;
    s->digest_head = a->digest_head;
    s->digest_count = a->digest_count;
    s->log = a->log;
    s->lost = a->lost;
    s->clock = a->clock;
}

static int try_frame(tr_switch *s, tr_glass *g, const tr_program *plain,
                     const tr_program *glass, uint32_t port,
                     const uint8_t *data, uint32_t len, uint64_t now_ps)
{
    if (!tr_glass_runs(s, plain))
        return TR_EINVAL;
    if (port >= TR_MAX_PORTS || len > TR_MAX_FRAME)
        return TR_ERANGE;
    tr_pkt *p = tr_pkt_in(s, port, data, len, 0);
    if (!p)
        return TR_ENOMEM;
    p->mark = g->packets = 1;
    aside a = put_aside(s, glass, now_ps);
    tr_glass *before = s->glass;
    uint64_t *counts = s->used;
    s->glass = g;
    s->used = g->used;
    g->trying = 1;
    go(s, g, glass, p);
    g->trying = 0;
    put_back(g);
    s->glass = before;
    s->used = counts;
    s->seen_pkt = NULL;
    take_back(s, &a);
    return TR_OK;
}

int tr_glass_try(tr_switch *s, tr_glass *g, const tr_program *plain,
                 const tr_program *glass, uint32_t port, const uint8_t *data,
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
    int rc = try_frame(s, g, plain, glass, port, data, len, now_ps);
    g->cut |= (uint32_t)g->full;
    g->choices = NULL;
    tr_switch_unlock(s);
    return rc;
}
