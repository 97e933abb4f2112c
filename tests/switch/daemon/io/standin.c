/* A stand-in for the switch core, for tests of the front end alone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sends what comes in on port p out on port p ^ 1; frames injected on the CPU
 * port 300 leave on port 0, and a frame that contains "to-cpu" goes to the
 * CPU port. Records what it is told, for the test to read. Its symbols are
 * hidden, so that it lives beside the real core in one process.
 */
#define _GNU_SOURCE 1
#pragma GCC visibility push(hidden)
#include "tr_switch.h"
#pragma GCC visibility pop
#include "standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CPU_PORT = 300, QUEUE = 64, MARK_BYTES = 6 };

typedef struct frame {
    struct frame *next;
    uint32_t port, len, origin;
    uint64_t time_ps;
    uint8_t data[];
} frame;

struct tr_switch {
    pthread_mutex_t lock;
    atomic_int waiting;
    uint64_t delay_ns;        /* from arrival to departure */
    frame *head, **tail;      /* frames ready to be popped */
    frame *held[TR_MAX_PORTS], **held_tail[TR_MAX_PORTS];
    uint32_t depth[TR_MAX_PORTS];
    int blocked[TR_MAX_PORTS], up[TR_MAX_PORTS];
    uint64_t dropped, slots, digests, blocks, late;
    uint64_t last_ps;
    uint32_t origin;
};

tr_switch *standin_new(uint64_t delay_ns)
{
    tr_switch *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->delay_ns = delay_ns;
    s->tail = &s->head;
    for (uint32_t p = 0; p < TR_MAX_PORTS; p++) {
        s->held_tail[p] = &s->held[p];
        s->up[p] = 1;
    }
    return s;
}

void tr_switch_lock(tr_switch *s)
{
    atomic_fetch_add(&s->waiting, 1);
    pthread_mutex_lock(&s->lock);
    atomic_fetch_sub(&s->waiting, 1);
}

void tr_switch_unlock(tr_switch *s)
{
    pthread_mutex_unlock(&s->lock);
}

int tr_switch_contended(const tr_switch *s)
{
    return atomic_load(&s->waiting) > 0;
}

static void ready(tr_switch *s, frame *f)
{
    f->next = NULL;
    *s->tail = f;
    s->tail = &f->next;
}

int tr_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
          uint64_t now_ps)
{
    frame *f;

    if (port >= TR_MAX_PORTS)
        return TR_ERANGE;
    if (now_ps < s->last_ps)
        s->late++;            /* the clock ran backwards */
    s->last_ps = now_ps;
    f = malloc(sizeof *f + len);
    if (!f)
        return TR_ENOMEM;
    memcpy(f->data, data, len);
    f->len = len;
    f->origin = s->origin;
    f->time_ps = now_ps + s->delay_ns * TR_PS_PER_NS;
    f->port = port == CPU_PORT ? 0 : port ^ 1;
    if (memmem(data, len, "to-cpu", MARK_BYTES))
        f->port = CPU_PORT;
    if (memmem(data, len, "digest", MARK_BYTES))
        s->digests++;
    if (s->blocked[f->port] && s->depth[f->port] >= QUEUE) {
        s->dropped++;
        free(f);
    } else if (s->blocked[f->port]) {
        f->next = NULL;
        *s->held_tail[f->port] = f;
        s->held_tail[f->port] = &f->next;
        s->depth[f->port]++;
    } else {
        ready(s, f);
    }
    return TR_OK;
}

void tr_origin(tr_switch *s, uint32_t origin)
{
    s->origin = origin;
}

void tr_account_read(tr_switch *s, tr_account *out)
{
    *out = (tr_account){ .held_frames = 0 };
    tr_switch_lock(s);
    for (uint32_t p = 0; p < TR_MAX_PORTS; p++)
        out->held_frames += s->depth[p];
    for (const frame *f = s->head; f; f = f->next)
        out->held_frames++;
    tr_switch_unlock(s);
}

uint64_t tr_run(tr_switch *s, uint64_t now_ps)
{
    if (now_ps < s->last_ps)
        s->late++;
    s->last_ps = now_ps;
    return TR_NEVER;
}

int tr_pop(tr_switch *s, tr_out *out)
{
    frame *f = s->head;

    if (!f)
        return 0;
    s->head = f->next;
    if (!s->head)
        s->tail = &s->head;
    s->slots++;
    *out = (tr_out){ .port = f->port, .len = f->len, .time_ps = f->time_ps,
                     .origin = f->origin, .data = f->data, .slot = f };
    return 1;
}

void tr_release(tr_switch *s, void *slot)
{
    free(slot);
    s->slots--;
}

void tr_port_block(tr_switch *s, uint32_t port, int blocked)
{
    s->blocked[port] = blocked;
    s->blocks += blocked != 0;
    while (!blocked && s->held[port]) {
        frame *f = s->held[port];

        s->held[port] = f->next;
        ready(s, f);
    }
    if (!blocked) {
        s->held_tail[port] = &s->held[port];
        s->depth[port] = 0;
    }
}

void tr_port_up(tr_switch *s, uint32_t port, int up)
{
    s->up[port] = up;
}

void tr_set_clock(tr_switch *s, tr_clock_fn fn, void *arg)
{
    (void)s;
    (void)fn;
    (void)arg;
}

int tr_digest_pending(const tr_switch *s)
{
    return (int)s->digests;
}

uint64_t standin_read(tr_switch *s, uint32_t what)
{
    const uint64_t *const values[] = {
        &s->dropped, &s->slots, &s->blocks, &s->late
    };
    uint64_t v;

    tr_switch_lock(s);
    v = *values[what];
    tr_switch_unlock(s);
    return v;
}

int standin_up(tr_switch *s, uint32_t port)
{
    int up;

    tr_switch_lock(s);
    up = s->up[port];
    tr_switch_unlock(s);
    return up;
}

void standin_take_digests(tr_switch *s)
{
    tr_switch_lock(s);
    s->digests = 0;
    tr_switch_unlock(s);
}

void standin_control_call(tr_switch *s)
{
    tr_switch_lock(s);
    tr_switch_unlock(s);
}

void standin_free(tr_switch *s)
{
    tr_out o;

    for (uint32_t p = 0; p < TR_MAX_PORTS; p++)
        tr_port_block(s, p, 0);
    while (tr_pop(s, &o))
        tr_release(s, o.slot);
    free(s);
}
