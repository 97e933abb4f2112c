/* A host in the network: when its NIC is called, and the serialisation of what
 * the NIC sends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A host has three kinds of events: a frame arrives, its own wire becomes free,
 * a timer of the NIC runs off. What arrives at an instant is handed in first;
 * then, if the wire is free, the NIC is asked for a frame. The NIC's clock is
 * that of the network in whole nanoseconds, rounded down.
 *
 * All functions want the interpreter's lock.
 */
#ifndef TV_HOST_H
#define TV_HOST_H

#include "tv.h"

/* A host at the ends of two wires, without a NIC: it is silent, and what
 * arrives is gone. NULL with an exception set: no memory. */
tv_host *tv_host_new(tv_wire *in, tv_wire *out);

void tv_host_free(tv_host *h);

/* Puts a NIC into the host, by its port (tc_nic.h), in place of another one.
 * 0; -1 with an exception set: it is no port, or the other one is being
 * called. */
int tv_host_attach(tv_host *h, PyObject *port);

/* Time of the next event, arrivals included; TC_NEVER: there is none. */
uint64_t tv_host_next(const tv_host *h);

/* Handles all events before end_ps. How many there were: arrivals, and times
 * at which the NIC was asked for a frame. -1 with an exception set: what a NIC
 * or a tap raised. */
int tv_host_run(tv_host *h, uint64_t end_ps);

/* Asks the NIC whether it has nothing left to do: 1, 0; -1 with an exception
 * set. */
int tv_host_idle(tv_host *h);

/* The NIC may have got something to send: it will be asked at now_ps, or when
 * the wire is free. The NIC's clock never runs backwards: where it has been
 * told of a later time, it is asked then. 0. */
int tv_host_poll(tv_host *h, uint64_t now_ps);

/* Time of the last frame that was taken off the wire or sent, 0: none yet. */
uint64_t tv_host_last_ps(const tv_host *h);

/* Visits what the host holds of Python, for the cycle collector. */
int tv_host_traverse(tv_host *h, visitproc visit, void *arg);

#endif
