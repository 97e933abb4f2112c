/* Net's methods for faults.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_python.h"

#include <stdlib.h>

/* set_rate(wire, rate_bps); a wire is one direction of a link */
static PyObject *set_rate(tv_object *self, PyObject *args)
{
    unsigned wire;
    unsigned long long bps;
    if (!PyArg_ParseTuple(args, "IK", &wire, &bps))
        return NULL;
    tv_wire *w = tv_py_wire(self, wire);
    if (!w)
        return NULL;
    if (self->net.closed) {
        tv_net_error("the network is closed");
        return NULL;
    }
    w->rate_bps = bps;
    tr_switch *core = self->net.nodes[w->source]->core;
    if (core)
        tr_port_rate(core, w->source_port, bps);
    Py_RETURN_NONE;
}

/* set_up(wire, up): takes a wire up, or down if `up` is false */
static PyObject *set_up(tv_object *self, PyObject *args)
{
    unsigned wire;
    int up;
    if (!PyArg_ParseTuple(args, "Ip", &wire, &up))
        return NULL;
    tv_wire *w = tv_py_wire(self, wire);
    if (!w)
        return NULL;
    if (up)
        w->up = 1;
    else if (w->up)
        tv_wire_down(w);
    Py_RETURN_NONE;
}

/* drop(wire, threshold, all, random state, from_ps, until_ps, other_types,
 * subtypes, UDP port or 0, only_data, test or None): adds a tv_drop, which loses
 * matching frames from from_ps to until_ps with probability threshold / 2^64, or
 * each of them if `all` is true. other_types, subtypes and UDP port are the
 * fields of a tv_match, which says which frames match. If `test` is given, it
 * decides instead: test(frame) -> whether the frame matches. */
static PyObject *drop(tv_object *self, PyObject *args)
{
    unsigned wire, udp_port;
    unsigned long long threshold, state, from_ps, until_ps, subtypes;
    int all, other_types, only_data;
    PyObject *test;
    if (!PyArg_ParseTuple(args, "IKpKKKpKIpO", &wire, &threshold, &all, &state,
                          &from_ps, &until_ps, &other_types, &subtypes,
                          &udp_port, &only_data, &test))
        return NULL;
    tv_wire *w = tv_py_wire(self, wire);
    if (!w)
        return NULL;
    tv_drop *d = calloc(1, sizeof *d);
    if (!d)
        return PyErr_NoMemory();
    d->threshold = threshold;
    d->all = (uint8_t)all;
    d->random = state;
    d->from_ps = from_ps;
    d->until_ps = until_ps;
    d->match.other_types = (uint8_t)other_types;
    d->match.subtypes = subtypes;
    d->match.udp_port = udp_port;
    d->only_data = (uint8_t)only_data;
    d->test = test == Py_None ? NULL : Py_NewRef(test);
    d->next = w->drops;
    w->drops = d;
    w->inspects_arrivals = 1;
    Py_RETURN_NONE;
}

/* blackhole(switch, pairs, from_ps, until_ps): the switch discards the packets
 * between these pairs of IPv4 addresses; pairs is a buffer of 64-bit numbers
 * src << 32 | dst */
static PyObject *blackhole(tv_object *self, PyObject *args)
{
    unsigned node;
    unsigned long long from_ps, until_ps;
    Py_buffer pairs;
    if (!PyArg_ParseTuple(args, "Iy*KK", &node, &pairs, &from_ps, &until_ps))
        return NULL;
    tv_node *n = tv_py_switch(self, node);
    int rc = n ? tv_blackhole_add(n, pairs.buf, (uint32_t)(pairs.len / 8),
                                  from_ps, until_ps)
               : -1;
    PyBuffer_Release(&pairs);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef tv_py_fault_methods[] = {
    {"set_rate", (PyCFunction)set_rate, METH_VARARGS, NULL},
    {"set_up", (PyCFunction)set_up, METH_VARARGS, NULL},
    {"drop", (PyCFunction)drop, METH_VARARGS, NULL},
    {"blackhole", (PyCFunction)blackhole, METH_VARARGS, NULL},
    {0},
};
