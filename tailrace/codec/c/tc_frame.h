/* A frame as passed between a NIC and the owner of its wire. The wire is the
 * link of the NIC's host; its owner is the code that delivers frames to the NIC
 * and takes frames from it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TC_FRAME_H
#define TC_FRAME_H

#include <stdint.h>

/* A time that never comes, in any unit. */
#define TC_NEVER UINT64_MAX
/* Longest frame, real and virtual bytes together. */
#define TC_MOST_BYTES (2u * 1024 * 1024)

/* A frame that has arrived. */
typedef struct tc_frame {
    uint64_t time_ps;    /* when its last bit arrived */
    uint32_t len;        /* number of bytes at data */
    uint32_t virt;       /* virtual payload bytes: counted, not stored */
    const uint8_t *data; /* valid until the wire is used again */
} tc_frame;

/* A frame to be sent. Its bytes are in two parts, `head` and then `tail`, which
 * are valid until the next call of the NIC. It also has virt virtual payload
 * bytes, which count for its length but are not stored. */
typedef struct tc_departure {
    const uint8_t *head, *tail;
    uint32_t head_len, tail_len, virt;
} tc_departure;

#endif
