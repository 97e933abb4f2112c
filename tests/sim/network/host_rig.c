/* A host of the virtual network alone: its wires are lists of frames.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the wires of tv.h, so that tests see each call and each frame
 * of the host port; host_rig.py has the Python side.
 */
#include "tv_host.h"

#include <string.h>

#define RIG "host_rig.rig"

typedef struct arrival {
    uint64_t time_ps;
    uint32_t len, virt;
    int lost;
    uint8_t *data;
} arrival;

struct tv_wire {
    arrival *frames;         /* in: what arrives, by time */
    size_t first, count;
    PyObject *sent;          /* out: list of what was sent */
    uint64_t rate_bps, delay_ps;
};

typedef struct rig {
    tv_wire in, out;
    tv_host *host;
} rig;

uint64_t tv_wire_next(const tv_wire *w)
{
    return w->first < w->count ? w->frames[w->first].time_ps : TC_NEVER;
}

int tv_wire_take(tv_wire *w, tc_frame *out)
{
    const arrival *a = &w->frames[w->first++];
    *out = (tc_frame){a->time_ps, a->len, a->virt, a->data};
    return !a->lost;
}

int tv_wire_send(tv_wire *w, uint64_t now_ps, uint64_t arrival_ps,
                 const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                 uint32_t tail_len, uint32_t virt)
{
    PyObject *a = PyBytes_FromStringAndSize((const char *)head, head_len);
    if (a)
        PyBytes_ConcatAndDel(
            &a, PyBytes_FromStringAndSize((const char *)tail, tail_len));
    if (!a)
        return -1;
    PyObject *item = Py_BuildValue("(KKNI)", (unsigned long long)now_ps,
                                   (unsigned long long)arrival_ps, a, virt);
    if (!item)
        return -1;
    int bad = PyList_Append(w->sent, item);
    Py_DECREF(item);
    return bad;
}

uint64_t tv_wire_rate_bps(const tv_wire *w)
{
    return w->rate_bps;
}

uint64_t tv_wire_delay_ps(const tv_wire *w)
{
    return w->delay_ps;
}

static void rig_free(PyObject *capsule)
{
    rig *r = PyCapsule_GetPointer(capsule, RIG);
    tv_host_free(r->host);
    for (size_t i = 0; i < r->in.count; i++)
        PyMem_Free(r->in.frames[i].data);
    PyMem_Free(r->in.frames);
    Py_XDECREF(r->out.sent);
    PyMem_Free(r);
}

static PyObject *make(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long rate_bps, delay_ps;
    if (!PyArg_ParseTuple(args, "KK", &rate_bps, &delay_ps))
        return NULL;
    rig *r = PyMem_Calloc(1, sizeof *r);
    if (!r)
        return PyErr_NoMemory();
    r->out.rate_bps = rate_bps;
    r->out.delay_ps = delay_ps;
    r->out.sent = PyList_New(0);
    r->host = tv_host_new(&r->in, &r->out);
    PyObject *capsule = PyCapsule_New(r, RIG, rig_free);
    if (!capsule || !r->out.sent || !r->host)
        Py_CLEAR(capsule);
    return capsule;
}

/* The rig that every call's first argument is, NULL with an exception. */
static rig *rig_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, RIG);
}

static PyObject *none_unless(int bad)
{
    if (bad)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *attach(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *port;
    rig *r;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &port) ||
        !(r = rig_of(capsule)))
        return NULL;
    return none_unless(tv_host_attach(r->host, port));
}

static PyObject *arrive(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    unsigned long long time_ps;
    const char *data;
    Py_ssize_t len;
    unsigned int virt;
    int lost;
    rig *r;
    if (!PyArg_ParseTuple(args, "OKy#Ip", &capsule, &time_ps, &data, &len,
                          &virt, &lost) ||
        !(r = rig_of(capsule)))
        return NULL;
    size_t size = (r->in.count + 1) * sizeof *r->in.frames;
    arrival *grown = PyMem_Realloc(r->in.frames, size);
    uint8_t *copy = PyMem_Malloc((size_t)len); /* exactly: overruns show */
    if (grown)
        r->in.frames = grown;
    if (!grown || !copy) {
        PyMem_Free(copy);
        return PyErr_NoMemory();
    }
    memcpy(copy, data, (size_t)len);
    grown[r->in.count++] =
        (arrival){time_ps, (uint32_t)len, virt, lost, copy};
    Py_RETURN_NONE;
}

static PyObject *run(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    unsigned long long end_ps;
    rig *r;
    if (!PyArg_ParseTuple(args, "OK", &capsule, &end_ps) ||
        !(r = rig_of(capsule)))
        return NULL;
    int events = tv_host_run(r->host, end_ps);
    return events < 0 ? NULL : PyLong_FromLong(events);
}

static PyObject *poll(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    unsigned long long now_ps;
    rig *r;
    if (!PyArg_ParseTuple(args, "OK", &capsule, &now_ps) ||
        !(r = rig_of(capsule)))
        return NULL;
    return none_unless(tv_host_poll(r->host, now_ps));
}

static PyObject *set_rate(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    unsigned long long rate_bps;
    rig *r;
    if (!PyArg_ParseTuple(args, "OK", &capsule, &rate_bps) ||
        !(r = rig_of(capsule)))
        return NULL;
    r->out.rate_bps = rate_bps;
    Py_RETURN_NONE;
}

static PyObject *next_event(PyObject *module, PyObject *capsule)
{
    (void)module;
    rig *r = rig_of(capsule);
    return r ? PyLong_FromUnsignedLongLong(tv_host_next(r->host)) : NULL;
}

static PyObject *last_frame(PyObject *module, PyObject *capsule)
{
    (void)module;
    rig *r = rig_of(capsule);
    return r ? PyLong_FromUnsignedLongLong(tv_host_last_ps(r->host)) : NULL;
}

static PyObject *idle(PyObject *module, PyObject *capsule)
{
    (void)module;
    rig *r = rig_of(capsule);
    int truth = r ? tv_host_idle(r->host) : -1;
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

static PyObject *sent(PyObject *module, PyObject *capsule)
{
    (void)module;
    rig *r = rig_of(capsule);
    return r ? Py_NewRef(r->out.sent) : NULL;
}

static PyMethodDef functions[] = {
    {"make", make, METH_VARARGS, "make(rate_bps, delay_ps) -> rig"},
    {"attach", attach, METH_VARARGS, "attach(rig, port)"},
    {"arrive", arrive, METH_VARARGS,
     "arrive(rig, time_ps, frame, virtual_bytes, lost)"},
    {"run", run, METH_VARARGS, "run(rig, end_ps) -> events"},
    {"poll", poll, METH_VARARGS, "poll(rig, now_ps)"},
    {"set_rate", set_rate, METH_VARARGS, "set_rate(rig, bps)"},
    {"next_event", next_event, METH_O, "next_event(rig) -> ps"},
    {"last_frame", last_frame, METH_O, "last_frame(rig) -> ps"},
    {"idle", idle, METH_O, "idle(rig) -> bool"},
    {"sent", sent, METH_O,
     "sent(rig) -> [(now_ps, arrival_ps, frame, virtual_bytes)]"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "host_rig",
                                        NULL, -1, functions, NULL, NULL, NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_host_rig(void)
{
    return PyModule_Create(&definition);
}
