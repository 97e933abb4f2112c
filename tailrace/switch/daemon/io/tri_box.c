/* Frames for Python: a bounded ring buffer ("box") and an eventfd.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tri_internal.h"

int tri_box_init(tri_box *b)
{
    pthread_mutex_init(&b->lock, NULL);
    b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return b->fd < 0 ? -1 : 0;
}

/* Removes and returns the oldest frame; its data is NULL if there is none. The
 * caller has the lock. */
static tri_box_frame take_oldest(tri_box *b)
{
    tri_box_frame f = { 0 };

    if (b->count > 0) {
        f = b->ring[b->head];
        b->head = (b->head + 1) % TRI_BOX_FRAMES;
        b->count--;
        b->bytes -= f.len;
    }
    return f;
}

void tri_box_drop_all(tri_box *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->count > 0)
        free(take_oldest(b).data);
    pthread_mutex_unlock(&b->lock);
}

void tri_box_free(tri_box *b)
{
    tri_box_drop_all(b);
    pthread_mutex_destroy(&b->lock);
    if (b->fd >= 0)
        close(b->fd);
}

void tri_signal(int fd)
{
    uint64_t increment = 1;
    ssize_t n;

    /* Fails only if the count is at its maximum: then fd is readable. */
    n = write(fd, &increment, sizeof increment);
    (void)n;
}

void tri_unsignal(int fd)
{
    uint64_t count;
    ssize_t n;

    /* Fails only if the count is 0: then fd is not readable. */
    n = read(fd, &count, sizeof count);
    (void)n;
}

bool tri_box_put(tri_box *b, const tr_out *o)
{
    uint8_t *copy = malloc(o->len ? o->len : 1);
    bool added;

    if (copy)
        memcpy(copy, o->data, o->len);
    pthread_mutex_lock(&b->lock);
    added = copy && b->count < TRI_BOX_FRAMES
            && b->bytes + o->len <= TRI_BOX_BYTES;
    if (added) {
        b->ring[(b->head + b->count) % TRI_BOX_FRAMES] = (tri_box_frame){
            .data = copy,
            .len = o->len,
            .port = o->port,
            .origin = o->origin,
        };
        b->count++;
        b->bytes += o->len;
    }
    pthread_mutex_unlock(&b->lock);
    if (!added)
        free(copy);
    return added;
}

int tri_frames_fd(const tri_loop *l, unsigned box)
{
    return l->boxes[box].fd;
}

void tri_frames_clear(tri_loop *l, unsigned box)
{
    tri_unsignal(l->boxes[box].fd);
}

uint32_t tri_frames_waiting(tri_loop *l, unsigned box)
{
    tri_box *b = &l->boxes[box];
    uint32_t count;

    pthread_mutex_lock(&b->lock);
    count = b->count;
    pthread_mutex_unlock(&b->lock);
    return count;
}

int64_t tri_frames_take(tri_loop *l, unsigned box, uint8_t *buf, uint32_t cap,
                        uint32_t *port, uint32_t *origin)
{
    tri_box *b = &l->boxes[box];
    tri_box_frame f;

    pthread_mutex_lock(&b->lock);
    f = take_oldest(b);
    pthread_mutex_unlock(&b->lock);
    if (!f.data)
        return -1;
    memcpy(buf, f.data, f.len < cap ? f.len : cap);
    free(f.data);
    *port = f.port;
    *origin = f.origin;
    return f.len;
}
