/* The Python type Net: wraps a tv_net; identifies nodes and wires by index.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TV_PYTHON_H
#define TV_PYTHON_H

#include "tv_net.h"

typedef struct tv_object {
    PyObject_HEAD
    tv_net net;
} tv_object;

/* Return the switch, host or wire with an index; NULL with an exception if
 * there is none, or the network is closed. */
tv_node *tv_py_switch(tv_object *self, unsigned node);
tv_node *tv_py_host(tv_object *self, unsigned node);
tv_wire *tv_py_wire(tv_object *self, unsigned wire);

/* Ranks are processes, each of which runs a part of the network.
 * shared_bytes(ranks) -> size in bytes of the memory that this number of ranks
 * shares.
 * exchange(memory, rank, ranks, [socket descriptor], messages) -> messages,
 * both lists of bytes by rank; or None if another rank has ended, so that the
 * other end of one of the sockets is closed (tv_shared.c). */
PyObject *tv_shared_bytes(PyObject *module, PyObject *ranks);
PyObject *tv_shared_exchange(PyObject *module, PyObject *args);

/* The methods of Net, by the file that defines them: assembly of the network,
 * faults, observation, accounts. */
extern PyMethodDef tv_py_build_methods[];
extern PyMethodDef tv_py_fault_methods[];
extern PyMethodDef tv_py_observe_methods[];
extern PyMethodDef tv_py_account_methods[];

#endif
