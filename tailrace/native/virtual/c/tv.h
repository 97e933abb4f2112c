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

/* ---- a host, as the network sees it (tv_host.h, tv_host.c) ----
 *
 *   tv_host *tv_host_new(tv_wire *in, tv_wire *out);   NULL with an exception
 *   void tv_host_free(tv_host *h);
 *   int tv_host_attach(tv_host *h, PyObject *port);    0, -1
 *   uint64_t tv_host_next(const tv_host *h);
 *       time of its next event, that of tv_wire_next(in) among them
 *   int tv_host_run(tv_host *h, uint64_t end_ps);
 *       handles all events before end_ps; how many there were (arrivals, and
 *       times at which the NIC was asked for a frame), or -1
 *   int tv_host_idle(tv_host *h);                      1, 0, -1
 *   int tv_host_poll(tv_host *h, uint64_t now_ps);
 *       before a run: the NIC may have got something to send; makes the host's
 *       next event now_ps or, when the wire is busy, the time at which it is
 *       free. 0, -1. Never tells a NIC a time earlier than it has seen: after
 *       a run that came to rest now_ps may lie a little before a timer that
 *       the NIC has already been told of.
 *   uint64_t tv_host_last_ps(const tv_host *h);
 *       time of the last event that carried a frame: an arrival was taken or
 *       a frame was sent; timers do not count. 0: none yet
 *   int tv_host_traverse(tv_host *h, visitproc visit, void *arg);
 *       for Python's cycle collector: Py_VISIT of the NIC and all it holds
 */

#endif
