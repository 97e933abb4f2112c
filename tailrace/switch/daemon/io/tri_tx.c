/* Sending: frames wait for their time and for room in the socket.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What can go wrong in sending, and what is done about it:
 *   EAGAIN    the send buffer is full, as it is when a queueing discipline
 *             holds our frames back: wait for EPOLLOUT.
 *   ENOBUFS   the queueing discipline, the driver or the peer's backlog took
 *             no more. While the kernel still holds frames of ours (SIOCOUTQ)
 *             room will come: try again later, for ever. If it holds none,
 *             the frame itself may be the reason (a veth peer with a smaller
 *             MTU answers so): a few tries, then it is dropped, and for a
 *             while frames of that length get one try only.
 *   others    the frame cannot be sent: dropped, counted by reason.
 * While a port waits it is blocked in the core, whose queues then build.
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
    FIFO_START = 128,         /* frames a port's ring holds at first */
    RETRY_NS = 100 * 1000,    /* first pause after ENOBUFS */
    RETRIES = 6,              /* pauses, each twice as long: 6.3 ms */
    RETRY_MAX_SHIFT = 3       /* longest pause while the kernel drains */
};
#define REFUSED_MEMORY_NS UINT64_C(1000000000)

static tr_out *head_of(tri_port *p)
{
    return &p->fifo[p->fifo_head];
}

static tr_out *nth_of(tri_port *p, uint32_t i)
{
    return &p->fifo[(p->fifo_head + i) & (p->fifo_size - 1)];
}

/* Doubles the ring of p; false when out of memory. */
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
    if (p->by_hand)
        atomic_fetch_add(&l->in_hand, 1);
    if (!p->active) {
        p->active = true;
        l->active[l->n_active++] = p;
    }
}

/* Remembers that a slot goes back to the core at the next lock. */
static void done(tri_loop *l, void *slot)
{
    if (l->n_done == l->done_size) {
        uint32_t size = l->done_size ? l->done_size * 2 : 4 * TRI_BATCH;
        void **more = realloc(l->done, size * sizeof *more);

        if (!more) {
            tri_enter(l);
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
        done(l, nth_of(p, i)->slot);
    p->fifo_head = (p->fifo_head + n) & (p->fifo_size - 1);
    p->fifo_count -= n;
    if (p->by_hand)
        atomic_fetch_sub(&l->in_hand, n);
    p->retries = 0;
}

static void capture(tri_port *p, const tr_out *o)
{
    if (!p->tx_pcap || tri_pcap_write(p->tx_pcap, o->data, o->len) == 0)
        return;
    tri_pcap_close(p->tx_pcap);
    p->tx_pcap = NULL;
    TRI_COUNT(p, pcap_errors, 1);
}

/* Books the first n frames of p as sent. */
static void sent(tri_loop *l, tri_port *p, uint32_t n)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        const tr_out *o = nth_of(p, i);

        bytes += o->len;
        if (o->len >= p->refused_bytes)
            p->refused_bytes = 0;
        capture(p, o);
    }
    TRI_COUNT(p, tx_packets, n);
    TRI_COUNT(p, tx_bytes, bytes);
    pop(l, p, n);
}

/* Watches the send socket for room, or stops watching. */
static void watch(tri_loop *l, tri_port *p, bool on)
{
    struct epoll_event e = {
        .events = EPOLLOUT,
        .data.u64 = TRI_EV(TRI_EV_TX, p->number),
    };

    epoll_ctl(l->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, p->tx_fd, &e);
}

/* Stops the core from handing out frames for p, or lets it again. */
static void block(tri_loop *l, tri_port *p, bool on)
{
    if ((TRI_READ(p, blocked) != 0) == on)
        return;
    TRI_PUT(p, blocked, on);
    if (on)
        TRI_COUNT(p, tx_waits, 1);
    else
        l->again = true;
    tri_enter(l);
    tr_port_block(l->core, p->number, on);
    tr_switch_unlock(l->core);
}

/* Changes the reason why p waits. The core is blocked from the first wait on
 * until every frame that was due is sent: else each pause would move
 * another queue's worth out of the core, where no limit holds. */
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

/* ENOBUFS for the frame at the head: wait, or drop it if waiting cannot
 * help. */
static void refused(tri_loop *l, tri_port *p)
{
    uint64_t now = tri_now(l);
    uint32_t shift = p->retries;
    int held = 0;

    /* who takes frames of ports by hand makes room some time */
    if (!p->by_hand
        && (ioctl(p->tx_fd, SIOCOUTQ, &held) != 0 || held <= 0)) {
        uint32_t len = head_of(p)->len;
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

/* Acts on the error of sending the frame at the head. */
static void failed(tri_loop *l, tri_port *p, int error)
{
    switch (error) {
    case EINTR:
        return;
    case EAGAIN:
        set_wait(l, p, TRI_WAIT_SOCKET);
        return;
    case ENOBUFS:
    case ENOMEM:
        refused(l, p);
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

/* As sendmmsg, to who takes the frames of ports by hand. */
static int hand_over(tri_loop *l, tri_port *p, uint32_t n)
{
    uint32_t given = 0;

    if (!atomic_load(&l->listens)) {
        errno = ENETDOWN;
        return -1;
    }
    while (given < n && tri_box_put(&l->hand, nth_of(p, given)))
        given++;
    if (given > 0)
        tri_box_signal(&l->hand);
    errno = ENOBUFS;
    return given > 0 ? (int)given : -1;
}

/* Sends from p what is due, until it waits or is empty. Returns when its next
 * frame is due; TR_NEVER when it is empty or waits for the socket. */
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
        r = p->by_hand ? hand_over(l, p, n)
                       : sendmmsg(p->tx_fd, l->tx_msgs, n, MSG_DONTWAIT);
        if (r > 0)
            sent(l, p, (uint32_t)r);
        else
            failed(l, p, errno);
    }
    set_wait(l, p, TRI_WAIT_NOT);
    block(l, p, false);
    return TR_NEVER;
}

/* Gives the buffers of sent and dropped frames back. */
static void release(tri_loop *l)
{
    if (l->n_done == 0)
        return;
    tri_enter(l);
    for (uint32_t i = 0; i < l->n_done; i++)
        tr_release(l->core, l->done[i]);
    tr_switch_unlock(l->core);
    l->n_done = 0;
}

uint64_t tri_tx_flush(tri_loop *l)
{
    uint64_t now = tri_now(l), next = TR_NEVER;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < l->n_active; i++) {
        tri_port *p = l->active[i];
        uint64_t due = flush_port(l, p, now);

        if (due < next)
            next = due;
        if (p->tx_pcap && tri_pcap_flush(p->tx_pcap) != 0)
            TRI_COUNT(p, pcap_errors, 1);
        p->active = p->fifo_count > 0;
        if (p->active)
            l->active[kept++] = p;
    }
    l->n_active = kept;
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
            if (p->by_hand)
                atomic_fetch_sub(&l->in_hand, 1);
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
