/* The virtual-time network: what its wires offer to the nodes at their ends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A network is switches and hosts joined by wires, a wire being one direction
 * of a link. Time is integer picoseconds from 0. The network runs in windows:
 * every node with something to do before the end of a window is run up to (not
 * including) that end, each on its own, because whatever is sent to a switch
 * inside a window arrives after it, and hosts run last. So a node's run function
 * handles its own events in the order of their times, and may never look at
 * another node.
 *
 * Everything here is called with the interpreter's lock held. A result of -1
 * means that a Python exception is set (a tap or a test of a fault raised, or
 * there is no memory): the caller returns -1 at once and touches nothing more.
 */
#ifndef TV_H
#define TV_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "tc_frame.h"

#define TV_PS_PER_NS UINT64_C(1000)
#define TV_PS_PER_S UINT64_C(1000000000000)
/* Nothing shorter goes over a wire: what is shorter takes as long. */
#define TV_LEAST_BYTES 14u

typedef struct tv_net tv_net;
typedef struct tv_wire tv_wire;
typedef struct tv_host tv_host;

/* ---- receiving ---- */

/* When the next frame arrives, TC_NEVER: none is under way. */
uint64_t tv_wire_next(const tv_wire *w);
/* Takes it, whatever the time is (the caller takes in the order of times).
 * 1: delivered (hashed, tapped, counted); 0: a fault took it, out->time_ps is
 * set and nothing else; -1: exception. */
int tv_wire_take(tv_wire *w, tc_frame *out);

/* ---- sending ---- */

/* The first bit of a frame leaves at now_ps, its last bit arrives at
 * arrival_ps = now + serialisation + delay. The frame is head, then tail, then
 * virt bytes that exist as a length only; all is copied. 0, or -1. Arrivals on
 * one wire never go backwards: an earlier one becomes equal to the last. */
int tv_wire_send(tv_wire *w, uint64_t now_ps, uint64_t arrival_ps,
                 const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                 uint32_t tail_len, uint32_t virt);
/* Both as they are now; faults change the rate between two windows only. */
uint64_t tv_wire_rate_bps(const tv_wire *w);
uint64_t tv_wire_delay_ps(const tv_wire *w);

#endif
