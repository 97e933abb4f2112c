/* The event loop of a switch: packets that re-enter ingress, and due ports.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A port is due after an event (a packet queued, a pause, a control call): the
 * port's bit in `due` is set until the port is served. Ports with a later
 * event, such as the next departure from their queues, are in `heap`. So idle
 * ports cost no time.
 */
#include "tr_tm.h"

/* Steps (passes and copies of packets) after which tr_run returns to its caller
 * if no time passes: a program that resubmits packets or copies endlessly must
 * not block the switch. */
#define STEP_LIMIT 65536u
/* The limit while a control call waits for the lock: a pass of a long frame
 * takes some 10 us. */
#define STEPS_UNDER_CONTENTION 1024u

/* Whether tr_run may take more steps before it returns to its caller. Sent
 * packets use more memory than queued packets until the caller releases them,
 * so their memory is limited, too. */
static int may_continue(const tr_switch *s)
{
    return s->steps < STEP_LIMIT &&
           (s->steps < STEPS_UNDER_CONTENTION ||
            !atomic_load_explicit(&s->waiting, memory_order_relaxed)) &&
           (!s->cfg.packet_bytes || s->out_bytes < s->cfg.packet_bytes / 4);
}

/* ---- re-entry: resubmit and recirculate ---- */

static void reenter(tr_switch *s, tr_reentry *r, tr_pkt *p, uint64_t ready_ps)
{
    p->resubmit = 0;
    p->ready_ps = ready_ps;
    p->order = s->reentries++;
    tr_list_add(&r->head, &r->tail, p);
    r->count++;
}

void tr_resubmit(tr_switch *s, tr_pkt *p, uint64_t now_ps)
{
    if (s->resubmitted.count >= TR_REENTRY_DEPTH) {
        tr_drop(s, p, TR_DROP_RESUBMIT_FULL);
        return;
    }
    reenter(s, &s->resubmitted, p, now_ps);
}

void tr_recirculate(tr_switch *s, tr_pkt *p, uint64_t now_ps)
{
    /* a lossless packet is never dropped here: it has space in the buffer */
    if (s->recirculated.count >= TR_REENTRY_DEPTH &&
        p->charge != TR_CHARGE_LOSSLESS) {
        tr_drop(s, p, TR_DROP_RECIRC_FULL);
        return;
    }
    uint64_t start =
        s->recirc_busy_ps > now_ps ? s->recirc_busy_ps : now_ps;
    if (s->cfg.recirc_rate_bps)
        start += (uint64_t)((tr_u128)((uint64_t)p->len + p->virt) * 8 *
                            TR_PS_PER_S / s->cfg.recirc_rate_bps);
    s->recirc_busy_ps = start;
    if (s->recirculated_fn) {
        tr_lost frame = tr_pkt_lost(p);
        s->recirculated_fn(s->recirculated_arg, now_ps, &frame);
    }
    reenter(s, &s->recirculated, p, start);
}

static int ready(const tr_reentry *r, uint64_t now_ps)
{
    return r->head && r->head->ready_ps <= now_ps;
}

/* Dequeues the first packet that may re-enter ingress now; NULL: none.
 * Resubmitted packets do not wait for recirculated packets that are still being
 * serialised. */
static tr_pkt *reentry_take(tr_switch *s, uint64_t now_ps)
{
    tr_reentry *r = &s->resubmitted;
    if (!ready(r, now_ps) ||
        (ready(&s->recirculated, now_ps) &&
         s->recirculated.head->order < r->head->order))
        r = &s->recirculated;
    if (!ready(r, now_ps))
        return NULL;
    r->count--;
    return tr_list_take(&r->head, &r->tail);
}

static uint64_t reentry_next(const tr_switch *s)
{
    uint64_t a = s->resubmitted.head ? s->resubmitted.head->ready_ps
                                     : TR_NEVER;
    uint64_t b = s->recirculated.head ? s->recirculated.head->ready_ps
                                      : TR_NEVER;
    return a < b ? a : b;
}

/* ---- ports with a later event: a binary heap ---- */

static void heap_put(tr_switch *s, uint32_t place, tr_wait w)
{
    s->heap[place] = w;
    s->ports[w.port]->heap_at = (uint16_t)place;
}

static void sift_up(tr_switch *s, uint32_t place, tr_wait w)
{
    while (place > 0 && s->heap[(place - 1) / 2].time_ps > w.time_ps) {
        heap_put(s, place, s->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(s, place, w);
}

static void sift_down(tr_switch *s, uint32_t place, tr_wait w)
{
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap &&
            s->heap[child + 1].time_ps < s->heap[child].time_ps)
            child++;
        if (s->heap[child].time_ps >= w.time_ps)
            break;
        heap_put(s, place, s->heap[child]);
        place = child;
    }
    heap_put(s, place, w);
}

/* Sets the time of a port's next event; TR_NEVER: the port has none. */
static void schedule(tr_switch *s, uint32_t port, uint64_t time_ps)
{
    uint32_t place = s->ports[port]->heap_at;
    tr_wait w = {time_ps, port};
    if (time_ps == TR_NEVER) {
        if (place == TR_NO_PLACE)
            return;
        s->ports[port]->heap_at = TR_NO_PLACE;
        w = s->heap[--s->n_heap];
        if (w.port == port)
            return;
    } else if (place == TR_NO_PLACE) {
        sift_up(s, s->n_heap++, w);
        return;
    }
    if (place > 0 && s->heap[(place - 1) / 2].time_ps > w.time_ps)
        sift_up(s, place, w);
    else
        sift_down(s, place, w);
}

/* Marks the ports whose next event is at or before now as due. */
static void wake_ports(tr_switch *s, uint64_t now_ps)
{
    while (s->n_heap && s->heap[0].time_ps <= now_ps) {
        uint32_t port = s->heap[0].port;
        schedule(s, port, TR_NEVER);
        tr_port_touch(s, port);
    }
}

void tr_ports_clear(tr_switch *s)
{
    while (s->n_heap)
        s->ports[s->heap[--s->n_heap].port]->heap_at = TR_NO_PLACE;
    memset(s->due, 0, sizeof s->due);
    s->due_words = 0;
}

/* ---- the loop ---- */

/* Drops the packets in queues with a PFC storm (tr_watch.c). They pass egress
 * first, as at a port that is down, so that a program that counted their bytes
 * in ingress can subtract them again. */
static void discard(tr_switch *s, tr_port *t, uint64_t now_ps)
{
    for (unsigned bits = t->dropping; bits; bits &= bits - 1) {
        uint32_t priority = (uint32_t)__builtin_ctz(bits);
        tr_pkt *p;
        while (may_continue(s) && (p = tr_port_take_to_drop(s, t, priority))) {
            s->steps++;
            if (TR_EGRESS(s, p, now_ps))
                tr_port_drop(s, t, p, TR_DROP_PFC_STORM);
        }
    }
}

/* Serves a port: sends all packets that may leave now. */
static void port_work(tr_switch *s, uint32_t port, uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    /* when the PFC watchdog must check again */
    uint64_t check = t->watched ? tr_watch(s, port, now_ps) : TR_NEVER;
    if (t->dropping & t->waiting)
        discard(s, t, now_ps);
    tr_pkt *p;
    while (may_continue(s) && (p = tr_port_dequeue(s, t, now_ps))) {
        s->steps++;
        if (TR_EGRESS(s, p, now_ps)) {
            if (p->charge)
                tr_buffer_release(s, p);
            tr_port_send(s, p, now_ps);
        }
    }
    uint64_t next =
        t->pfc_state ? tr_pfc_refresh(s, port, now_ps) : TR_NEVER;
    uint64_t leave = tr_port_next(t);
    if (leave < next)
        next = leave;
    if (check < next)
        next = check;
    if (next <= now_ps)
        tr_port_touch(s, port); /* the limit of steps was reached */
    else if (next != TR_NEVER || t->heap_at != TR_NO_PLACE)
        schedule(s, port, next);
}

/* Serves each due port once, by port number. */
static void ports_work(tr_switch *s, uint64_t now_ps)
{
    for (uint32_t w = 0; s->due_words >> w; w++) {
        uint64_t passed = 0; /* bits up to the last served port */
        for (uint64_t bits; (bits = s->due[w] & ~passed);) {
            uint32_t bit = (uint32_t)__builtin_ctzll(bits);
            passed |= (2ULL << bit) - 1;
            s->due[w] &= ~(1ULL << bit);
            port_work(s, w * 64 + bit, now_ps);
        }
        if (!s->due[w])
            s->due_words &= (uint8_t)~(1u << w);
    }
}

/* Does all work that is due now. Returns 0 if a limit of may_continue ended the
 * work earlier. */
static int work(tr_switch *s, uint64_t now_ps)
{
    s->steps = 0;
    for (;;) {
        tr_pkt *p;
        while (may_continue(s) && (p = reentry_take(s, now_ps))) {
            s->steps++;
            TR_INGRESS(s, p, now_ps);
        }
        if (may_continue(s))
            ports_work(s, now_ps);
        if (!may_continue(s))
            return 0;
        if (!s->due_words && reentry_next(s) > now_ps)
            return 1;
    }
}

uint64_t tr_data_run(tr_switch *s, uint64_t now_ps)
{
    if (!s->prog)
        return TR_NEVER;
    /* ports that become due between two calls are served at the time of the
     * second call */
    if (s->next_event_ps > now_ps && now_ps > s->now_ps)
        s->now_ps = now_ps;
    for (;;) {
        if (!work(s, s->now_ps)) {
            s->next_event_ps = s->now_ps;
            return s->next_event_ps;
        }
        uint64_t next = reentry_next(s);
        if (s->n_heap && s->heap[0].time_ps < next)
            next = s->heap[0].time_ps;
        s->next_event_ps = next;
        if (next > now_ps)
            break;
        s->now_ps = next;
        wake_ports(s, next);
    }
    if (now_ps > s->now_ps)
        s->now_ps = now_ps;
    return s->next_event_ps;
}

uint64_t tr_next(const tr_switch *s)
{
    return s->prog && s->due_words ? s->now_ps : s->next_event_ps;
}
