/* The limit of the closed-loop benchmark: each frame that one interface receives
 * is sent by another, by the kinds of socket that the switch has, and nothing
 * is done with it in between.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum {
    BATCH = 64,
    SLOT_BYTES = 2048,
    SLOTS = 2048,
    BLOCK_BYTES = 1 << 16,
    AWAKE_NS = 50000,
    NAP_MS = 20               /* between two looks at whether to stop */
};

struct bench_reflector {
    pthread_t thread;
    atomic_bool stop;
    int rx_fd, tx_fd;
    uint8_t *ring;
    uint32_t at;
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
};

static struct tpacket2_hdr *slot(const bench_reflector *r, uint32_t i)
{
    return (void *)(r->ring + (size_t)((r->at + i) % SLOTS) * SLOT_BYTES);
}

/* Sends what has come in; how many frames. */
static uint32_t turn(bench_reflector *r)
{
    uint32_t n = 0, sent = 0;

    for (; n < BATCH; n++) {
        struct tpacket2_hdr *h = slot(r, n);

        if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE)
              & TP_STATUS_USER))
            break;
        r->iov[n] = (struct iovec){ (uint8_t *)h + h->tp_mac, h->tp_snaplen };
    }
    while (sent < n) {
        int done = sendmmsg(r->tx_fd, r->msgs + sent, n - sent, 0);

        if (done > 0)
            sent += (uint32_t)done;
        else if (errno != EINTR)
            sent++;           /* it is lost, as the generator will see */
    }
    for (uint32_t i = 0; i < n; i++)
        __atomic_store_n(&slot(r, i)->tp_status, TP_STATUS_KERNEL,
                         __ATOMIC_RELEASE);
    r->at = (r->at + n) % SLOTS;
    return n;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Like the switch's thread it sits short pauses out awake. */
static void *run(void *arg)
{
    bench_reflector *r = arg;
    uint64_t last_ns = now_ns();

    while (!atomic_load(&r->stop)) {
        struct pollfd p = { .fd = r->rx_fd, .events = POLLIN };

        if (turn(r) > 0)
            last_ns = now_ns();
        else if (now_ns() - last_ns < AWAKE_NS)
            sched_yield();
        else
            (void)poll(&p, 1, NAP_MS);
    }
    return NULL;
}

static int open_bound(const char *name, uint16_t protocol)
{
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(protocol),
        .sll_ifindex = (int)if_nametoindex(name),
    };
    int fd = at.sll_ifindex
                 ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;

    if (fd >= 0 && protocol) {
        struct tpacket_req ask = {
            .tp_block_size = BLOCK_BYTES,
            .tp_block_nr = SLOTS * SLOT_BYTES / BLOCK_BYTES,
            .tp_frame_size = SLOT_BYTES,
            .tp_frame_nr = SLOTS,
        };
        int version = TPACKET_V2, yes = 1;

        if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version,
                       sizeof version) != 0
            || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes,
                          sizeof yes) != 0
            || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ask, sizeof ask)
                   != 0) {
            close(fd);
            return -1;
        }
    }
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void bench_reflect_stop(bench_reflector *r)
{
    if (!r)
        return;
    if (r->thread) {
        atomic_store(&r->stop, true);
        pthread_join(r->thread, NULL);
    }
    if (r->ring)
        munmap(r->ring, (size_t)SLOTS * SLOT_BYTES);
    if (r->rx_fd >= 0)
        close(r->rx_fd);
    if (r->tx_fd >= 0)
        close(r->tx_fd);
    free(r);
}

bench_reflector *bench_reflect_start(const char *rx_name, const char *tx_name)
{
    bench_reflector *r = calloc(1, sizeof *r);
    void *ring;

    if (!r)
        return NULL;
    for (uint32_t i = 0; i < BATCH; i++) {
        r->msgs[i].msg_hdr.msg_iov = &r->iov[i];
        r->msgs[i].msg_hdr.msg_iovlen = 1;
    }
    r->tx_fd = open_bound(tx_name, 0);
    r->rx_fd = open_bound(rx_name, ETH_P_ALL);
    ring = r->rx_fd < 0 ? MAP_FAILED
                        : mmap(NULL, (size_t)SLOTS * SLOT_BYTES,
                               PROT_READ | PROT_WRITE, MAP_SHARED, r->rx_fd, 0);
    if (ring != MAP_FAILED)
        r->ring = ring;
    if (!r->ring || r->tx_fd < 0
        || pthread_create(&r->thread, NULL, run, r) != 0) {
        r->thread = 0;
        bench_reflect_stop(r);
        return NULL;
    }
    return r;
}
