/* Completes in software what hosts leave to NICs: checksums, segments, tags.
 * SPDX-License-Identifier: Apache-2.0
 *
 * These functions change frames in memory and have no other state. A frame's
 * virtio_net_hdr, which PACKET_VNET_HDR provides, describes the work that is
 * left to do (virtio 1.2 §5.1.6, in the byte order of the machine).
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
    TRI_LINK_OTHER            /* unknown: super-frames cannot be segmented */
} tri_link;

/* State of cutting a super-frame (a frame of several segments, GSO). */
typedef struct tri_cut {
    const uint8_t *frame;
    uint32_t len;             /* bytes of the super-frame */
    uint32_t l3;              /* offset of the IP header */
    uint32_t l4;              /* offset of the TCP or UDP header */
    uint32_t payload;         /* offset of the payload */
    uint32_t step;            /* payload bytes of a segment */
    uint32_t at;              /* offset of the next segment's payload */
    uint32_t index;           /* index of the next segment */
    bool ipv6;
    bool tcp;
} tri_cut;

/* Completes the checksum over the bytes from `start` on. The checksum field, at
 * start + offset, contains the sum of the pseudo header. Returns 0, or -1 if
 * the field is outside the frame; the frame is then unchanged. */
int tri_checksum(uint8_t *frame, uint32_t len, uint32_t start,
                 uint32_t offset);

/* Prepares to cut the super-frame `frame` described by h. Returns 0, or -1 if
 * the kind of the frame is not supported or its headers are invalid. */
int tri_cut_begin(tri_cut *c, const uint8_t *frame, uint32_t len,
                  const struct virtio_net_hdr *h, tri_link link);

/* Writes the next segment to out, with lengths and checksums. Returns its
 * length, or 0 after the last segment. out must have space for c->payload +
 * c->step bytes. */
uint32_t tri_cut_next(tri_cut *c, uint8_t *out);

/* Inserts a VLAN tag after the two MAC addresses, which move 4 bytes to the
 * front. Returns the new start of the frame. The frame must have at least 12
 * bytes. */
uint8_t *tri_tag(uint8_t *frame, uint16_t tpid, uint16_t tci);

#endif
