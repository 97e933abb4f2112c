/* A host's NIC as C sees it: Python is told of what arrives, and asked for what
 * departs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A NIC (tailrace.codec.nic) takes and gives the numbers in frames, as
 * tailrace.codec.calls describes; frames are read and made here, by tc_codec.
 * One that has a method on_frame is handed frames as they are instead.
 *
 * A port is the Python object Port(codec, nic) of the extension
 * tailrace_codec (tc_python.c); whoever owns the wire calls it from C or from
 * Python. A result of -1 means that a Python exception is set.
 */
#ifndef TC_NIC_H
#define TC_NIC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tc_frame.h"

typedef struct tc_nic tc_nic;

/* The type Port: a tc_nic is its instance. */
extern PyTypeObject tc_nic_type;

/* A frame has arrived. 0, -1. */
int tc_nic_arrive(tc_nic *n, uint64_t now_ns, const tc_frame *frame);

/* Asks for a frame. 1: there is one, in *out; 0: there is none, and none
 * before *next_ns (TC_NEVER, or later than now) unless something arrives;
 * -1. */
int tc_nic_depart(tc_nic *n, uint64_t now_ns, tc_departure *out,
                  uint64_t *next_ns);

/* Whether it has nothing left to do: 1, 0, -1. */
int tc_nic_idle(tc_nic *n);

#endif
