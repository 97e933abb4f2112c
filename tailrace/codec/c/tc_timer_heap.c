/* The type Alarms of tailrace_codec: who is to be looked at, and when.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A heap by time; equal times ring in the order in which they were set. NICs
 * set one for nearly every packet, which as a heap of Python's tuples took a
 * seventh of the time of a run whose flows are paced.
 */
#include "tc_nic_port.h"

typedef struct tc_alarm {
    uint64_t time_ns, number;
    int64_t who;
} tc_alarm;

typedef struct alarms {
    PyObject_HEAD
    tc_alarm *heap;
    size_t count, room;
    uint64_t set;             /* so far */
    uint64_t due_ns;          /* of the last that was taken */
} alarms;

static int before(const tc_alarm *a, const tc_alarm *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns
                                    : a->number < b->number;
}

/* 0, -1. */
static int grow(alarms *a)
{
    size_t room = a->room ? 2 * a->room : 16;
    tc_alarm *heap = PyMem_Realloc(a->heap, room * sizeof *heap);
    if (!heap) {
        PyErr_NoMemory();
        return -1;
    }
    a->heap = heap;
    a->room = room;
    return 0;
}

static void put(alarms *a, tc_alarm one)
{
    size_t at = a->count++;
    for (; at > 0 && before(&one, &a->heap[(at - 1) / 2]); at = (at - 1) / 2)
        a->heap[at] = a->heap[(at - 1) / 2];
    a->heap[at] = one;
}

static tc_alarm take(alarms *a)
{
    tc_alarm first = a->heap[0], last = a->heap[--a->count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < a->count) {
        if (child + 1 < a->count &&
            before(&a->heap[child + 1], &a->heap[child]))
            child++;
        if (!before(&a->heap[child], &last))
            break;
        a->heap[at] = a->heap[child];
        at = child;
    }
    if (a->count > 0)
        a->heap[at] = last;
    return first;
}

/* A time, from 0 on. 0, -1. */
static int to_time(PyObject *given, uint64_t *out)
{
    long long value = PyLong_AsLongLong(given);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (value < 0) {
        PyErr_SetString(PyExc_ValueError, "a time below 0");
        return -1;
    }
    *out = (uint64_t)value;
    return 0;
}

static PyObject *alarms_set(alarms *self, PyObject *const *args, Py_ssize_t n)
{
    tc_alarm one = {0};
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "set(time_ns, who)");
        return NULL;
    }
    if (to_time(args[0], &one.time_ns) < 0)
        return NULL;
    one.who = PyLong_AsLongLong(args[1]);
    if (one.who == -1 && PyErr_Occurred())
        return NULL;
    if (self->count == self->room && grow(self) < 0)
        return NULL;
    one.number = self->set++;
    put(self, one);
    Py_RETURN_NONE;
}

static PyObject *alarms_due(alarms *self, PyObject *now)
{
    uint64_t now_ns;
    if (to_time(now, &now_ns) < 0)
        return NULL;
    if (self->count == 0 || self->heap[0].time_ns > now_ns)
        Py_RETURN_NONE;
    tc_alarm first = take(self);
    self->due_ns = first.time_ns;
    return PyLong_FromLongLong(first.who);
}

static PyObject *alarms_first_ns(alarms *self, void *unused)
{
    (void)unused;
    if (self->count == 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(self->heap[0].time_ns);
}

static PyObject *alarms_due_ns(alarms *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->due_ns);
}

static void alarms_dealloc(alarms *self)
{
    PyMem_Free(self->heap);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef alarms_methods[] = {
    {"set", (PyCFunction)(void (*)(void))alarms_set, METH_FASTCALL,
     "set(time_ns, who): rings then."},
    {"due", (PyCFunction)alarms_due, METH_O,
     "due(now_ns): takes off the next one that has rung by now, who it is "
     "for; None: none has."},
    {0},
};

static PyGetSetDef alarms_values[] = {
    {"first_ns", (getter)alarms_first_ns, NULL,
     "When the next one rings; None: there is none.", NULL},
    {"due_ns", (getter)alarms_due_ns, NULL,
     "For when the one was set that was taken off last.", NULL},
    {0},
};

PyTypeObject tc_alarms_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tailrace_codec.Alarms",
    .tp_doc = "Alarms(): who is to be looked at, and when.",
    .tp_basicsize = sizeof(alarms),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)alarms_dealloc,
    .tp_methods = alarms_methods,
    .tp_getset = alarms_values,
};
