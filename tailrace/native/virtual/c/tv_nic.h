/* A host's NIC as C sees it: Python is told of what arrives, and asked for what
 * departs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two kinds of NIC. A frame NIC (tailrace.codec.nic.NicLike) takes and gives
 * frames. A packet NIC, told by its method next_packet, takes and gives the
 * numbers in them, as tailrace.codec.calls describes; frames are read and made
 * here, by tv_codec.
 *
 * A result of -1 means that a Python exception is set.
 */
#ifndef TV_NIC_H
#define TV_NIC_H

#include "tv.h"

typedef struct tv_nic tv_nic;

/* A frame on its way out: head, then tail, then bytes that are a length. Its
 * parts are valid until the next call of its NIC. */
typedef struct tv_departure {
    const uint8_t *head, *tail;
    uint32_t head_len, tail_len, virt;
} tv_departure;

/* NULL with an exception set: it has not the methods of a NIC. */
tv_nic *tv_nic_new(PyObject *nic);
void tv_nic_free(tv_nic *n);

/* A frame has arrived. 0, -1. */
int tv_nic_arrive(tv_nic *n, uint64_t now_ns, const tv_frame *frame);

/* Asks for a frame. 1: there is one, in *out; 0: there is none, and none
 * before *next_ns (TV_NEVER, or later than now) unless something arrives;
 * -1. */
int tv_nic_depart(tv_nic *n, uint64_t now_ns, tv_departure *out,
                  uint64_t *next_ns);

/* Whether it has nothing left to do: 1, 0, -1. */
int tv_nic_idle(tv_nic *n);

int tv_nic_traverse(tv_nic *n, visitproc visit, void *arg);

#endif
