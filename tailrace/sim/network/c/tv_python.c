/* The extension module: the type Net, its creation and end, and running it, in
 * windows (periods of time, tv.h).
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rank is one of the processes that run the network, each a part of it; a
 * meeting is an exchange of frames and times between all ranks.
 */
#include "tv_host.h"
#include "tv_python.h"

PyObject *tv_error_class;

/* ---- parts ---- */

static tv_node *node_of(tv_object *self, unsigned node, int is_switch)
{
    tv_net *net = &self->net;
    if (net->closed) {
        tv_net_error("the network is closed");
        return NULL;
    }
    if (node >= net->n_nodes ||
        (is_switch ? !net->nodes[node]->core : !net->nodes[node]->host)) {
        PyErr_Format(PyExc_IndexError, "node %u is no %s of this rank", node,
                     is_switch ? "switch" : "host");
        return NULL;
    }
    return net->nodes[node];
}

tv_node *tv_py_switch(tv_object *self, unsigned node)
{
    return node_of(self, node, 1);
}

tv_node *tv_py_host(tv_object *self, unsigned node)
{
    return node_of(self, node, 0);
}

tv_wire *tv_py_wire(tv_object *self, unsigned wire)
{
    if (wire >= self->net.n_wires) {
        PyErr_Format(PyExc_IndexError, "wire %u", wire);
        return NULL;
    }
    return self->net.wires[wire];
}

/* ---- creation and end ---- */

static PyObject *net_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!PyArg_ParseTuple(args, "") || (kwargs && PyDict_Size(kwargs)))
        return NULL;
    return type->tp_alloc(type, 0);
}

static int net_traverse(tv_object *self, visitproc visit, void *arg)
{
    tv_net *net = &self->net;
    Py_VISIT(Py_TYPE(self));
    for (uint32_t i = 0; i < net->n_wires; i++) {
        Py_VISIT(net->wires[i]->tap);
        for (tv_drop *d = net->wires[i]->drops; d; d = d->next)
            Py_VISIT(d->test);
    }
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        const tv_node *n = net->nodes[i];
        int rc = n->host ? tv_host_traverse(n->host, visit, arg) : 0;
        if (rc)
            return rc;
    }
    return net->ranks ? tv_ranks_traverse(net->ranks, visit, arg) : 0;
}

static int net_clear(tv_object *self)
{
    tv_net *net = &self->net;
    net->closed = 1;
    tv_watch_free(net->watches);
    net->watches = NULL;
    tv_sample_free(net->sampler);
    net->sampler = NULL;
    tv_log_free(net->log);
    net->log = NULL;
    tv_record_free(net->recorder);
    net->recorder = NULL;
    tv_net_clear(net);
    tv_ranks_free(net->ranks);
    net->ranks = NULL;
    return 0;
}

/* close(): writes the rest of captures. Switches are not used any more; counts
 * can still be read. */
static PyObject *net_close(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    for (uint32_t i = 0; !self->net.closed && i < self->net.n_nodes; i++)
        if (self->net.nodes[i]->core) {
            /* from now on the core reports nothing to the node */
            tr_set_lost(self->net.nodes[i]->core, NULL, NULL);
            tr_set_recirculated(self->net.nodes[i]->core, NULL, NULL);
        }
    self->net.closed = 1;
    if (tv_capture_close(&self->net) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void net_dealloc(tv_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (tv_capture_close(&self->net) < 0)
        PyErr_WriteUnraisable((PyObject *)self);
    net_clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* ---- running ---- */

/* poll(): from now on NICs may have new frames to send. */
static PyObject *net_poll(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    tv_net *net = &self->net;
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        tv_node *n = net->nodes[i];
        if (!n->attached)
            continue;
        if (tv_host_poll(n->host, net->now_ps) < 0)
            return NULL;
        /* the node's next event may now be earlier */
        tv_schedule_lower(&net->schedule, i, tv_node_next(n));
    }
    Py_RETURN_NONE;
}

/* run(limit_ps, stop_at_rest, mark) -> enum tv_stop: runs up to limit_ps, or
 * until at rest, or until `mark` events have been handled since the start. */
static PyObject *net_run(tv_object *self, PyObject *args)
{
    unsigned long long limit_ps, mark;
    int stop_at_rest;
    if (!PyArg_ParseTuple(args, "KpK", &limit_ps, &stop_at_rest, &mark))
        return NULL;
    if (self->net.closed) {
        tv_net_error("the network is closed");
        return NULL;
    }
    enum tv_stop stop = tv_net_run(&self->net, limit_ps, stop_at_rest, mark);
    return stop == TV_STOP_ERROR ? NULL : PyLong_FromLong(stop);
}

/* at_rest() -> whether no frame is under way and every NIC is idle */
static PyObject *net_at_rest(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    int rest = tv_net_at_rest(&self->net);
    return rest < 0 ? NULL : PyBool_FromLong(rest);
}

/* set_now(time_ps): moves the clock forward while the network does not run. */
static PyObject *net_set_now(tv_object *self, PyObject *args)
{
    unsigned long long now_ps;
    if (!PyArg_ParseTuple(args, "K", &now_ps))
        return NULL;
    if (now_ps > self->net.now_ps)
        self->net.now_ps = now_ps;
    /* between runs a frame may arrive at once: there is no window */
    self->net.least_arrival_ps = self->net.now_ps;
    Py_RETURN_NONE;
}

/* cut(time_ps): the current run ends before this time. */
static PyObject *net_cut(tv_object *self, PyObject *args)
{
    unsigned long long time_ps;
    if (!PyArg_ParseTuple(args, "K", &time_ps))
        return NULL;
    if (time_ps < self->net.limit_ps)
        self->net.limit_ps = time_ps;
    Py_RETURN_NONE;
}

/* set_stepwise(on): whether each window is a single instant */
static PyObject *net_set_stepwise(tv_object *self, PyObject *args)
{
    int stepwise;
    if (!PyArg_ParseTuple(args, "p", &stepwise))
        return NULL;
    self->net.stepwise = (uint8_t)stepwise;
    Py_RETURN_NONE;
}

/* set_ranks(transport, rank, ranks): this process is one of several that run
 * the network; to be called before anything is added. */
static PyObject *net_set_ranks(tv_object *self, PyObject *args)
{
    PyObject *transport;
    unsigned rank, count;
    if (!PyArg_ParseTuple(args, "OII", &transport, &rank, &count))
        return NULL;
    if (self->net.ranks || self->net.n_nodes || rank >= count) {
        PyErr_Format(PyExc_ValueError, "rank %u of %u", rank, count);
        return NULL;
    }
    self->net.ranks = tv_ranks_new(transport, rank, count);
    if (!self->net.ranks)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_now(tv_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->net.now_ps);
}

static PyObject *get_events(tv_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->net.events);
}

/* 0: not running; 1: in a window of several instants; 2: in a window of one
 * instant. */
static PyObject *get_running(tv_object *self, void *unused)
{
    (void)unused;
    const tv_net *net = &self->net;
    int instant = net->stepwise || net->taps;
    return PyLong_FromLong(net->running ? 1 + instant : 0);
}

/* This rank's counts: (meetings, frames and bytes sent to other ranks) */
static PyObject *get_rank_counts(tv_object *self, void *unused)
{
    (void)unused;
    tv_rank_counts counts = tv_ranks_counts(self->net.ranks);
    return Py_BuildValue("KKK", (unsigned long long)counts.meetings,
                         (unsigned long long)counts.frames,
                         (unsigned long long)counts.bytes);
}

static PyGetSetDef net_getset[] = {
    {"now_ps", (getter)get_now, NULL, NULL, NULL},
    {"events", (getter)get_events, NULL, NULL, NULL},
    {"rank_counts", (getter)get_rank_counts, NULL, NULL, NULL},
    {"running", (getter)get_running, NULL, NULL, NULL},
    {0},
};

static PyMethodDef run_methods[] = {
    {"close", (PyCFunction)net_close, METH_NOARGS, NULL},
    {"poll", (PyCFunction)net_poll, METH_NOARGS, NULL},
    {"run", (PyCFunction)net_run, METH_VARARGS, NULL},
    {"at_rest", (PyCFunction)net_at_rest, METH_NOARGS, NULL},
    {"cut", (PyCFunction)net_cut, METH_VARARGS, NULL},
    {"set_now", (PyCFunction)net_set_now, METH_VARARGS, NULL},
    {"set_ranks", (PyCFunction)net_set_ranks, METH_VARARGS, NULL},
    {"set_stepwise", (PyCFunction)net_set_stepwise, METH_VARARGS, NULL},
    {0},
};

/* ---- the module ---- */

static PyType_Slot net_slots[] = {
    {Py_tp_doc, "A virtual-time network; sim.network.network wraps it."},
    {Py_tp_new, net_new},
    {Py_tp_dealloc, net_dealloc},
    {Py_tp_traverse, net_traverse},
    {Py_tp_clear, net_clear},
    {Py_tp_methods, run_methods},
    {Py_tp_getset, net_getset},
    {0, NULL},
};

static PyType_Spec net_spec = {
    .name = "tailrace_virtual.Net",
    .basicsize = sizeof(tv_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = net_slots,
};

/* Adds methods to a heap type that is not yet in use. */
static int add_methods(PyObject *type, PyMethodDef *methods)
{
    for (; methods->ml_name; methods++) {
        PyObject *method =
            PyDescr_NewMethod((PyTypeObject *)type, methods);
        if (!method)
            return -1;
        int rc = PyObject_SetAttrString(type, methods->ml_name, method);
        Py_DECREF(method);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* set_error(class): the exception that errors of the network raise. */
static PyObject *set_error(PyObject *module, PyObject *class)
{
    (void)module;
    Py_INCREF(class);
    Py_XSETREF(tv_error_class, class);
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"set_error", set_error, METH_O, NULL},
    /* messages between ranks through shared memory: tv_python.h */
    {"shared_bytes", tv_shared_bytes, METH_O, NULL},
    {"exchange", tv_shared_exchange, METH_VARARGS, NULL},
    {0},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tailrace_virtual",
    .m_doc = "The virtual-time network in C.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit_tailrace_virtual(void)
{
    PyObject *module = PyModule_Create(&module_def);
    PyObject *type = module ? PyType_FromSpec(&net_spec) : NULL;
    if (!type || add_methods(type, tv_py_build_methods) < 0 ||
        add_methods(type, tv_py_fault_methods) < 0 ||
        add_methods(type, tv_py_observe_methods) < 0 ||
        add_methods(type, tv_py_account_methods) < 0 ||
        PyModule_AddObjectRef(module, "Net", type) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
