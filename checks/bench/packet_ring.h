/* Packet sockets of the load generator and of the reflector.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For files that define _GNU_SOURCE. Frames are received in a ring shared
 * with the kernel, at almost no cost per frame.
 */
#ifndef PACKET_RING_H
#define PACKET_RING_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_FRAME = 2048,        /* bytes of a slot for one frame */
    RING_FRAMES = 8192,       /* slots */
    RING_BLOCK = 1 << 16      /* bytes of a block of slots */
};

static inline uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Binds a socket to an interface, to receive frames of an EtherType; 0: none.
 * Returns 0, or -1 with errno. */
static inline int packet_bind(int fd, const char *name, uint16_t protocol)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(protocol),
        .sll_ifindex = (int)if_nametoindex(name),
    };

    return bind(fd, (struct sockaddr *)&address, sizeof address);
}

/* Opens a socket that only sends. Returns it, or -1 with errno. */
static inline int packet_open(const char *name)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd >= 0 && packet_bind(fd, name, 0) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Makes a socket of packet_open receive, too. Returns its receive ring, or
 * NULL with errno. */
static inline uint8_t *packet_ring(int fd, const char *name, uint16_t protocol)
{
    struct tpacket_req request = {
        .tp_block_size = RING_BLOCK,
        .tp_block_nr = RING_FRAMES / (RING_BLOCK / RING_FRAME),
        .tp_frame_size = RING_FRAME,
        .tp_frame_nr = RING_FRAMES,
    };
    int version = TPACKET_V2;
    void *ring;

    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version)
        || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request,
                      sizeof request))
        return NULL;
    ring = mmap(NULL, (size_t)RING_FRAME * RING_FRAMES,
                PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return NULL;
    if (packet_bind(fd, name, protocol) == 0)
        return ring;
    munmap(ring, (size_t)RING_FRAME * RING_FRAMES);
    return NULL;
}

/* The frame in a slot of the ring, NULL while the kernel owns the slot. */
static inline struct tpacket2_hdr *packet_at(uint8_t *ring, uint32_t i)
{
    struct tpacket2_hdr *h =
        (void *)(ring + (size_t)(i % RING_FRAMES) * RING_FRAME);

    return __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER
               ? h : NULL;
}

static inline void packet_done(struct tpacket2_hdr *h)
{
    __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

/* Closes the sockets and unmaps the ring, if they exist. */
static inline void packet_close(int rx_fd, int tx_fd, uint8_t *ring)
{
    if (ring)
        munmap(ring, (size_t)RING_FRAME * RING_FRAMES);
    if (rx_fd >= 0)
        close(rx_fd);
    if (tx_fd >= 0)
        close(tx_fd);
}

#endif
