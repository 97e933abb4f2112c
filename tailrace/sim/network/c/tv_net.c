/* The network: the schedule of the nodes' next events, and the loop that runs
 * one window (period of time, tv.h) after another.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A wire is one direction of a link. A tap is a Python function called for each
 * event of a wire. A rank is one of the processes that run the network.
 */
#include "tv_host.h"
#include "tv_net.h"

#include <stdlib.h>

/* Windows between two checks for signals. */
#define SIGNAL_WINDOWS 256u
/* Windows at one instant after which frames are assumed to loop for ever. */
#define MOST_ROUNDS 1000000u

int tv_resize(void *array, size_t bytes)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *resized = realloc(old, bytes);
    if (!resized) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(array, &resized, sizeof resized);
    return 0;
}

/* ---- the schedule ---- */

static int schedule_grow(tv_schedule *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : TV_BLOCK;
    if (tv_resize(&s->next, cap * sizeof *s->next) < 0 ||
        tv_resize(&s->least, cap / TV_BLOCK * sizeof *s->least) < 0 ||
        tv_resize(&s->stale, cap / TV_BLOCK) < 0)
        return -1;
    for (uint32_t i = s->cap; i < cap; i++)
        s->next[i] = TC_NEVER;
    for (uint32_t i = s->cap / TV_BLOCK; i < cap / TV_BLOCK; i++) {
        s->least[i] = TC_NEVER;
        s->stale[i] = 0;
    }
    s->cap = cap;
    return 0;
}

void tv_schedule_lower(tv_schedule *s, uint32_t node, uint64_t time_ps)
{
    if (time_ps >= s->next[node])
        return;
    s->next[node] = time_ps;
    if (time_ps < s->least[node / TV_BLOCK])
        s->least[node / TV_BLOCK] = time_ps;
}

static void schedule_set(tv_schedule *s, uint32_t node, uint64_t time_ps)
{
    s->next[node] = time_ps;
    if (time_ps < s->least[node / TV_BLOCK])
        s->least[node / TV_BLOCK] = time_ps;
    else
        s->stale[node / TV_BLOCK] = 1;
}

/* The time of the earliest event of all nodes. */
static uint64_t schedule_first(tv_schedule *s)
{
    uint64_t first = TC_NEVER;
    for (uint32_t b = 0; b < s->blocks; b++) {
        if (s->stale[b]) {
            uint64_t least = TC_NEVER;
            const uint64_t *next = s->next + b * TV_BLOCK;
            for (uint32_t i = 0; i < TV_BLOCK; i++)
                least = next[i] < least ? next[i] : least;
            s->least[b] = least;
            s->stale[b] = 0;
        }
        if (s->least[b] < first)
            first = s->least[b];
    }
    return first;
}

/* ---- assembly ---- */

int tv_net_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(tv_error_class, format, arguments);
    va_end(arguments);
    return -1;
}

int tv_net_add_node(tv_net *net, tv_node *n)
{
    if (net->n_nodes == net->schedule.cap &&
        (schedule_grow(&net->schedule) < 0 ||
         tv_resize(&net->nodes, net->schedule.cap * sizeof *net->nodes) < 0))
        return -1;
    n->index = net->n_nodes++;
    net->nodes[n->index] = n;
    net->schedule.blocks = (net->n_nodes + TV_BLOCK - 1) / TV_BLOCK;
    return 0;
}

int tv_net_add_wire(tv_net *net, tv_wire *w)
{
    if (tv_resize(&net->wires, (net->n_wires + 1) * sizeof *net->wires) < 0)
        return -1;
    w->index = net->n_wires++;
    net->wires[w->index] = w;
    return 0;
}

void tv_net_clear(tv_net *net)
{
    for (uint32_t i = 0; i < net->n_nodes; i++)
        tv_node_free(net->nodes[i]);
    for (uint32_t i = 0; i < net->n_wires; i++)
        tv_wire_free(net->wires[i]);
    free(net->nodes);
    free(net->wires);
    free(net->schedule.next);
    free(net->schedule.least);
    free(net->schedule.stale);
    net->nodes = NULL;
    net->wires = NULL;
    net->n_nodes = net->n_wires = 0;
    memset(&net->schedule, 0, sizeof net->schedule);
}

/* ---- running ---- */

static int is_local(const tv_net *net, uint32_t node)
{
    return net->nodes[node]->rank == tv_ranks_own(net->ranks);
}

/* The look-ahead (tv_net.h): the least time from sending a frame to its
 * arrival, over the wires within this rank except those from switches to hosts
 * (which run after all switches, and so receive frames of the same window).
 * Sets *between_ps to this time for wires to other ranks. First reads the rates
 * of the wires, which faults or control calls may have changed since the last
 * run. */
static uint64_t look_ahead(tv_net *net, uint64_t *between_ps)
{
    uint64_t ahead_ps = TC_NEVER;
    *between_ps = TC_NEVER;
    for (uint32_t i = 0; i < net->n_wires; i++) {
        tv_wire *w = net->wires[i];
        const tr_switch *core = net->nodes[w->source]->core;
        if (core) {
            tr_port_state_t state;
            tr_port_state(core, w->source_port, net->now_ps, &state);
            w->rate_bps = state.rate_bps;
            w->delay_ps = state.delay_ps;
        }
        /* to a host that runs after the switch: nodes run by index; absent: to
         * a node of another rank */
        w->downward = w->source < w->target && core && !w->absent &&
                      !net->nodes[w->target]->core;
        if (w->downward || !is_local(net, w->source))
            continue;
        uint64_t least_ps =
            w->delay_ps + tv_serialise_ps(TV_LEAST_BYTES, w->rate_bps);
        uint64_t *shortest = w->absent ? between_ps : &ahead_ps;
        if (least_ps < *shortest)
            *shortest = least_ps;
    }
    return ahead_ps;
}

int tv_net_at_rest(tv_net *net)
{
    /* frames are on wires, or switches have events to come */
    if (net->under_way || net->awake)
        return 0;
    for (uint32_t k = 0; k < net->n_nodes; k++) {
        /* the host that was busy at the last check is probably still busy */
        uint32_t i = (net->last_busy + k) % net->n_nodes;
        tv_node *n = net->nodes[i];
        if (!n->attached)
            continue;
        int idle = tv_host_idle(n->host);
        if (idle <= 0) {
            net->last_busy = i;
            return idle;
        }
    }
    return 1;
}

static uint64_t saturating_sum(uint64_t a, uint64_t b)
{
    return a > TC_NEVER - b ? TC_NEVER : a + b;
}

/* Runs all nodes, by index, up to the end of a window; 0, -1. */
static int run_window(tv_net *net, uint64_t end_ps)
{
    tv_schedule *s = &net->schedule;
    for (uint32_t b = 0; b < s->blocks; b++) {
        if (s->least[b] >= end_ps)
            continue;
        for (uint32_t i = b * TV_BLOCK; i < (b + 1) * TV_BLOCK; i++) {
            if (s->next[i] >= end_ps)
                continue;
            if (tv_node_run(net->nodes[i], end_ps) < 0) {
                schedule_set(s, i, tv_node_next(net->nodes[i]));
                return -1;
            }
            schedule_set(s, i, tv_node_next(net->nodes[i]));
        }
    }
    return 0;
}

/* Runs one window, which begins at first_ps and ends at end_ps at the latest.
 * 0, -1. */
static int step(tv_net *net, uint64_t first_ps, uint64_t ahead_ps,
                uint64_t end_ps)
{
    /* a tap may read any node, so all nodes must be at the same time */
    int instant = ahead_ps == 0 || net->stepwise || net->taps;
    uint64_t until_ps = saturating_sum(first_ps, instant ? 1 : ahead_ps);
    if (until_ps > end_ps)
        until_ps = end_ps;
    if (first_ps == net->now_ps && ahead_ps == 0) {
        if (++net->rounds > MOST_ROUNDS)
            return tv_net_error("frames loop without time passing");
    } else {
        net->rounds = 0;
    }
    net->now_ps = first_ps;
    /* tv_wire_send refuses frames that arrive earlier, except at hosts */
    net->least_arrival_ps = ahead_ps == 0 ? first_ps : until_ps;
    return run_window(net, until_ps);
}

/* Runs the windows of this rank in a period, in which no frame from another
 * rank can arrive. 0, -1. */
static int run_period(tv_net *net, const tv_state *all, uint64_t ahead_ps,
                      uint64_t end_ps)
{
    uint64_t until_ps =
        saturating_sum(all->first_ps, net->stepwise ? 1 : all->ahead_ps);
    uint64_t first_ps;
    if (until_ps > end_ps)
        until_ps = end_ps;
    tv_ranks_period(net->ranks, until_ps);
    while ((first_ps = schedule_first(&net->schedule)) < until_ps) {
        if (step(net, first_ps, ahead_ps, until_ps) < 0)
            return -1;
        /* a NIC has scheduled a callback, for which the run must end before
         * until_ps; it would end for this rank alone */
        if (net->limit_ps < until_ps)
            return tv_net_error("a NIC cannot schedule a callback if there "
                                "are several ranks");
    }
    return 0;
}

/* Sets *s to the state of the network: of all ranks if there are several.
 * `mark`: number of events at which the run stops. 0, -1. */
static int read_state(tv_net *net, int stop_at_rest, uint64_t mark,
                      tv_state *s)
{
    s->busy = 1;
    if (stop_at_rest) {
        int rest = tv_net_at_rest(net);
        if (rest < 0)
            return -1;
        s->busy = !rest;
    }
    s->mark = net->events >= mark;
    s->first_ps = schedule_first(&net->schedule);
    s->last_ps = net->last_ps;
    if (!net->ranks)
        return 0;
    if (tv_ranks_meet(net, s) < 0)
        return -1;
    net->last_ps = s->last_ps;
    if (s->ahead_ps == 0)
        return tv_net_error("a link between two ranks has no delay: run it "
                            "with one rank");
    return 0;
}

/* Control calls may have changed switches since the last run: lets each core
 * handle what is due (tr_run), and puts the frames that it sent on wires. */
static int settle_all(tv_net *net)
{
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        tv_node *n = net->nodes[i];
        if (!n->core)
            continue;
        tr_run(n->core, net->now_ps);
        int rc = tv_node_settle(n, net->now_ps);
        schedule_set(&net->schedule, i, tv_node_next(n));
        if (rc < 0)
            return -1;
    }
    return 0;
}

static enum tv_stop run(tv_net *net, int stop_at_rest, uint64_t mark)
{
    /* settle_all may send frames to other ranks, which arrive from now on */
    if (net->ranks)
        tv_ranks_period(net->ranks, net->now_ps);
    if (settle_all(net) < 0)
        return TV_STOP_ERROR;
    uint64_t between_ps, ahead_ps = look_ahead(net, &between_ps);
    for (uint32_t window = 1;; window++) {
        tv_state all = {.ahead_ps = between_ps};
        if (read_state(net, stop_at_rest, mark, &all) < 0)
            return TV_STOP_ERROR;
        if (!all.busy)
            return TV_STOP_REST;
        if (all.mark)
            return TV_STOP_MARK;
        uint64_t first_ps = all.first_ps;
        uint64_t sample_ps = tv_sample_next(net);
        uint64_t limit_ps = net->limit_ps;
        uint64_t end_ps = sample_ps < limit_ps ? sample_ps : limit_ps;
        if (first_ps == TC_NEVER && limit_ps == TC_NEVER)
            return TV_STOP_LIMIT;
        if (first_ps >= end_ps) {
            if (end_ps == limit_ps)
                return TV_STOP_LIMIT;
            net->now_ps = sample_ps;
            if (tv_sample_take(net) < 0)
                return TV_STOP_ERROR;
            continue;
        }
        int rc = net->ranks ? run_period(net, &all, ahead_ps, end_ps)
                            : step(net, first_ps, ahead_ps, end_ps);
        if (rc < 0)
            return TV_STOP_ERROR;
        if (net->captures && tv_capture_flush(net, 0) < 0)
            return TV_STOP_ERROR;
        if (window % SIGNAL_WINDOWS == 0 && PyErr_CheckSignals() < 0)
            return TV_STOP_ERROR;
    }
}

enum tv_stop tv_net_run(tv_net *net, uint64_t limit_ps, int stop_at_rest,
                        uint64_t mark)
{
    uint64_t began_ps = net->now_ps;
    if (net->running) {
        tv_net_error("the network is running");
        return TV_STOP_ERROR;
    }
    net->running = 1;
    net->limit_ps = limit_ps;
    enum tv_stop stop = run(net, stop_at_rest, mark);
    net->running = 0;
    if (stop != TV_STOP_ERROR) {
        /* the run ends at its last event with a frame: now_ps is a window's
         * start, and timers that send nothing do not advance the time */
        net->now_ps = net->last_ps > began_ps ? net->last_ps : began_ps;
        if (tv_capture_flush(net, 1) < 0)
            stop = TV_STOP_ERROR;
    }
    net->least_arrival_ps = net->now_ps;
    return stop;
}
