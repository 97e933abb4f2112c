/* Nodes: runs a switch or a host through a window (tv.h). A switch consists of
 * the switch core, whose functions are tr_* (tr_switch.h), and its wires.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_host.h"
#include "tv_net.h"

#include <stdlib.h>

/* tr_run returns early if packets recirculate without time passing; it is then
 * called again. This is the limit of such calls. */
#define IDLE_ROUNDS 64

tv_node *tv_node_new(tv_net *net, const char *name)
{
    tv_node *n = calloc(1, sizeof *n);
    if (n)
        n->name = strdup(name);
    if (!n || !n->name) {
        free(n);
        PyErr_NoMemory();
        return NULL;
    }
    n->net = net;
    n->rank = tv_ranks_own(net->ranks);
    n->core_next_ps = TC_NEVER;
    n->cpu_port = UINT32_MAX;
    return n;
}

void tv_node_free(tv_node *n)
{
    if (!n)
        return;
    if (n->host)
        tv_host_free(n->host);
    while (n->cpu_first) {
        tv_cpu_frame *gone = n->cpu_first;
        n->cpu_first = gone->next;
        free(gone);
    }
    while (n->blackholes) {
        tv_blackhole *gone = n->blackholes;
        n->blackholes = gone->next;
        tv_blackhole_free(gone);
    }
    free(n->in_next);
    free(n->in);
    free(n->heads);
    free(n->out);
    free(n->name);
    free(n);
}

int tv_node_add_in(tv_node *n, tv_wire *w)
{
    uint32_t count = n->n_in + 1;
    if (tv_resize(&n->in_next, count * sizeof *n->in_next) < 0 ||
        tv_resize(&n->in, count * sizeof *n->in) < 0 ||
        tv_resize(&n->heads, count * sizeof *n->heads) < 0)
        return -1;
    n->in[n->n_in] = w;
    n->in_next[n->n_in] = TC_NEVER;
    n->n_in = count;
    for (uint32_t i = 0; i < count; i++)
        n->in[i]->next_ps = &n->in_next[i];
    return 0;
}

uint64_t tv_node_next(const tv_node *n)
{
    if (n->host)
        return tv_host_next(n->host);
    uint64_t next = n->core_next_ps;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in_next[i] < next)
            next = n->in_next[i];
    return next;
}

/* Records what a switch did with a frame. */
static void record(tv_node *n, enum tv_recorded what, uint64_t now_ps,
                   const tr_lost *frame)
{
    tc_frame f = {now_ps, frame->len, frame->virt, frame->data};
    tv_record_add(n->net, what, n->index, &f);
}

void tv_node_recirculated(void *node, uint64_t now_ps, const tr_lost *frame)
{
    record(node, TV_RECIRCULATED, now_ps, frame);
}

void tv_node_lost(void *node, uint64_t now_ps, const tr_lost *frame)
{
    tv_node *n = node;
    if (n->net->recorder)
        record(n, TV_DROPPED, now_ps, frame);
    if (frame->copy) /* a clone or multicast copy is no data frame */
        return;
    if (frame->cut)  /* truncated by the P4 program */
        n->dropped.trimmed++;
    else
        tv_kinds_add(&n->dropped, &n->net->formats, frame->data, frame->len,
                     frame->virt);
}

/* ---- sending ---- */

static int cpu_enqueue(tv_node *n, const uint8_t *data, uint32_t len)
{
    tv_cpu_frame *f = malloc(sizeof *f + len);
    if (!f) {
        PyErr_NoMemory();
        return -1;
    }
    f->next = NULL;
    f->len = len;
    memcpy(f->data, data, len);
    if (n->cpu_waiting == TV_CPU_WAITING) {
        tv_cpu_frame *oldest = n->cpu_first;
        n->cpu_first = oldest->next;
        free(oldest);
        n->cpu_waiting--;
    }
    if (n->cpu_first)
        n->cpu_last->next = f;
    else
        n->cpu_first = f;
    n->cpu_last = f;
    n->cpu_waiting++;
    return 0;
}

static int transmit(tv_node *n, const tr_out *out, uint64_t now_ps)
{
    tv_wire *w = out->port < TR_MAX_PORTS ? n->out[out->port] : NULL;
    if (w)
        return tv_wire_send(w, now_ps, out->time_ps, out->data,
                            out->len, NULL, 0, out->virt);
    tv_count *c = out->port == n->cpu_port ? &n->to_cpu : &n->unwired;
    c->frames++;
    c->virt += out->virt;
    if (c == &n->unwired)
        tv_kinds_add(&n->dropped, &n->net->formats, out->data, out->len,
                     out->virt);
    return c == &n->to_cpu ? cpu_enqueue(n, out->data, out->len) : 0;
}

int tv_node_settle(tv_node *n, uint64_t now_ps)
{
    tv_net *net = n->net;
    tr_out out;
    uint64_t next = tr_next(n->core);
    for (int i = 0; next <= now_ps && i < IDLE_ROUNDS; i++)
        next = tr_run(n->core, now_ps);
    /* awake: number of switches that have a next event */
    net->awake += (next != TC_NEVER) - (n->core_next_ps != TC_NEVER);
    n->core_next_ps = next;
    if (net->last_ps < now_ps)
        net->last_ps = now_ps;
    while (tr_pop(n->core, &out)) {
        int rc = transmit(n, &out, now_ps);
        tr_release(n->core, out.slot);
        if (rc < 0)
            return -1;
    }
    if (next <= now_ps)
        return tv_net_error("%s: packets recirculate in the switch without "
                            "time passing", n->name);
    return 0;
}

/* ---- receiving ---- */

/* Makes `moved` the first element of the heap of n arrivals, which are ordered
 * by time, then wire, and restores the order. */
static void sift_down(tv_head *heads, uint32_t n, tv_head moved)
{
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n)
            break;
        const tv_head *a = &heads[child], *b = a + 1;
        if (child + 1 < n && (b->time_ps < a->time_ps ||
                              (b->time_ps == a->time_ps && b->in < a->in)))
            child++;
        if (moved.time_ps < heads[child].time_ps ||
            (moved.time_ps == heads[child].time_ps &&
             moved.in < heads[child].in))
            break;
        heads[i] = heads[child];
        i = child;
    }
    heads[i] = moved;
}

/* Makes a heap of the in-wires on which a frame arrives before end_ps. */
static uint32_t heads_gather(const tv_node *n, uint64_t end_ps)
{
    uint32_t count = 0;
    tv_head *heads = n->heads;
    for (uint32_t k = 0; k < n->n_in; k++) {
        uint64_t time_ps = n->in_next[k];
        if (time_ps >= end_ps)
            continue;
        uint32_t i = count++;
        /* wires are added by index, so at equal times the parent stays */
        while (i && time_ps < heads[(i - 1) / 2].time_ps) {
            heads[i] = heads[(i - 1) / 2];
            i = (i - 1) / 2;
        }
        heads[i] = (tv_head){time_ps, k};
        __builtin_prefetch(n->in[k]);
        __builtin_prefetch((const uint8_t *)n->in[k] + TV_CACHE_LINE);
    }
    /* by now the wires are in the cache: prefetch their frames */
    for (uint32_t i = 0; i < count; i++)
        tv_wire_prefetch(n->in[heads[i].in]);
    return count;
}

static int frame_refused(const tv_node *n, uint32_t port, uint32_t len)
{
    return tv_net_error("%s: port %u does not accept a frame of %u bytes",
                        n->name, port, len);
}

static int receive(tv_node *n, tv_wire *w)
{
    tv_net *net = n->net;
    tc_frame f;
    net->events++;
    int delivered = tv_wire_take(w, &f);
    if (delivered <= 0) {
        if (net->last_ps < f.time_ps)
            net->last_ps = f.time_ps;
        return delivered;
    }
    if (__builtin_expect(n->blackholes != NULL, 0) &&
        tv_blackhole_takes(n, &f)) {
        n->swallowed.frames++;
        if (net->recorder)
            tv_record_add(net, TV_DROPPED, n->index, &f);
        n->swallowed.virt += f.virt;
        tv_kinds_add(&n->swallowed_data, &net->formats, f.data, f.len, f.virt);
        return 0;
    }
    if (__builtin_expect(net->watches != NULL, 0) &&
        tv_watch_arrival(n, w, &f) < 0)
        return -1;
    n->entered.frames++;
    n->entered.virt += f.virt;
    if (tr_rx_virtual(n->core, w->target_port, f.data, f.len, f.virt,
                      f.time_ps) != TR_OK)
        return frame_refused(n, w->target_port, f.len);
    return tv_node_settle(n, f.time_ps);
}

static int switch_run(tv_node *n, uint64_t end_ps)
{
    uint32_t count = heads_gather(n, end_ps);
    tv_head *heads = n->heads;
    /* before an arrival the core handles its due events (tr_rx_virtual) */
    while (count) {
        tv_head first = heads[0];
        if (receive(n, n->in[first.in]) < 0)
            return -1;
        first.time_ps = n->in_next[first.in];
        if (first.time_ps >= end_ps)
            first = heads[--count];
        if (count)
            sift_down(heads, count, first);
    }
    while (n->core_next_ps < end_ps) {
        uint64_t now_ps = n->core_next_ps;
        tr_run(n->core, now_ps);
        if (tv_node_settle(n, now_ps) < 0)
            return -1;
    }
    return 0;
}

int tv_node_run(tv_node *n, uint64_t end_ps)
{
    if (n->core)
        return switch_run(n, end_ps);
    int events = tv_host_run(n->host, end_ps);
    if (events < 0)
        return -1;
    n->net->events += (uint64_t)events;
    uint64_t last_ps = tv_host_last_ps(n->host);
    if (n->net->last_ps < last_ps)
        n->net->last_ps = last_ps;
    return 0;
}

int tv_node_inject(tv_node *n, uint32_t port, const uint8_t *data,
                   uint32_t len, uint64_t now_ps)
{
    n->entered.frames++;
    n->packet_outs.frames++;
    if (tr_rx_virtual(n->core, port, data, len, 0, now_ps) != TR_OK)
        return frame_refused(n, port, len);
    return tv_node_settle(n, now_ps);
}
