/* Sending: frames wait for their time and for space in the socket's buffer.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Errors of sending, and how they are handled:
 *   EAGAIN    the send buffer is full, for example because a queueing
 *             discipline delays our frames: wait for EPOLLOUT.
 *   ENOBUFS   the queueing discipline, the driver or the peer's backlog is
 *             full. While the kernel still has frames of this socket (SIOCOUTQ)
 *             they will leave: try again later, without limit. If the kernel
 *             has none, the frame itself may be the reason (a veth peer with a
 *             smaller MTU reports this error): after a few tries the frame is
 *             dropped, and for a while frames of at least its length are tried
 *             only once.
 *   others    the frame cannot be sent: it is dropped and counted by reason.
 * While a port waits, the core sends no more frames from it, so that the core's
 * queues build up.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "tri_internal.h"

enum {
    FIFO_START = 128,         /* initial frames in a port's send ring */
    RETRY_NS = 100 * 1000,    /* first wait after ENOBUFS */
    RETRIES = 6,              /* number of waits, each twice as long as the one
                               * before: 6.3 ms in total */
    RETRY_MAX_SHIFT = 3       /* while the kernel has frames, a wait is at most
                               * RETRY_NS << 3 */
};
/* Time for which a refused length is remembered. */
#define REFUSED_MEMORY_NS UINT64_C(1000000000)

static tr_out *head_of(tri_port *p)
{
    return &p->fifo[p->fifo_head];
}

static tr_out *nth_of(tri_port *p, uint32_t i)
{
    return &p->fifo[(p->fifo_head + i) & (p->fifo_size - 1)];
}

/* Doubles the send ring of p; false if there is no memory. */
static bool grow(tri_port *p)
{
    uint32_t size = p->fifo_size ? p->fifo_size * 2 : FIFO_START;
    tr_out *fifo = malloc(size * sizeof *fifo);

    if (!fifo)
        return false;
    for (uint32_t i = 0; i < p->fifo_count; i++)
        fifo[i] = *nth_of(p, i);
    free(p->fifo);
    p->fifo = fifo;
    p->fifo_size = size;
    p->fifo_head = 0;
    return true;
}

void tri_tx_put(tri_loop *l, const tr_out *o)
{
    tri_port *p = o->port < TR_MAX_PORTS ? l->ports[o->port] : NULL;

    if (!p || (p->fifo_count == p->fifo_size && !grow(p))) {
        if (p)
            TRI_COUNT(p, tx_errors, 1);
        tr_release(l->core, o->slot);
        return;
    }
    *nth_of(p, p->fifo_count) = *o;
    p->fifo_count++;
    if (p->for_client)
        atomic_fetch_add(&l->client_frames, 1);
    if (!p->active) {
        p->active = true;
        l->active[l->n_active++] = p;
    }
}

/* Lists a frame's slot; release() returns all listed slots to the core with one
 * lock. */
static void release_later(tri_loop *l, void *slot)
{
    if (l->n_done == l->done_size) {
        uint32_t size = l->done_size ? l->done_size * 2 : 4 * TRI_BATCH;
        void **more = realloc(l->done, size * sizeof *more);

        if (!more) {
            tri_lock(l);
            tr_release(l->core, slot);
            tr_switch_unlock(l->core);
            return;
        }
        l->done = more;
        l->done_size = size;
    }
    l->done[l->n_done++] = slot;
}

/* Removes the first n frames of p. */
static void pop(tri_loop *l, tri_port *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        release_later(l, nth_of(p, i)->slot);
    p->fifo_head = (p->fifo_head + n) & (p->fifo_size - 1);
    p->fifo_count -= n;
    if (p->for_client)
        atomic_fetch_sub(&l->client_frames, n);
    p->retries = 0;
}

/* Counts the first n frames of p as sent and removes them. */
static void count_sent(tri_loop *l, tri_port *p, uint32_t n)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        const tr_out *o = nth_of(p, i);

        bytes += o->len;
        if (o->len >= p->refused_bytes)
            p->refused_bytes = 0;
        tri_capture(p, &p->tx_pcap, o->data, o->len);
    }
    TRI_COUNT(p, tx_packets, n);
    TRI_COUNT(p, tx_bytes, bytes);
    pop(l, p, n);
}

/* Starts or stops waiting for EPOLLOUT of the send socket. */
static void watch(tri_loop *l, tri_port *p, bool on)
{
    struct epoll_event e = {
        .events = EPOLLOUT,
        .data.u64 = TRI_EV(TRI_EV_TX, p->number),
    };

    epoll_ctl(l->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, p->tx_fd, &e);
}

/* Blocks port p in the core, so that the core sends no more frames from it, or
 * unblocks it. */
static void block(tri_loop *l, tri_port *p, bool on)
{
    if ((TRI_READ(p, blocked) != 0) == on)
        return;
    TRI_PUT(p, blocked, on);
    if (on)
        TRI_COUNT(p, tx_waits, 1);
    else
        l->again = true;
    tri_lock(l);
    tr_port_block(l->core, p->number, on);
    tr_switch_unlock(l->core);
}

/* Changes the reason why p waits. The port stays blocked in the core from the
 * first wait until all due frames are sent: otherwise each wait would move
 * more frames from the core's limited queues into this unlimited ring. */
static void set_wait(tri_loop *l, tri_port *p, tri_wait wait)
{
    if (p->wait == wait)
        return;
    if (p->wait == TRI_WAIT_SOCKET)
        watch(l, p, false);
    if (wait == TRI_WAIT_SOCKET)
        watch(l, p, true);
    p->wait = wait;
    if (wait != TRI_WAIT_NOT)
        block(l, p, true);
}

/* Handles ENOBUFS for the frame at the head: waits, or drops the frame if
 * waiting cannot help. */
static void handle_enobufs(tri_loop *l, tri_port *p)
{
    uint64_t now = tri_now(l);
    uint32_t shift = p->retries;
    int unsent = 0;

    /* a port without an interface always waits until the client takes frames */
    if (!p->for_client
        && (ioctl(p->tx_fd, SIOCOUTQ, &unsent) != 0 || unsent <= 0)) {
        uint32_t len = head_of(p)->len;
        /* whether a frame of at most this length was refused recently */
        bool known = p->refused_bytes != 0 && len >= p->refused_bytes
                     && now - p->refused_ns < REFUSED_MEMORY_NS;

        if (known || p->retries >= RETRIES) {
            if (!known) {
                p->refused_bytes = len;
                p->refused_ns = now;
            }
            TRI_COUNT(p, tx_refused, 1);
            pop(l, p, 1);
            return;
        }
        p->retries++;
    } else if (shift > RETRY_MAX_SHIFT) {
        shift = RETRY_MAX_SHIFT;
    }
    p->retry_ns = now + ((uint64_t)RETRY_NS << shift);
    set_wait(l, p, TRI_WAIT_RETRY);
}

/* Handles an error of sending the frame at the head. */
static void handle_error(tri_loop *l, tri_port *p, int error)
{
    switch (error) {
    case EINTR:
        return;
    case EAGAIN:
        set_wait(l, p, TRI_WAIT_SOCKET);
        return;
    case ENOBUFS:
    case ENOMEM:
        handle_enobufs(l, p);
        return;
    case ENETDOWN:
    case ENXIO:
    case ENODEV:
        TRI_COUNT(p, tx_down, 1);
        break;
    case EMSGSIZE:
        TRI_COUNT(p, tx_too_long, 1);
        break;
    case EINVAL:
        TRI_COUNT(p, tx_invalid, 1);
        break;
    default:
        TRI_COUNT(p, tx_errors, 1);
    }
    pop(l, p, 1);
}

/* Sends n frames of a port without an interface to the client, which receives
 * the frames of such ports by gRPC. Returns the number of sent frames, or -1
 * with errno set, like sendmmsg. */
static int send_to_client(tri_loop *l, tri_port *p, uint32_t n)
{
    tri_box *box = &l->boxes[TRI_CLIENT_FRAMES];
    uint32_t sent = 0;

    if (!atomic_load(&l->client_listens)) {
        errno = ENETDOWN;
        return -1;
    }
    while (sent < n && tri_box_put(box, nth_of(p, sent)))
        sent++;
    if (sent > 0)
        tri_signal(box->fd);
    errno = ENOBUFS;
    return sent > 0 ? (int)sent : -1;
}

/* Sends the due frames of p until p must wait. Returns the time of the next
 * attempt in ns; TR_NEVER if no frame is left or p waits for the socket. */
static uint64_t flush_port(tri_loop *l, tri_port *p, uint64_t now)
{
    while (p->fifo_count > 0) {
        uint32_t n = 0;
        int r;

        if (p->wait == TRI_WAIT_SOCKET)
            return TR_NEVER;
        if (p->wait == TRI_WAIT_RETRY) {
            if (p->retry_ns > now)
                return p->retry_ns;
            set_wait(l, p, TRI_WAIT_NOT);
        }
        if (tr_ns_floor(head_of(p)->time_ps) > now) {
            block(l, p, false);
            return tr_ns_floor(head_of(p)->time_ps);
        }
        if (!TRI_READ(p, up)) {
            TRI_COUNT(p, tx_down, 1);
            pop(l, p, 1);
            continue;
        }
        while (n < TRI_BATCH && n < p->fifo_count
               && tr_ns_floor(nth_of(p, n)->time_ps) <= now) {
            const tr_out *o = nth_of(p, n);

            l->tx_iov[n].iov_base = (void *)(uintptr_t)o->data;
            l->tx_iov[n].iov_len = o->len;
            n++;
        }
        r = p->for_client ? send_to_client(l, p, n)
                       : sendmmsg(p->tx_fd, l->tx_msgs, n, MSG_DONTWAIT);
        if (r > 0)
            count_sent(l, p, (uint32_t)r);
        else
            handle_error(l, p, errno);
    }
    set_wait(l, p, TRI_WAIT_NOT);
    block(l, p, false);
    return TR_NEVER;
}

/* Releases the buffers of sent and dropped frames to the core. */
static void release(tri_loop *l)
{
    if (l->n_done == 0)
        return;
    tri_lock(l);
    for (uint32_t i = 0; i < l->n_done; i++)
        tr_release(l->core, l->done[i]);
    tr_switch_unlock(l->core);
    l->n_done = 0;
}

uint64_t tri_tx_flush(tri_loop *l)
{
    uint64_t now = tri_now(l), next = TR_NEVER;
    uint32_t still_active = 0;

    for (uint32_t i = 0; i < l->n_active; i++) {
        tri_port *p = l->active[i];
        uint64_t due = flush_port(l, p, now);

        if (due < next)
            next = due;
        if (p->tx_pcap && tri_pcap_flush(p->tx_pcap) != 0)
            TRI_COUNT(p, pcap_errors, 1);
        p->active = p->fifo_count > 0;
        if (p->active)
            l->active[still_active++] = p;
    }
    l->n_active = still_active;
    release(l);
    return next;
}

void tri_tx_ready(tri_loop *l, tri_port *p)
{
    if (p->wait == TRI_WAIT_SOCKET)
        set_wait(l, p, TRI_WAIT_NOT);
}

void tri_tx_abandon(tri_loop *l)
{
    for (uint32_t i = 0; i < l->n_ports; i++) {
        tri_port *p = l->list[i];

        while (p->fifo_count > 0) {
            tr_release(l->core, head_of(p)->slot);
            if (p->for_client)
                atomic_fetch_sub(&l->client_frames, 1);
            p->fifo_head = (p->fifo_head + 1) & (p->fifo_size - 1);
            p->fifo_count--;
        }
        if (TRI_READ(p, blocked))
            tr_port_block(l->core, p->number, 0);
        TRI_PUT(p, blocked, 0);
        p->wait = TRI_WAIT_NOT;
        p->active = false;
    }
    l->n_active = 0;
}
