/* Net's methods that assemble the network and inject and read frames.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_host.h"
#include "tv_python.h"

#include <stdlib.h>

/* The index of a new node, which is added to the network; NULL: it is freed. */
static PyObject *added(tv_node *n)
{
    if (tv_net_add_node(n->net, n) < 0) {
        tv_node_free(n);
        return NULL;
    }
    return PyLong_FromUnsignedLong(n->index);
}

/* add_switch(name, handle, cpu_port or -1) -> node index; handle is the address
 * of the tr_switch */
static PyObject *add_switch(tv_object *self, PyObject *args)
{
    const char *name;
    unsigned long long handle;
    int cpu_port;
    if (!PyArg_ParseTuple(args, "sKi", &name, &handle, &cpu_port))
        return NULL;
    tv_node *n = tv_node_new(&self->net, name);
    if (!n)
        return NULL;
    n->core = (tr_switch *)(uintptr_t)handle;
    n->cpu_port = (uint32_t)cpu_port;
    n->out = calloc(TR_MAX_PORTS, sizeof *n->out);
    if (!n->out) {
        tv_node_free(n);
        return PyErr_NoMemory();
    }
    PyObject *index = added(n);
    if (index)
        tr_set_lost(n->core, tv_node_lost, n); /* counts dropped data frames */
    return index;
}

/* add_absent(name, rank) -> index of a node that belongs to another rank (a
 * process that runs another part of the network) */
static PyObject *add_absent(tv_object *self, PyObject *args)
{
    const char *name;
    unsigned rank;
    if (!PyArg_ParseTuple(args, "sI", &name, &rank))
        return NULL;
    tv_node *n = tv_node_new(&self->net, name);
    if (!n)
        return NULL;
    n->rank = rank;
    return added(n);
}

/* add_host(name) -> node index; its two wires are added next, the outgoing wire
 * first */
static PyObject *add_host(tv_object *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    tv_node *n = tv_node_new(&self->net, name);
    return n ? added(n) : NULL;
}

/* Attaches a wire to those of its two nodes that this rank has; 0, -1. */
static int connect(tv_node *source, tv_node *target, tv_wire *w)
{
    uint32_t rank = tv_ranks_own(w->net->ranks);
    w->absent = target->rank != rank;
    if (!w->absent && tv_node_add_in(target, w) < 0)
        return -1;
    if (source->rank != rank)
        return 0;
    if (source->core) {
        source->out[w->source_port] = w;
        tr_port_rate(source->core, w->source_port, w->rate_bps);
        tr_port_delay(source->core, w->source_port, w->delay_ps);
        return 0;
    }
    source->host_out = w;
    return 0;
}

/* add_wire(source node, source port, target node, target port, rate_bps,
 * delay_ps) -> index of a wire, one direction of a link */
static PyObject *add_wire(tv_object *self, PyObject *args)
{
    tv_net *net = &self->net;
    unsigned source, source_port, target, target_port;
    unsigned long long rate_bps, delay_ps;
    if (!PyArg_ParseTuple(args, "IIIIKK", &source, &source_port, &target,
                          &target_port, &rate_bps, &delay_ps))
        return NULL;
    if (source >= net->n_nodes || target >= net->n_nodes ||
        source_port >= TR_MAX_PORTS || target_port >= TR_MAX_PORTS) {
        PyErr_SetString(PyExc_IndexError, "no such node or port");
        return NULL;
    }
    tv_wire *w = tv_wire_new(net);
    if (!w)
        return NULL;
    w->source = source;
    w->source_port = source_port;
    w->target = target;
    w->target_port = target_port;
    w->rate_bps = rate_bps;
    w->delay_ps = delay_ps;
    if (tv_net_add_wire(net, w) < 0) {
        tv_wire_free(w);
        return NULL;
    }
    tv_node *from = net->nodes[source], *to = net->nodes[target];
    if (connect(from, to, w) < 0)
        return NULL;
    /* a host is created when it has both of its wires */
    tv_node *host = to->core ? from : to;
    if (!host->core && !host->host && host->host_out && host->n_in &&
        !(host->host = tv_host_new(host->in[0], host->host_out)))
        return NULL;
    return PyLong_FromUnsignedLong(w->index);
}

/* attach(host index, port of its NIC) */
static PyObject *attach(tv_object *self, PyObject *args)
{
    unsigned node;
    PyObject *port;
    if (!PyArg_ParseTuple(args, "IO", &node, &port))
        return NULL;
    tv_node *n = tv_py_host(self, node);
    if (!n || tv_host_attach(n->host, port) < 0)
        return NULL;
    n->attached = 1;
    Py_RETURN_NONE;
}

/* set_formats(local_type, skipped, trimmed, shims, bths): how to parse frames,
 * see tv_formats in tv_net.h. A shim is a header after the project's EtherType.
 * skipped has a bit per subtype, trimmed a bit per DSCP; shims is a list of
 * (subtype, bytes, count_at, step, next_at), bths (base
 * transport headers) a list of (port, psn_at) */
static PyObject *set_formats(tv_object *self, PyObject *args)
{
    tv_formats f = {0};
    unsigned long long trimmed;
    PyObject *shims, *bths;
    if (!PyArg_ParseTuple(args, "IIKO!O!", &f.local_type, &f.skipped,
                          &trimmed, &PyList_Type, &shims, &PyList_Type,
                          &bths))
        return NULL;
    f.trimmed = trimmed;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(shims); i++) {
        unsigned subtype;
        tv_shim s;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(shims, i), "Ibbbb", &subtype,
                              &s.bytes, &s.count_at, &s.step, &s.next_at))
            return NULL;
        if (subtype >= TV_SHIMS || s.count_at >= s.bytes ||
            s.next_at + 2 > s.bytes) {
            PyErr_Format(PyExc_ValueError, "malformed shim of subtype %u",
                         subtype);
            return NULL;
        }
        f.shim[subtype] = s;
    }
    if (PyList_GET_SIZE(bths) > (Py_ssize_t)TV_BTHS) {
        PyErr_Format(PyExc_ValueError, "expected at most %u elements in bths",
                     TV_BTHS);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(bths); i++)
        if (!PyArg_ParseTuple(PyList_GET_ITEM(bths, i), "II",
                              &f.bth[i].port, &f.bth[i].psn_at))
            return NULL;
    self->net.formats = f;
    Py_RETURN_NONE;
}

/* Schedules the node's next event; None, or NULL if rc is negative. */
static PyObject *rescheduled(tv_node *n, int rc)
{
    tv_schedule_lower(&n->net->schedule, n->index, tv_node_next(n));
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* inject(switch, port, frame): a frame arrives now at a port without a wire */
static PyObject *inject(tv_object *self, PyObject *args)
{
    unsigned node, port;
    Py_buffer frame;
    if (!PyArg_ParseTuple(args, "IIy*", &node, &port, &frame))
        return NULL;
    tv_node *n = tv_py_switch(self, node);
    int rc = !n ? -1
                : tv_node_inject(n, port, frame.buf, (uint32_t)frame.len,
                                 self->net.now_ps);
    PyBuffer_Release(&frame);
    return n ? rescheduled(n, rc) : NULL;
}

/* settle(switch): after a change of the switch's state, handles its due events,
 * and puts the frames that it sends on wires */
static PyObject *settle(tv_object *self, PyObject *args)
{
    unsigned node;
    if (!PyArg_ParseTuple(args, "I", &node))
        return NULL;
    tv_node *n = tv_py_switch(self, node);
    if (!n)
        return NULL;
    tr_run(n->core, self->net.now_ps);
    return rescheduled(n, tv_node_settle(n, self->net.now_ps));
}

/* to_cpu(switch) -> removes and returns the frames sent to the switch's CPU
 * port, oldest first */
static PyObject *to_cpu(tv_object *self, PyObject *args)
{
    unsigned node;
    if (!PyArg_ParseTuple(args, "I", &node))
        return NULL;
    tv_node *n = tv_py_switch(self, node);
    PyObject *frames = n ? PyList_New(0) : NULL;
    while (frames && n->cpu_first) {
        tv_cpu_frame *f = n->cpu_first;
        PyObject *frame =
            PyBytes_FromStringAndSize((const char *)f->data, f->len);
        if (!frame || PyList_Append(frames, frame) < 0)
            Py_CLEAR(frames);
        Py_XDECREF(frame);
        n->cpu_first = f->next;
        n->cpu_waiting--;
        free(f);
    }
    return frames;
}

PyMethodDef tv_py_build_methods[] = {
    {"add_switch", (PyCFunction)add_switch, METH_VARARGS, NULL},
    {"add_absent", (PyCFunction)add_absent, METH_VARARGS, NULL},
    {"add_host", (PyCFunction)add_host, METH_VARARGS, NULL},
    {"add_wire", (PyCFunction)add_wire, METH_VARARGS, NULL},
    {"attach", (PyCFunction)attach, METH_VARARGS, NULL},
    {"set_formats", (PyCFunction)set_formats, METH_VARARGS, NULL},
    {"inject", (PyCFunction)inject, METH_VARARGS, NULL},
    {"settle", (PyCFunction)settle, METH_VARARGS, NULL},
    {"to_cpu", (PyCFunction)to_cpu, METH_VARARGS, NULL},
    {0},
};
