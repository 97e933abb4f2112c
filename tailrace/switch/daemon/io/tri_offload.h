/* What hosts leave to hardware, done in software: checksums, segments, tags.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions on frames in memory. A virtio_net_hdr, as PACKET_VNET_HDR
 * gives it, describes what is left to do (virtio 1.2 §5.1.6, in the byte
 * order of the machine).
 */
#ifndef TRI_OFFLOAD_H
#define TRI_OFFLOAD_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

/* Kind of link header in front of the network header. */
typedef enum tri_link {
    TRI_LINK_ETHERNET,        /* 14 bytes, then VLAN tags */
    TRI_LINK_NONE,            /* the frame starts with the IP header */
    TRI_LINK_OTHER            /* unknown: frames pass, segmenting does not */
} tri_link;

/* A super-frame being cut; made by tri_cut_begin, moved by tri_cut_next. */
typedef struct tri_cut {
    const uint8_t *frame;
    uint32_t len;             /* bytes of the super-frame */
    uint32_t l3;              /* offset of the IP header */
    uint32_t l4;              /* offset of the TCP or UDP header */
    uint32_t payload;         /* offset of the payload */
    uint32_t step;            /* payload bytes a segment */
    uint32_t at;              /* offset of the next segment's payload */
    uint32_t index;           /* number of the next segment */
    bool ipv6;
    bool tcp;
} tri_cut;

/* Completes the checksum that starts at `start` and is stored `offset` bytes
 * after it, where the sum of the pseudo header already stands. Returns 0, or
 * -1 when the field lies outside the frame (nothing is changed). */
int tri_checksum(uint8_t *frame, uint32_t len, uint32_t start,
                 uint32_t offset);

/* Prepares to cut the super-frame `frame` described by h. Returns 0, or -1
 * when it is nothing that this code can cut. */
int tri_cut_begin(tri_cut *c, const uint8_t *frame, uint32_t len,
                  const struct virtio_net_hdr *h, tri_link link);

/* Writes the next segment to out, complete with lengths and checksums.
 * Returns its length, 0 after the last. out holds c->payload + c->step
 * bytes. */
uint32_t tri_cut_next(tri_cut *c, uint8_t *out);

/* Puts a VLAN tag behind the two MAC addresses; writes 4 bytes in front of
 * frame. Returns the new start. frame holds at least 12 bytes. */
uint8_t *tri_tag(uint8_t *frame, uint16_t tpid, uint16_t tci);

#endif
