/* The inner loop of the core benchmark: a fabric of switches, no hosts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sources hand frames to switches at fixed intervals; what a switch sends goes
 * to the switch at the other end of its link, or to a host, where it is only
 * counted. Time passes in windows no longer than the delay of a link, so that
 * what is sent in one arrives in a later one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define LIKELY 128u           /* most frames are not longer */
#define LINE 64u              /* bytes of a cache line */

/* A frame on its way. */
typedef struct flight {
    struct flight *next;      /* free ones */
    uint32_t port, len, virt;
    uint8_t data[BENCH_ROOM];
} flight;

typedef struct arrival {
    uint64_t time_ps, order;
    flight *frame;
} arrival;

/* What is on its way to one switch: a binary heap. */
typedef struct node {
    tr_switch *core;
    const bench_end *ends;    /* by port */
    arrival *heap;
    uint32_t n, room;
} node;

struct bench_fabric {
    node *nodes;
    uint32_t n_nodes;
    bench_source *sources;
    uint32_t n_sources;
    const uint8_t *frames;    /* templates, BENCH_ROOM bytes apart */
    const uint32_t *lens, *virts;
    flight *free;
    uint64_t now_ps, orders, hops, delivered;
};

/* ends: TR_MAX_PORTS a switch. Everything given must outlive the fabric. */
bench_fabric *bench_fabric_new(tr_switch *const *cores, const bench_end *ends,
                               uint32_t n_nodes, bench_source *sources,
                               uint32_t n_sources, const uint8_t *frames,
                               const uint32_t *lens, const uint32_t *virts)
{
    bench_fabric *f = calloc(1, sizeof *f);
    if (!f || !(f->nodes = calloc(n_nodes, sizeof *f->nodes))) {
        free(f);
        return NULL;
    }
    for (uint32_t i = 0; i < n_nodes; i++) {
        f->nodes[i].core = cores[i];
        f->nodes[i].ends = ends + (size_t)i * TR_MAX_PORTS;
    }
    f->n_nodes = n_nodes;
    f->sources = sources;
    f->n_sources = n_sources;
    f->frames = frames;
    f->lens = lens;
    f->virts = virts;
    return f;
}

void bench_fabric_free(bench_fabric *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        for (uint32_t k = 0; k < f->nodes[i].n; k++)
            free(f->nodes[i].heap[k].frame);
        free(f->nodes[i].heap);
    }
    while (f->free) {
        flight *gone = f->free;
        f->free = gone->next;
        free(gone);
    }
    free(f->nodes);
    free(f);
}

static int before(const arrival *a, const arrival *b)
{
    return a->time_ps < b->time_ps ||
           (a->time_ps == b->time_ps && a->order < b->order);
}

/* Lets a frame arrive at a port of node n; 0 when there is no memory or the
 * frame is too long. */
static int send(bench_fabric *f, bench_end to, uint64_t time_ps,
                const uint8_t *data, uint32_t len, uint32_t virt)
{
    node *n = &f->nodes[to.node];
    if (n->n == n->room) {
        uint32_t room = n->room ? 2 * n->room : 16;
        arrival *bigger = realloc(n->heap, room * sizeof *bigger);
        if (!bigger)
            return 0;
        n->heap = bigger;
        n->room = room;
    }
    if (len > BENCH_ROOM)
        return 0;
    flight *x = f->free;
    if (x)
        f->free = x->next;
    else if (!(x = malloc(sizeof *x)))
        return 0;
    x->port = to.port;
    x->len = len;
    x->virt = virt;
    memcpy(x->data, data, len);
    arrival a = {time_ps, f->orders++, x};
    uint32_t at = n->n++;
    for (; at > 0 && before(&a, &n->heap[(at - 1) / 2]); at = (at - 1) / 2)
        n->heap[at] = n->heap[(at - 1) / 2];
    n->heap[at] = a;
    return 1;
}

static arrival take(node *n)
{
    arrival first = n->heap[0], last = n->heap[--n->n];
    uint32_t at = 0;
    for (uint32_t child = 1; child < n->n; child = 2 * at + 1) {
        if (child + 1 < n->n && before(&n->heap[child + 1], &n->heap[child]))
            child++;
        if (!before(&n->heap[child], &last))
            break;
        n->heap[at] = n->heap[child];
        at = child;
    }
    n->heap[at] = last;
    return first;
}

/* Takes out what a switch has sent. Done after every frame: so a few buffers,
 * which the caches hold, are used again and again. */
static int collect(bench_fabric *f, node *n)
{
    tr_out o;
    while (tr_pop(n->core, &o)) {
        bench_end to = n->ends[o.port];
        int ok = 1;
        if (to.node == BENCH_NO_SWITCH)
            f->delivered++;
        else
            ok = send(f, to, o.time_ps, o.data, o.len, o.virt);
        tr_release(n->core, o.slot);
        if (!ok)
            return TR_ENOMEM;
    }
    return TR_OK;
}

/* The frame of the next arrival, while the one before it is worked on. */
static void prefetch(const flight *x)
{
    for (size_t at = 0; at < offsetof(flight, data) + LIKELY; at += LINE)
        __builtin_prefetch((const char *)x + at);
}

static int run_node(bench_fabric *f, node *n, uint64_t end_ps)
{
    int rc = TR_OK;
    while (rc == TR_OK && n->n && n->heap[0].time_ps < end_ps) {
        arrival a = take(n);
        flight *x = a.frame;
        if (n->n)
            prefetch(n->heap[0].frame);
        rc = tr_rx_virtual(n->core, x->port, x->data, x->len, x->virt,
                           a.time_ps);
        x->next = f->free;
        f->free = x;
        f->hops++;
        if (rc == TR_OK)
            rc = collect(f, n);
    }
    if (rc == TR_OK && tr_next(n->core) < end_ps) {
        tr_run(n->core, end_ps - 1);
        rc = collect(f, n);
    }
    return rc;
}

static int run_sources(bench_fabric *f, uint64_t end_ps)
{
    for (uint32_t i = 0; i < f->n_sources; i++) {
        bench_source *s = &f->sources[i];
        for (; s->next_ps < end_ps; s->next_ps += s->interval_ps) {
            uint32_t which = s->first + s->at;
            if (!send(f, (bench_end){s->node, s->port}, s->next_ps,
                      f->frames + (size_t)which * BENCH_ROOM, f->lens[which],
                      f->virts[which]))
                return TR_ENOMEM;
            s->at = s->at + 1 < s->count ? s->at + 1 : 0;
        }
    }
    return TR_OK;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs up to a time; the processor time it took in ns, or the negative error
 * of a switch. */
int64_t bench_fabric_run(bench_fabric *f, uint64_t until_ps,
                         uint64_t window_ps)
{
    uint64_t begin_ns = cpu_ns();
    while (f->now_ps < until_ps) {
        uint64_t end_ps = f->now_ps + window_ps;
        int rc = run_sources(f, end_ps);
        for (uint32_t i = 0; rc == TR_OK && i < f->n_nodes; i++)
            rc = run_node(f, &f->nodes[i], end_ps);
        if (rc != TR_OK)
            return rc;
        f->now_ps = end_ps;
    }
    return (int64_t)(cpu_ns() - begin_ns);
}

/* Frames that switches have taken in, and frames that have reached a host. */
void bench_fabric_read(const bench_fabric *f, uint64_t *hops,
                       uint64_t *delivered)
{
    *hops = f->hops;
    *delivered = f->delivered;
}
