/* Net's methods that observe: counts, traces, taps, captures, samples, paths.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_python.h"

#include <stdlib.h>

/* up(wire) -> whether the wire (one direction of a link) is up */
static PyObject *wire_up(tv_object *self, PyObject *args)
{
    unsigned wire;
    if (!PyArg_ParseTuple(args, "I", &wire))
        return NULL;
    const tv_wire *w = tv_py_wire(self, wire);
    return w ? PyBool_FromLong(w->up) : NULL;
}

/* traffic() -> counts of frames: entered switches, delivered by wires, lost on
 * wires that were down, lost by drop faults, discarded in switches by blackhole
 * faults, sent to a port without a wire */
static PyObject *traffic(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    const tv_net *net = &self->net;
    uint64_t entered = 0, received = 0, cut = 0, dropped = 0, swallowed = 0,
             unwired = 0;
    for (uint32_t i = 0; i < net->n_nodes; i++) {
        entered += net->nodes[i]->entered.frames;
        swallowed += net->nodes[i]->swallowed.frames;
        unwired += net->nodes[i]->unwired.frames;
    }
    for (uint32_t i = 0; i < net->n_wires; i++) {
        received += net->wires[i]->received.frames;
        cut += net->wires[i]->lost[TV_LOSS_CUT].frames;
        dropped += net->wires[i]->lost[TV_LOSS_DROP].frames;
    }
    return Py_BuildValue("KKKKKK", entered, received, cut, dropped, swallowed,
                         unwired);
}

static void store_le(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

/* trace() -> for each wire by index: frames delivered, bytes of virtual
 * payload, both halves of the trace hash (of all frames delivered, with their
 * times: tv_trace.h); 64 bits each, little-endian. Zeros for wires that end in
 * another rank (a process that runs another part of the network). */
static PyObject *trace(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    const tv_net *net = &self->net;
    PyObject *hashes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)net->n_wires * 32);
    if (!hashes)
        return NULL;
    uint8_t *p = (uint8_t *)PyBytes_AS_STRING(hashes);
    for (uint32_t i = 0; i < net->n_wires; i++, p += 32) {
        const tv_wire *w = net->wires[i];
        if (w->absent) {
            memset(p, 0, 32);
            continue;
        }
        store_le(p, w->received.frames);
        store_le(p + 8, w->received.virt);
        store_le(p + 16, w->mix.a);
        store_le(p + 24, w->mix.b);
    }
    return hashes;
}

/* tap(wire, function): calls function(event, now_ns, frame, virtual_bytes) for
 * each frame that is sent, received or lost on the wire */
static PyObject *tap(tv_object *self, PyObject *args)
{
    unsigned wire;
    PyObject *function;
    if (!PyArg_ParseTuple(args, "IO", &wire, &function))
        return NULL;
    tv_wire *w = tv_py_wire(self, wire);
    if (!w)
        return NULL;
    if (self->net.ranks) {
        tv_net_error("a tap needs the whole network: run it with one rank");
        return NULL;
    }
    self->net.taps += !w->tap; /* counts wires with a tap */
    Py_INCREF(function);
    Py_XSETREF(w->tap, function);
    w->inspects_arrivals = w->inspects_sends = 1;
    Py_RETURN_NONE;
}

/* log(a, b, [wire], [wire]): from now on logs packets between two IPv4
 * addresses on the wires of both lists, and non-IPv4 frames on those of the
 * second list */
static PyObject *log_flow(tv_object *self, PyObject *args)
{
    tv_net *net = &self->net;
    unsigned a, b;
    PyObject *lists[2];
    if (!PyArg_ParseTuple(args, "IIO!O!", &a, &b, &PyList_Type, &lists[0],
                          &PyList_Type, &lists[1]))
        return NULL;
    if (net->ranks || net->log) {
        tv_net_error(net->ranks ? "a log needs the whole network: run it "
                                  "with one rank"
                                : "there is a log already");
        return NULL;
    }
    net->log = calloc(1, sizeof *net->log);
    if (!net->log)
        return PyErr_NoMemory();
    net->log->a = a;
    net->log->b = b;
    for (int k = 0; k < 2; k++)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists[k]); i++) {
            unsigned long number =
                PyLong_AsUnsignedLong(PyList_GET_ITEM(lists[k], i));
            tv_wire *w = PyErr_Occurred() ? NULL
                                          : tv_py_wire(self, (unsigned)number);
            if (!w)
                return NULL;
            w->logged = (uint8_t)(k ? TV_LOGGED_NON_IP : TV_LOGGED_FLOW);
            w->inspects_arrivals = w->inspects_sends = 1;
        }
    Py_RETURN_NONE;
}

/* logged() -> removes and returns the records so far (tv_logged_frame) */
static PyObject *logged(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    tv_log *l = self->net.log;
    if (!l)
        return PyErr_Format(PyExc_ValueError, "nothing is logged");
    PyObject *records = PyBytes_FromStringAndSize((const char *)l->records,
                                                (Py_ssize_t)l->n);
    if (records)
        l->n = 0;
    return records;
}

/* capture(path, [(wire, name)]): writes frames that arrive to a pcapng file */
static PyObject *capture(tv_object *self, PyObject *args)
{
    PyObject *path, *wires;
    if (!PyArg_ParseTuple(args, "O&O!", PyUnicode_FSConverter, &path,
                          &PyList_Type, &wires))
        return NULL;
    tv_capture *c = tv_capture_new(&self->net, PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (!c)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(wires); i++) {
        unsigned number;
        const char *name;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(wires, i), "Is", &number,
                              &name))
            return NULL;
        tv_wire *w = tv_py_wire(self, number);
        if (!w || tv_capture_wire(c, w, name) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* record(packets): from now on records PFC frames, trimmed packets, losses and
 * recirculations; with `packets`, all frames */
static PyObject *record(tv_object *self, PyObject *args)
{
    tv_net *net = &self->net;
    int packets;
    if (!PyArg_ParseTuple(args, "p", &packets))
        return NULL;
    if (net->ranks || net->recorder) {
        tv_net_error(net->ranks ? "a record needs the whole network: run it "
                                  "with one rank"
                                : "there is a record already");
        return NULL;
    }
    net->recorder = calloc(1, sizeof *net->recorder);
    if (!net->recorder)
        return PyErr_NoMemory();
    net->recorder->packets = (uint8_t)packets;
    for (uint32_t i = 0; i < net->n_wires; i++)
        net->wires[i]->inspects_arrivals = 1;
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (net->nodes[i]->core)
            tr_set_recirculated(net->nodes[i]->core, tv_node_recirculated,
                                net->nodes[i]);
    Py_RETURN_NONE;
}

/* recorded() -> the entries so far (tv_entry), and whether some were left
 * out */
static PyObject *recorded(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    const tv_recorder *r = self->net.recorder;
    if (!r)
        return PyErr_Format(PyExc_ValueError, "nothing is recorded");
    return Py_BuildValue("y#N", r->n ? (const char *)r->entries : "",
                         (Py_ssize_t)(r->n * sizeof *r->entries),
                         PyBool_FromLong(r->full));
}

/* watch(src, dst) -> index of a watch, which records from now on each arrival
 * at a switch of packets from one IPv4 address to another */
static PyObject *watch(tv_object *self, PyObject *args)
{
    tv_watch *t = calloc(1, sizeof *t);
    if (!t)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "II", &t->src, &t->dst)) {
        free(t);
        return NULL;
    }
    long number = 0;
    tv_watch **last = &self->net.watches;
    for (; *last; last = &(*last)->next)
        number++;
    *last = t;
    return PyLong_FromLong(number);
}

static int compare_sights(const void *x, const void *y)
{
    const tv_sight *a = x, *b = y;
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* watched(index) -> the arrivals that a watch has recorded, by time:
 * [(time_ps, switch, ingress port, psn or None)] */
static PyObject *watched(tv_object *self, PyObject *args)
{
    unsigned number;
    if (!PyArg_ParseTuple(args, "I", &number))
        return NULL;
    tv_watch *t = self->net.watches;
    while (t && number--)
        t = t->next;
    if (!t)
        return PyErr_Format(PyExc_IndexError, "no such watch");
    if (t->n)
        qsort(t->sights, t->n, sizeof *t->sights, compare_sights);
    PyObject *sights = PyList_New((Py_ssize_t)t->n);
    for (size_t i = 0; sights && i < t->n; i++) {
        const tv_sight *s = &t->sights[i];
        PyObject *psn = s->psn == UINT32_MAX
                            ? Py_NewRef(Py_None)
                            : PyLong_FromUnsignedLong(s->psn);
        PyObject *item =
            Py_BuildValue("KIIN", s->time_ps, s->node, s->port, psn);
        if (!item)
            Py_CLEAR(sights);
        else
            PyList_SET_ITEM(sights, (Py_ssize_t)i, item);
    }
    return sights;
}

/* sample(period_ps, [wire]): from now on samples the switch ports at which
 * these wires begin (see samples); discards earlier samples */
static PyObject *sample(tv_object *self, PyObject *args)
{
    tv_net *net = &self->net;
    unsigned long long period_ps;
    PyObject *wires;
    if (!PyArg_ParseTuple(args, "KO!", &period_ps, &PyList_Type, &wires))
        return NULL;
    Py_ssize_t n = PyList_GET_SIZE(wires);
    tv_sampler *s = calloc(1, sizeof *s);
    if (s) {
        s->wires = calloc((size_t)n + 1, sizeof *s->wires);
        s->tx_before = calloc((size_t)n + 1, sizeof *s->tx_before);
    }
    if (!s || !s->wires || !s->tx_before) {
        tv_sample_free(s);
        return PyErr_NoMemory();
    }
    s->n = (uint32_t)n;
    s->period_ps = period_ps;
    s->next_ps = net->now_ps;
    for (Py_ssize_t i = 0; i < n; i++) {
        unsigned long number =
            PyLong_AsUnsignedLong(PyList_GET_ITEM(wires, i));
        tv_wire *w = PyErr_Occurred() ? NULL
                                      : tv_py_wire(self, (unsigned)number);
        if (!w || !tv_py_switch(self, w->source)) {
            tv_sample_free(s);
            return NULL;
        }
        tr_port_state_t state;
        tr_port_state(net->nodes[w->source]->core, w->source_port, s->next_ps,
                      &state);
        s->wires[i] = w;
        s->tx_before[i] = state.tx_bytes;
    }
    tv_sample_free(net->sampler);
    net->sampler = s;
    Py_RETURN_NONE;
}

/* samples() -> four buffers: time_ps (64 bits) by sample; queue_bytes, tx_bytes
 * since the previous sample (32 bits) and paused (8 bits: a bit for each paused
 * priority) by sample and port */
static PyObject *samples(tv_object *self, PyObject *nothing)
{
    (void)nothing;
    const tv_sampler *s = self->net.sampler;
    if (!s)
        return PyErr_Format(PyExc_ValueError, "nothing is sampled");
    Py_ssize_t rows = (Py_ssize_t)s->rows, cells = rows * s->n;
    return Py_BuildValue("y#y#y#y#", s->time_ps, rows * 8, s->queue_bytes,
                         cells * 4, s->tx_bytes, cells * 4, s->paused, cells);
}

PyMethodDef tv_py_observe_methods[] = {
    {"up", (PyCFunction)wire_up, METH_VARARGS, NULL},
    {"traffic", (PyCFunction)traffic, METH_NOARGS, NULL},
    {"trace", (PyCFunction)trace, METH_NOARGS, NULL},
    {"tap", (PyCFunction)tap, METH_VARARGS, NULL},
    {"log", (PyCFunction)log_flow, METH_VARARGS, NULL},
    {"logged", (PyCFunction)logged, METH_NOARGS, NULL},
    {"capture", (PyCFunction)capture, METH_VARARGS, NULL},
    {"record", (PyCFunction)record, METH_VARARGS, NULL},
    {"recorded", (PyCFunction)recorded, METH_NOARGS, NULL},
    {"watch", (PyCFunction)watch, METH_VARARGS, NULL},
    {"watched", (PyCFunction)watched, METH_VARARGS, NULL},
    {"sample", (PyCFunction)sample, METH_VARARGS, NULL},
    {"samples", (PyCFunction)samples, METH_NOARGS, NULL},
    {0},
};
