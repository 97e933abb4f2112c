/* A host in the network: when its NIC is called, and the serialisation of what
 * the NIC sends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A host has three kinds of events: a frame arrives, its outgoing wire (this
 * direction of its link) becomes free, a timer of the NIC expires. At an
 * instant all arrivals are handed to the NIC first; then, if the wire is free,
 * the NIC is asked for a frame. The NIC's clock is that of the network in whole
 * nanoseconds, rounded down.
 *
 * The caller of these functions holds the GIL.
 */
#ifndef TV_HOST_H
#define TV_HOST_H

#include "tv.h"

/* A host at the ends of two wires, without a NIC: it sends nothing, and
 * discards what arrives. NULL with an exception set: no memory. */
tv_host *tv_host_new(tv_wire *in, tv_wire *out);

void tv_host_free(tv_host *h);

/* Attaches a NIC, given by its port (tc_nic.h), in place of the current one.
 * 0; -1 with an exception set: `port` is no port of a NIC, or the current NIC
 * is being called. */
int tv_host_attach(tv_host *h, PyObject *port);

/* Time of the next event, arrivals included; TC_NEVER: there is none. */
uint64_t tv_host_next(const tv_host *h);

/* Handles all events before end_ps. Returns their number (arrivals, and
 * requests to the NIC for a frame), or -1 with the exception that a NIC or a
 * tap raised. */
int tv_host_run(tv_host *h, uint64_t end_ps);

/* Asks the NIC whether it has nothing left to do: 1, 0; -1 with an exception
 * set. */
int tv_host_idle(tv_host *h);

/* The NIC may have a new frame to send: it will be asked at now_ps, or when the
 * wire becomes free. The NIC's clock never runs backwards: if the NIC has been
 * called with a later time, it is asked at that time. Returns 0. */
int tv_host_poll(tv_host *h, uint64_t now_ps);

/* Time of the last frame received or sent; 0: none yet. */
uint64_t tv_host_last_ps(const tv_host *h);

/* Visits the host's Python objects, for the garbage collector. */
int tv_host_traverse(tv_host *h, visitproc visit, void *arg);

#endif
