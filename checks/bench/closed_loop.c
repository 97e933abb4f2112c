/* Load generator of the closed-loop benchmark: keeps a fixed number of
 * packets in flight (load->window).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sends stamped IPv4/UDP frames on one interface and receives them on another;
 * each received frame triggers the next. Frames are received in a
 * memory-mapped ring, at almost no cost. The thread sleeps when the ring is
 * empty, so that it takes no CPU time from the switch. Runs in the calling
 * thread and has no state between calls.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "packet_ring.h"

enum {
    BATCH = 64,               /* most frames sent or received at once */
    FRACTION_BITS = 7,        /* 128 latency bins per power of two */
    HEADER_BYTES = 42,        /* Ethernet, IPv4, UDP: given by the caller */
    LOST_MS = 250             /* silence after which packets count as lost */
};
#define MAGIC 0x7461696cu

/* The UDP payload of each frame. */
typedef struct stamp {
    uint32_t magic, run;
    uint64_t sent_ns;
} stamp;

typedef struct loader {
    const bench_load *load;
    int tx_fd, rx_fd;
    uint8_t *ring;
    uint32_t ring_at;         /* slot of the next frame to read */
    uint8_t *frames;          /* BATCH frames being sent */
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    uint32_t run;             /* id in each frame; changes after a loss */
    uint64_t sequence, in_flight; /* frames sent so far; not yet received */
    bool counting;            /* the warm-up is over */
    bench_result *result;
} loader;

/* The bin of a latency, numbered as in tailrace/hosts/gaps/histogram.py. */
static uint32_t bin_of(uint64_t ns)
{
    uint32_t shift;

    if (ns < 1u << FRACTION_BITS)
        return (uint32_t)ns;
    shift = 63u - (uint32_t)__builtin_clzll(ns) - FRACTION_BITS;
    return (shift << FRACTION_BITS) + (uint32_t)(ns >> shift);
}

/* Opens the sockets and maps the ring. Returns 0, or -1 with errno. */
static int set_up(loader *g)
{
    int enabled = 1;

    g->tx_fd = packet_open(g->load->tx_name);
    /* bound to no protocol, so that no frame arrives before the ring exists */
    g->rx_fd = packet_open(g->load->rx_name);
    if (g->tx_fd < 0 || g->rx_fd < 0
        || setsockopt(g->tx_fd, SOL_PACKET, PACKET_QDISC_BYPASS, &enabled,
                      sizeof enabled) != 0)
        return -1;
    g->ring = packet_ring(g->rx_fd, g->load->rx_name, ETH_P_IP);
    return g->ring ? 0 : -1;
}

/* Sends count packets, or fewer if the interface accepts no more. Returns 0,
 * or -1 with errno. */
static int send_packets(loader *g, uint64_t count)
{
    const bench_load *l = g->load;

    while (count > 0) {
        uint32_t n = count < BATCH ? (uint32_t)count : BATCH;
        stamp s = { MAGIC, g->run, now_ns() };
        int sent;

        for (uint32_t i = 0; i < n; i++) {
            uint8_t *f = g->frames + (size_t)i * RING_FRAME;

            memcpy(f, l->headers + (g->sequence + i) % l->flows * HEADER_BYTES,
                   HEADER_BYTES);
            memcpy(f + HEADER_BYTES, &s, sizeof s);
        }
        sent = sendmmsg(g->tx_fd, g->msgs, n, 0);
        if (sent < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            return -1;
        if (sent <= 0)
            return 0;         /* the next call sends the rest */
        g->sequence += (uint64_t)sent;
        g->in_flight += (uint64_t)sent;
        count -= (uint64_t)sent;
    }
    return 0;
}

/* Counts a received frame, unless still warming up. Returns whether it belongs
 * to this run. */
static bool take(loader *g, const struct tpacket2_hdr *h, uint64_t now)
{
    stamp s;

    if (h->tp_snaplen < HEADER_BYTES + sizeof s)
        return false;
    memcpy(&s, (const uint8_t *)h + h->tp_mac + HEADER_BYTES, sizeof s);
    if (s.magic != MAGIC || s.run != g->run)
        return false;
    if (g->counting) {
        uint32_t bin = bin_of(now - s.sent_ns), last = g->load->n_bins - 1;

        g->result->packets++;
        g->load->bins[bin < last ? bin : last]++;
    }
    return true;
}

/* Reads up to BATCH frames from the ring; returns how many belong to this
 * run. */
static uint32_t drain(loader *g)
{
    uint64_t now = now_ns();
    uint32_t ours = 0;

    for (uint32_t i = 0; i < BATCH; i++) {
        struct tpacket2_hdr *h = packet_at(g->ring, g->ring_at);

        if (!h)
            break;
        ours += take(g, h, now);
        packet_done(h);
        g->ring_at = (g->ring_at + 1) % RING_FRAMES;
    }
    return ours;
}

/* Sends and receives until the time is over. Returns 0, or -1 with errno. */
static int generate(loader *g)
{
    uint64_t start = now_ns() + g->load->warm_up_ns;
    uint64_t end = start + g->load->measure_ns, now;

    while ((now = now_ns()) < end) {
        uint32_t n;

        if (!g->counting && now >= start) {
            g->counting = true;
            start = now;
        }
        n = drain(g);
        g->in_flight -= n < g->in_flight ? n : g->in_flight;
        if (n == 0 && g->in_flight >= g->load->window) {
            struct pollfd p = { .fd = g->rx_fd, .events = POLLIN };
            int r = poll(&p, 1, LOST_MS);

            if (r < 0 && errno != EINTR)
                return -1;
            if (r == 0) {
                g->result->lost += g->in_flight;
                g->in_flight = 0;
                g->run++;     /* frames that arrive late are ignored */
            }
        }
        if (g->in_flight < g->load->window
            && send_packets(g, g->load->window - g->in_flight) != 0)
            return -1;
    }
    g->result->elapsed_ns = now - start;
    return 0;
}

/* Runs the load; returns 0, or -1 with out->error set. */
int bench_closed_loop(const bench_load *load, bench_result *out)
{
    loader g = { .load = load, .tx_fd = -1, .rx_fd = -1, .result = out };
    int r = -1;

    memset(out, 0, sizeof *out);
    g.run = (uint32_t)now_ns();
    g.frames = calloc(BATCH, RING_FRAME);
    errno = ENOMEM;
    if (g.frames) {
        for (uint32_t i = 0; i < BATCH; i++) {
            g.iov[i].iov_base = g.frames + (size_t)i * RING_FRAME;
            g.iov[i].iov_len = load->frame_bytes;
            g.msgs[i].msg_hdr.msg_iov = &g.iov[i];
            g.msgs[i].msg_hdr.msg_iovlen = 1;
        }
        r = set_up(&g) == 0 ? generate(&g) : -1;
    }
    out->error = r == 0 ? 0 : (uint64_t)errno;
    packet_close(g.rx_fd, g.tx_fd, g.ring);
    free(g.frames);
    return r;
}
