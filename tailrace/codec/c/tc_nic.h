/* The C interface of a host's NIC: arriving frames are passed to Python, which
 * returns packets to send.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A NIC in Python (tailrace.codec.nic) exchanges header field values as
 * integers, as tailrace.codec.calls describes; tc_codec parses and builds the
 * frames here. A NIC with a method on_frame gets the bytes of frames instead.
 *
 * A tc_nic is the Python object Port(codec, nic) of the extension
 * tailrace_codec (tc_python.c). It connects a NIC to a wire, the link of the
 * NIC's host; the code that owns the wire calls it from C or Python. A result
 * of -1 means that a Python exception is set.
 */
#ifndef TC_NIC_H
#define TC_NIC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tc_frame.h"

typedef struct tc_nic tc_nic;

/* The Python type Port, whose instances are tc_nic. */
extern PyTypeObject tc_nic_type;

/* Passes an arriving frame to the NIC. Returns 0 or -1. */
int tc_nic_arrive(tc_nic *n, uint64_t now_ns, const tc_frame *frame);

/* Asks the NIC for a frame to send. Returns 1: it is in *out; 0: there is none
 * before *next_ns (later than now, or TC_NEVER) unless a frame arrives; -1. */
int tc_nic_depart(tc_nic *n, uint64_t now_ns, tc_departure *out,
                  uint64_t *next_ns);

/* Whether the NIC has nothing left to do: 1, 0, -1. */
int tc_nic_idle(tc_nic *n);

#endif
