/* A switch of glass: records of what it does, and tries that change nothing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A try runs a packet by the switch's own program and state. What the program
 * writes to the state is kept before, and put back in reverse at the end. Its
 * packets are never queued: they wait in the try's own list, so that what waits
 * in the switch, and when it leaves, stays as it is.
 */
#include "tr_tm.h"

#include "tr_mem.h"

#include <stdlib.h>

/* Passes of a try through ingress or egress. */
#define TRY_STEPS 4096u
/* State that one try may write. */
#define KEPT_BYTES (64u << 20)
#define MOST_CHOICES 4096u

typedef struct kept {
    void *place;
    uint32_t len, at;         /* its bytes, in tr_glass.bytes */
} kept;

typedef struct arrival {
    uint64_t time_ps;
    uint32_t port;
} arrival;

struct tr_glass {
    uint64_t *words;
    uint32_t n, room, cut;
    uint32_t packets;         /* numbered so far */
    uint32_t missed;          /* that came in while there was little room */
    int told;                 /* packets that come in are marked */
    arrival *awaited;         /* that are told of in full, NULL: all */
    uint32_t n_awaited;
    uint64_t *used;
    uint32_t uses, tables;
    struct { uint8_t *bits; uint32_t bytes; } *entries;
    /* the stage's PHV and locals as the last record left them */
    uint8_t *seen;
    uint32_t phv_size, locals_size, seen_room;
    /* a try: */
    int trying;
    tr_pkt *head, *tail;
    kept *kept;
    uint32_t n_kept, kept_room;
    uint8_t *bytes;
    uint32_t n_bytes, bytes_room;
    const uint64_t *choices;
    uint32_t n_choices, chosen;
};

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

/* ---- a try's undoing ---- */

static int grow(void **list, uint32_t *room, uint32_t want, size_t item)
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

int tr_keep(tr_switch *s, const tr_pkt *p, void *bytes, uint32_t len)
{
    tr_glass *g = s->glass;
    if (!g || !p->mark || !g->trying)
        return 1;
    if (g->n_bytes > KEPT_BYTES - len ||
        !grow((void **)&g->kept, &g->kept_room, g->n_kept + 1,
              sizeof *g->kept) ||
        !grow((void **)&g->bytes, &g->bytes_room, g->n_bytes + len, 1)) {
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

void tr_see_copy(tr_switch *s, const tr_pkt *p, tr_pkt *q, uint32_t port,
                 uint32_t instance)
{
    if (!s->glass || !p->mark)
        return;
    q->mark = ++s->glass->packets | (p->mark & TR_GLASS_BRIEF);
    TR_SEE_ALWAYS(s, p, TR_SEEN_COPY, q->mark, port, instance);
}

static int hold(tr_glass *g, tr_pkt *p, enum tr_seen how)
{
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

/* Whether it is the switch's program, which a program of glass stands for while
 * somebody watches. Of another program the state has other places. */
static int is_running(const tr_switch *s, const tr_program *plain)
{
    return plain && plain == (s->plain ? s->plain : s->prog);
}

static tr_pkt *take(tr_glass *g)
{
    tr_pkt *p = g->head;
    if (p) {
        g->head = p->next;
        if (!g->head)
            g->tail = NULL;
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
    if (!is_running(s, plain))
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
    g->choices = choices;
    g->n_choices = n;
    int rc = try_frame(s, g, plain, glass, port, data, len, now_ps);
    g->choices = NULL;
    tr_switch_unlock(s);
    return rc;
}

/* ---- watching ---- */

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
    if (g && !is_running(s, plain)) {
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
    if (!grow((void **)&g->entries[table].bits, &g->entries[table].bytes,
              at / 8 + 1, 1))
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
