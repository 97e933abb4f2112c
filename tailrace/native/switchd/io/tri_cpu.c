/* Frames for the control plane: a bounded ring and an eventfd.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tri_internal.h"

void tri_cpu_init(tri_cpu *c)
{
    pthread_mutex_init(&c->lock, NULL);
}

void tri_cpu_free(tri_cpu *c)
{
    for (; c->count > 0; c->count--) {
        free(c->ring[c->head].data);
        c->head = (c->head + 1) % TRI_CPU_FRAMES;
    }
    pthread_mutex_destroy(&c->lock);
}

void tri_signal(tri_loop *l)
{
    uint64_t one = 1;
    ssize_t n;

    /* Fails only when the count is at its limit: readable all the same. */
    n = write(l->events_fd, &one, sizeof one);
    (void)n;
}

void tri_cpu_put(tri_loop *l, const uint8_t *data, uint32_t len)
{
    tri_cpu *c = &l->cpu;
    uint8_t *copy = malloc(len ? len : 1);
    bool kept;

    if (copy)
        memcpy(copy, data, len);
    pthread_mutex_lock(&c->lock);
    kept = copy && c->count < TRI_CPU_FRAMES;
    if (kept) {
        tri_cpu_frame *f = &c->ring[(c->head + c->count) % TRI_CPU_FRAMES];

        f->data = copy;
        f->len = len;
        c->count++;
    }
    pthread_mutex_unlock(&c->lock);
    if (!kept) {
        free(copy);
        tri_add(&c->drops, 1);
    }
}

int64_t tri_packet_in(tri_loop *l, uint8_t *buf, uint32_t cap)
{
    tri_cpu *c = &l->cpu;
    tri_cpu_frame f = { 0 };

    pthread_mutex_lock(&c->lock);
    if (c->count > 0) {
        f = c->ring[c->head];
        c->head = (c->head + 1) % TRI_CPU_FRAMES;
        c->count--;
    }
    pthread_mutex_unlock(&c->lock);
    if (!f.data)
        return -1;
    memcpy(buf, f.data, f.len < cap ? f.len : cap);
    free(f.data);
    return f.len;
}

uint64_t tri_packet_in_drops(tri_loop *l)
{
    return tri_get(&l->cpu.drops);
}

int tri_events_fd(const tri_loop *l)
{
    return l->events_fd;
}

void tri_events_clear(tri_loop *l)
{
    uint64_t count;
    ssize_t n;

    /* EAGAIN: it was not readable, which is what is wanted. */
    n = read(l->events_fd, &count, sizeof count);
    (void)n;
}
