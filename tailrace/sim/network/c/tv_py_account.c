/* Net's methods that account for all frames and their payload bytes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_python.h"

static PyObject *switch_counts(tv_node *n)
{
    tr_account a;
    tr_account_read(n->core, &a);
    return Py_BuildValue(
        "K(KK)(KK)(KK)(KK)(KK)(KK)(KK)(KK)(KK)(KK)", a.cut_virt, a.rx_frames,
        a.rx_virt, a.made_frames, a.made_virt, a.tx_frames, a.tx_virt,
        a.dropped_frames, a.dropped_virt, a.held_frames, a.held_virt,
        n->entered.frames, n->entered.virt, n->unwired.frames,
        n->unwired.virt, n->to_cpu.frames, n->to_cpu.virt,
        n->swallowed.frames, n->swallowed.virt, n->packet_outs.frames,
        n->packet_outs.virt);
}

static PyObject *wire_counts(const tv_wire *w)
{
    tv_count flight = {0, 0};
    tv_kinds of_data = {0, 0};
    tv_wire_flight(w, &flight, &of_data);
    const tv_count *cut = &w->lost[TV_LOSS_CUT];
    const tv_count *dropped = &w->lost[TV_LOSS_DROP];
    return Py_BuildValue("(KK)(KK)(KK)(KK)(KK)", w->sent.frames, w->sent.virt,
                         w->received.frames, w->received.virt, cut->frames,
                         cut->virt, dropped->frames, dropped->virt,
                         flight.frames, flight.virt);
}

/* account() -> ([counts of each switch], [counts of each wire]), by index.
 * For a switch: bytes of virtual payload that the core truncated; then (frames,
 * payload bytes) that the core has counted as in, made (clones, copies and
 * pause frames), out, dropped and held; and those handed to the core, sent to a
 * port without a wire, sent to the CPU port, dropped by blackholes (faults),
 * and entered as packet-outs.
 * For a wire (one direction of a link): (frames, payload bytes) sent,
 * delivered, lost when the link was down, lost by drop faults, under way. */
static PyObject *account(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    tv_net *net = &self->net;
    if (net->closed) {
        tv_net_error("the network is closed");
        return NULL;
    }
    PyObject *switches = PyList_New(0), *wires = PyList_New(0);
    int rc = switches && wires ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < net->n_nodes; i++) {
        if (!net->nodes[i]->core)
            continue;
        PyObject *item = switch_counts(net->nodes[i]);
        rc = item ? PyList_Append(switches, item) : -1;
        Py_XDECREF(item);
    }
    for (uint32_t i = 0; rc == 0 && i < net->n_wires; i++) {
        PyObject *item = wire_counts(net->wires[i]);
        rc = item ? PyList_Append(wires, item) : -1;
        Py_XDECREF(item);
    }
    if (rc < 0) {
        Py_XDECREF(switches);
        Py_XDECREF(wires);
        return NULL;
    }
    return Py_BuildValue("NN", switches, wires);
}

/* data() -> five counts of data frames that no host received: dropped by
 * switches, with payload; the same, trimmed (a switch cut off the payload);
 * lost to faults, with payload; the same, trimmed; still on wires or in
 * switches */
static PyObject *data(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    tv_net *net = &self->net;
    tv_kinds dropped = {0, 0}, lost = {0, 0}, flight = {0, 0};
    tv_count frames = {0, 0};
    if (net->closed) {
        tv_net_error("the network is closed");
        return NULL;
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        const tv_node *n = net->nodes[i];
        dropped.data += n->dropped.data;
        dropped.trimmed += n->dropped.trimmed;
        lost.data += n->swallowed_data.data;
        lost.trimmed += n->swallowed_data.trimmed;
        if (n->core) {
            tr_account a;
            tr_account_read(n->core, &a);
            flight.data += a.held_data;
        }
    }
    for (uint32_t i = 0; i < net->n_wires; i++) {
        const tv_wire *w = net->wires[i];
        lost.data += w->lost_data.data;
        lost.trimmed += w->lost_data.trimmed;
        tv_wire_flight(w, &frames, &flight);
    }
    return Py_BuildValue("KKKKK", dropped.data, dropped.trimmed, lost.data,
                         lost.trimmed, flight.data);
}

PyMethodDef tv_py_account_methods[] = {
    {"data", (PyCFunction)data, METH_NOARGS, NULL},
    {"account", (PyCFunction)account, METH_NOARGS, NULL},
    {0},
};
