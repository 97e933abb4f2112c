/* The thread that waits for sockets, the clock and the control plane.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include "tri_loop.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tri_internal.h"

/* Maximum time for which the loop lets control calls take the lock first. */
#define YIELD_NS UINT64_C(200000)
/* Maximum time for which the loop polls for work instead of sleeping. Waking up
 * takes some 30 us. So after a sleep shorter than SPIN_NS, the loop polls the
 * next time, and sleeps only after SPIN_NS without work. While it polls, it
 * yields the processor to other threads. */
#define SPIN_NS UINT64_C(50000)
#define EVENTS 64

static uint64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tri_now(const tri_loop *l)
{
    return monotonic_ns() - l->epoch_ns;
}

static uint64_t clock_ps(void *loop)
{
    return tri_now(loop) * TR_PS_PER_NS;
}

void tri_lock(tri_loop *l)
{
    /* A mutex favours the running thread: without this wait, a busy loop would
     * take the lock again before a woken control call can take it. */
    if (tr_switch_contended(l->core)) {
        uint64_t until = tri_now(l) + YIELD_NS;

        do
            sched_yield();
        while (tr_switch_contended(l->core) && tri_now(l) < until);
    }
    tr_switch_lock(l->core);
}

void tri_run_core(tri_loop *l)
{
    uint64_t now = tri_now(l);
    bool packet_in = false;
    tr_out o;

    l->core_next_ns = tr_ns_ceil(tr_run(l->core, now * TR_PS_PER_NS));
    l->again = l->core_next_ns <= now;
    while (tr_pop(l->core, &o)) {
        if (o.port != l->cpu_port) {
            tri_tx_put(l, &o);
            continue;
        }
        if (!tri_box_put(&l->boxes[TRI_PACKET_INS], &o))
            tri_add(&l->cpu_drops, 1);
        tr_release(l->core, o.slot);
        packet_in = true;
    }
    if (packet_in || tr_digest_pending(l->core))
        tri_signal(l->boxes[TRI_PACKET_INS].fd);
}

/* Sets the timer so that the loop wakes up at `due` (ns since tri_new). A timer
 * that expires earlier does no harm and is left unchanged. */
static void arm(tri_loop *l, uint64_t due, uint64_t now)
{
    struct itimerspec t = { 0 };
    uint64_t expiry = due + l->epoch_ns;

    if (due == TR_NEVER || (l->armed_ns > now && l->armed_ns <= due))
        return;
    t.it_value.tv_sec = (time_t)(expiry / 1000000000u);
    t.it_value.tv_nsec = (long)(expiry % 1000000000u);
    if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &t, NULL) == 0)
        l->armed_ns = due;
}

/* Handles one event that epoll reported. */
static void dispatch(tri_loop *l, const struct epoll_event *e)
{
    tri_port *p = l->ports[(uint32_t)e->data.u64 % TR_MAX_PORTS];

    switch (e->data.u64 >> 32) {
    case TRI_EV_RX:
        tri_rx_port(l, p);
        (void)tri_tx_flush(l);
        if (p->rx_pcap && tri_pcap_flush(p->rx_pcap) != 0)
            TRI_COUNT(p, pcap_errors, 1);
        break;
    case TRI_EV_TX:
        tri_tx_ready(l, p);
        break;
    case TRI_EV_LINK:
        tri_link_read(l);
        break;
    case TRI_EV_WAKE:
        tri_unsignal(l->wake_fd);
        break;
    default:
        tri_unsignal(l->timer_fd);
    }
}

/* Polls for events without sleeping, until `due` or for SPIN_NS. Returns the
 * number of events. */
static int poll_events(tri_loop *l, struct epoll_event *events, uint64_t due)
{
    uint64_t now = tri_now(l), end = now + SPIN_NS;

    for (;;) {
        int n = epoll_wait(l->epoll_fd, events, EVENTS, 0);

        if (n != 0 || !l->spin || due <= now)
            return n;
        sched_yield();
        now = tri_now(l);
        l->spin = now < end;
    }
}

/* Waits for events, at most until `due`, and handles them. */
static void wait_and_handle(tri_loop *l, uint64_t due)
{
    struct epoll_event events[EVENTS];
    uint64_t now = tri_now(l);
    bool busy = l->again || due <= now;
    int n = 0;

    if (busy || l->spin)
        n = poll_events(l, events, busy ? now : due);
    now = tri_now(l);
    if (n == 0 && !busy && due > now) {
        arm(l, due, now);
        n = epoll_wait(l->epoll_fd, events, EVENTS, -1);
        l->spin = l->may_spin && tri_now(l) - now < SPIN_NS;
    }
    for (int i = 0; i < n; i++)
        dispatch(l, &events[i]);
}

static void *run(void *arg)
{
    tri_loop *l = arg;
    uint64_t due;

    while (!atomic_load_explicit(&l->stop, memory_order_acquire)) {
        tri_lock(l);
        tri_run_core(l);
        tr_switch_unlock(l->core);
        due = tri_tx_flush(l);
        if (l->core_next_ns < due)
            due = l->core_next_ns;
        wait_and_handle(l, due);
    }
    return NULL;
}

static int add_to_epoll(tri_loop *l, int fd, uint64_t data)
{
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = data };

    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

/* Opens the descriptors that do not belong to a port; -1 with errno. */
static int open_descriptors(tri_loop *l)
{
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                 TFD_NONBLOCK | TFD_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->link_fd = tri_link_open();
    if (l->epoll_fd < 0 || l->timer_fd < 0 || l->wake_fd < 0
        || l->link_fd < 0)
        return -1;
    if (add_to_epoll(l, l->timer_fd, TRI_EV(TRI_EV_TIMER, 0)) != 0
        || add_to_epoll(l, l->wake_fd, TRI_EV(TRI_EV_WAKE, 0)) != 0
        || add_to_epoll(l, l->link_fd, TRI_EV(TRI_EV_LINK, 0)) != 0)
        return -1;
    return 0;
}

tri_loop *tri_new(tr_switch *core, uint32_t cpu_port, const char *pcap_dir,
                  uint32_t ring_slots, char *err)
{
    tri_loop *l = calloc(1, sizeof *l);
    int boxes = 0;

    if (!l) {
        tri_fail(err, "cannot start the", "packet loop", ENOMEM);
        return NULL;
    }
    l->core = core;
    l->cpu_port = cpu_port;
    l->ring_slots = ring_slots;
    l->epoch_ns = monotonic_ns();
    tr_set_clock(core, clock_ps, l);
    l->epoll_fd = l->timer_fd = l->wake_fd = l->link_fd = -1;
    for (uint32_t i = 0; i < TRI_BATCH; i++) {
        l->tx_msgs[i].msg_hdr.msg_iov = &l->tx_iov[i];
        l->tx_msgs[i].msg_hdr.msg_iovlen = 1;
    }
    for (unsigned i = 0; i < TRI_BOXES; i++)
        boxes |= tri_box_init(&l->boxes[i]);
    if ((pcap_dir && !(l->pcap_dir = strdup(pcap_dir)))
        || tri_rx_init(&l->rx) != 0)
        errno = ENOMEM;
    else if (boxes == 0 && open_descriptors(l) == 0)
        return l;
    tri_fail(err, "cannot start the", "packet loop", errno);
    tri_free(l);
    return NULL;
}

int tri_add_port(tri_loop *l, uint32_t port, const char *ifname, char *err)
{
    tri_port *p;

    if (port == l->cpu_port || l->ports[port]) {
        snprintf(err, TRI_ERROR_BYTES, "port %u is %s", port,
                 l->ports[port] ? "given twice" : "the CPU port");
        return -1;
    }
    p = tri_port_open(l, port, ifname, err);
    if (!p)
        return -1;
    for (uint32_t i = 0; i < l->n_ports; i++) {
        if (l->list[i]->ifindex != p->ifindex)
            continue;
        snprintf(err, TRI_ERROR_BYTES,
                 "interface %s is given for both port %u and port %u",
                 ifname, l->list[i]->number, port);
        tri_port_close(p);
        return -1;
    }
    l->ports[port] = l->list[l->n_ports++] = p;
    return 0;
}

/* Registers the ports with epoll, and sets in the core which ports are up. */
static int attach_ports(tri_loop *l)
{
    for (uint32_t i = 0; i < l->n_ports; i++) {
        tri_port *p = l->list[i];

        /* The core's ports are up initially, so a report that a port is down
         * is a change. */
        TRI_PUT(p, up, 1);
        if (p->for_client)
            continue;
        if (add_to_epoll(l, p->rx_fd, TRI_EV(TRI_EV_RX, p->number)) != 0)
            return -1;
        tri_link_query(l, p);
    }
    tri_link_read(l);
    return 0;
}

int tri_start(tri_loop *l, char *err)
{
    sigset_t all, before;
    int error = 0;

    l->armed_ns = TR_NEVER;
    l->may_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    if (attach_ports(l) != 0)
        error = errno;
    if (error == 0) {
        /* The new thread blocks all signals; other threads handle them. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&l->thread, NULL, run, l);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error != 0) {
        tri_fail(err, "cannot start the", "packet loop", error);
        return -1;
    }
    pthread_setname_np(l->thread, "tailrace-io");
    l->running = true;
    return 0;
}

/* Stops the thread and discards the frames that wait to be sent: the core can
 * reuse their memory. */
static void stop(tri_loop *l)
{
    if (!l->running)
        return;
    atomic_store_explicit(&l->stop, true, memory_order_release);
    tri_signal(l->wake_fd);
    pthread_join(l->thread, NULL);
    l->running = false;
    tr_switch_lock(l->core);
    tri_tx_abandon(l);
    tr_switch_unlock(l->core);
}

void tri_free(tri_loop *l)
{
    const int fds[] = { l->epoll_fd, l->timer_fd, l->wake_fd, l->link_fd };

    stop(l);
    tr_set_clock(l->core, NULL, NULL);
    for (uint32_t i = 0; i < l->n_ports; i++)
        tri_port_close(l->list[i]);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    tri_rx_free(&l->rx);
    for (unsigned i = 0; i < TRI_BOXES; i++)
        tri_box_free(&l->boxes[i]);
    free(l->pcap_dir);
    free(l->done);
    free(l);
}

uint64_t tri_packet_in_drops(tri_loop *l)
{
    return tri_get(&l->cpu_drops);
}

int tri_port_read(tri_loop *l, uint32_t port, tri_port_info *out)
{
    tri_port *p = port < TR_MAX_PORTS ? l->ports[port] : NULL;
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    uint64_t values[TRI_FIELDS];

    if (!p)
        return -1;
    /* Reading resets the kernel's count, so the core's lock lets only one
     * thread read and add at a time. */
    tr_switch_lock(l->core);
    if (getsockopt(p->rx_fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size)
        == 0)
        TRI_COUNT(p, rx_kernel_drops, stats.tp_drops);
    tr_switch_unlock(l->core);
    for (size_t i = 0; i < TRI_FIELDS; i++)
        values[i] = tri_get(&p->info[i]);
    memcpy(out, values, sizeof *out);
    return 0;
}
