/* "limit" in the closed-loop benchmark: no switch, but an upper bound of the
 * rate of every switch. It sends each frame that one interface receives
 * unchanged by another interface, through sockets like those of the switch.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench.h"
#include "packet_ring.h"

enum {
    BATCH = 64,
    AWAKE_NS = 50000,         /* time without frames before the thread sleeps */
    NAP_MS = 20               /* between two checks of stop */
};

struct bench_reflector {
    pthread_t thread;
    atomic_bool stop;
    int rx_fd, tx_fd;
    uint8_t *ring;
    uint32_t next;            /* slot of the next frame to read */
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
};

/* Sends the frames that have arrived; returns their number. */
static uint32_t reflect_batch(bench_reflector *r)
{
    uint32_t n = 0, sent = 0;

    for (; n < BATCH; n++) {
        struct tpacket2_hdr *h = packet_at(r->ring, r->next + n);

        if (!h)
            break;
        r->iov[n] = (struct iovec){ (uint8_t *)h + h->tp_mac, h->tp_snaplen };
    }
    while (sent < n) {
        int done = sendmmsg(r->tx_fd, r->msgs + sent, n - sent, 0);

        if (done > 0)
            sent += (uint32_t)done;
        else if (errno != EINTR)
            sent++;           /* a loss, which the generator counts */
    }
    for (uint32_t i = 0; i < n; i++)
        packet_done(packet_at(r->ring, r->next + i));
    r->next = (r->next + n) % RING_FRAMES;
    return n;
}

/* The thread: like the switch's, it polls for AWAKE_NS before it sleeps. */
static void *run(void *arg)
{
    bench_reflector *r = arg;
    uint64_t last_ns = now_ns();

    while (!atomic_load(&r->stop)) {
        struct pollfd p = { .fd = r->rx_fd, .events = POLLIN };

        if (reflect_batch(r) > 0)
            last_ns = now_ns();
        else if (now_ns() - last_ns < AWAKE_NS)
            sched_yield();
        else
            (void)poll(&p, 1, NAP_MS);
    }
    return NULL;
}

void bench_reflect_stop(bench_reflector *r)
{
    if (!r)
        return;
    if (r->thread) {
        atomic_store(&r->stop, true);
        pthread_join(r->thread, NULL);
    }
    packet_close(r->rx_fd, r->tx_fd, r->ring);
    free(r);
}

bench_reflector *bench_reflect_start(const char *rx_name, const char *tx_name)
{
    bench_reflector *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    for (uint32_t i = 0; i < BATCH; i++) {
        r->msgs[i].msg_hdr.msg_iov = &r->iov[i];
        r->msgs[i].msg_hdr.msg_iovlen = 1;
    }
    r->tx_fd = packet_open(tx_name);
    r->rx_fd = packet_open(rx_name);
    if (r->rx_fd >= 0)
        r->ring = packet_ring(r->rx_fd, rx_name, ETH_P_ALL);
    if (!r->ring || r->tx_fd < 0
        || pthread_create(&r->thread, NULL, run, r) != 0) {
        r->thread = 0;
        bench_reflect_stop(r);
        return NULL;
    }
    return r;
}
