/* The virtual-time network: what its wires offer to the nodes at their ends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A network consists of nodes (switches and hosts) and wires; a wire is one
 * direction of a link. Time is integer picoseconds from 0. The network runs in
 * windows of time: each node with an event before the end of a window is run up
 * to (not including) that end, one node after the other, all switches before
 * all hosts. A frame sent to a switch within a window arrives after the window.
 * A frame from a switch to a host may arrive within the window, as the host
 * runs later. So the run function of a node handles the events of that node in
 * the order of their times, and must never read another node's state.
 *
 * The caller of these functions holds the GIL. A result of -1 means that a
 * Python exception is set: memory is exhausted, or a Python function raised the
 * exception: a tap (an observer of a wire), or a function that decides which
 * frames a fault loses. The caller returns -1 at once and changes nothing more.
 * A comment that ends in "0, -1" means: returns 0, or -1 with an exception.
 */
#ifndef TV_H
#define TV_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "tc_frame.h"

#define TV_PS_PER_NS UINT64_C(1000)
#define TV_PS_PER_S UINT64_C(1000000000000)
/* A shorter frame takes as long to send as a frame of this length. */
#define TV_LEAST_BYTES 14u

typedef struct tv_net tv_net;
typedef struct tv_wire tv_wire;
typedef struct tv_host tv_host;

/* ---- receiving ---- */

/* When the next frame arrives, in ps; TC_NEVER: none is under way. */
uint64_t tv_wire_next(const tv_wire *w);
/* Removes the next frame, whatever the time is (the caller keeps the order of
 * times). 1: delivered (hashed, tapped, counted); 0: lost to a fault, and only
 * out->time_ps is set; -1: exception. */
int tv_wire_take(tv_wire *w, tc_frame *out);

/* ---- sending ---- */

/* The first bit of a frame leaves at now_ps, its last bit arrives at
 * arrival_ps = now + serialisation + delay. The frame is head, then tail, then
 * virt bytes of which only the number is stored; the bytes are copied. A wire
 * is FIFO: an arrival before the previous one is set to its time. 0, -1. */
int tv_wire_send(tv_wire *w, uint64_t now_ps, uint64_t arrival_ps,
                 const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                 uint32_t tail_len, uint32_t virt);
/* The wire's present rate and delay; faults change the rate only between two
 * windows. */
uint64_t tv_wire_rate_bps(const tv_wire *w);
uint64_t tv_wire_delay_ps(const tv_wire *w);

#endif
