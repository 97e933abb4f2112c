/* Receive ring: the kernel writes frames to memory shared with the loop, so
 * that they need no system call and no copy (packet_mmap, TPACKET_V2).
 * SPDX-License-Identifier: Apache-2.0
 *
 * A slot has space for an ordinary Ethernet frame. A longer frame (jumbo frame,
 * or super-frame of several segments, GSO) is truncated in its slot; the queue
 * of the socket has the complete frame (PACKET_COPY_THRESH). Frames have the
 * same order in ring and queue.
 * TPACKET_V3 delivers whole blocks, and partly filled blocks only after a
 * millisecond, so it would delay the frames of a quiet port.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "tri_internal.h"

/* Bytes of a slot with the kernel's metadata, and of a block of slots. */
#define SLOT_BYTES 2048u
#define BLOCK_BYTES (1u << 16)

/* The i-th slot after that with the oldest frame. */
static struct tpacket2_hdr *slot(const tri_ring *r, uint32_t i)
{
    return (void *)(r->memory + (size_t)((r->at + i) % r->slots) * SLOT_BYTES);
}

void tri_ring_open(tri_ring *r, int fd, uint32_t slots)
{
    const uint32_t per_block = BLOCK_BYTES / SLOT_BYTES;
    struct tpacket_req request = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = (slots + per_block - 1) / per_block,
        .tp_frame_size = SLOT_BYTES,
    };
    int version = TPACKET_V2, threshold = 1;
    void *memory;

    *r = (tri_ring){ 0 };
    request.tp_frame_nr = request.tp_block_nr * per_block;
    if (slots == 0
        || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version,
                      sizeof version) != 0
        || setsockopt(fd, SOL_PACKET, PACKET_COPY_THRESH, &threshold,
                      sizeof threshold) != 0
        || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request,
                      sizeof request) != 0)
        return;
    memory = mmap(NULL, (size_t)request.tp_frame_nr * SLOT_BYTES,
                  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        request = (struct tpacket_req){ 0 };
        (void)setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request,
                         sizeof request);
        return;
    }
    r->memory = memory;
    r->slots = request.tp_frame_nr;
}

void tri_ring_close(tri_ring *r)
{
    if (r->memory)
        munmap(r->memory, (size_t)r->slots * SLOT_BYTES);
    *r = (tri_ring){ 0 };
}

uint32_t tri_ring_look(const tri_ring *r, tri_rx_frame *frames, uint32_t most)
{
    uint32_t n = 0;

    for (; n < most && n < r->slots; n++) {
        struct tpacket2_hdr *h = slot(r, n);
        uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
        uint8_t *base = (uint8_t *)h;
        tri_rx_frame *f = &frames[n];
        const struct sockaddr_ll *from =
            (const void *)(base + TPACKET_ALIGN(sizeof *h));

        if (!(status & TP_STATUS_USER))
            break;
        *f = (tri_rx_frame){
            .data = base + h->tp_mac,
            .len = h->tp_snaplen,
            .outgoing = from->sll_pkttype == PACKET_OUTGOING,
            .queued = (status & TP_STATUS_COPY) != 0,
            /* unless receive_queued (tri_rx.c) gets the complete frame */
            .lost = h->tp_len > h->tp_snaplen,
        };
        memcpy(&f->vnet, f->data - sizeof f->vnet, sizeof f->vnet);
        tri_rx_note_tag(f, status, h->tp_vlan_tci, h->tp_vlan_tpid);
    }
    return n;
}

void tri_ring_release(tri_ring *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        __atomic_store_n(&slot(r, i)->tp_status, TP_STATUS_KERNEL,
                         __ATOMIC_RELEASE);
    if (n)
        r->at = (r->at + n) % r->slots;
}
