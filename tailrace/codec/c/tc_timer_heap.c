/* The Python type TimerHeap of tailrace_codec: a binary heap of timers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Timers are ordered by time; those with equal times expire in the order in
 * which they were set. NICs set a timer for nearly every packet: a heap of
 * Python tuples took a seventh of the time of a run with paced flows.
 */
#include "tc_nic_port.h"

typedef struct tc_timer {
    uint64_t time_ns, sequence; /* sequence: order of setting */
    int64_t id;
} tc_timer;

typedef struct timer_heap {
    PyObject_HEAD
    tc_timer *heap;
    size_t count, capacity;
    uint64_t set;             /* how many timers were set so far */
    uint64_t due_ns;          /* time of the timer that was popped last */
} timer_heap;

static int before(const tc_timer *a, const tc_timer *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns
                                    : a->sequence < b->sequence;
}

/* Returns 0 or -1. */
static int grow(timer_heap *a)
{
    size_t capacity = a->capacity ? 2 * a->capacity : 16;
    tc_timer *heap = PyMem_Realloc(a->heap, capacity * sizeof *heap);
    if (!heap) {
        PyErr_NoMemory();
        return -1;
    }
    a->heap = heap;
    a->capacity = capacity;
    return 0;
}

static void put(timer_heap *a, tc_timer timer)
{
    size_t at = a->count++;
    for (; at > 0 && before(&timer, &a->heap[(at - 1) / 2]); at = (at - 1) / 2)
        a->heap[at] = a->heap[(at - 1) / 2];
    a->heap[at] = timer;
}

static tc_timer take(timer_heap *a)
{
    tc_timer first = a->heap[0], last = a->heap[--a->count];
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

/* Converts a time, at least 0. Returns 0 or -1. */
static int to_time(PyObject *given, uint64_t *out)
{
    long long value = PyLong_AsLongLong(given);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (value < 0) {
        PyErr_SetString(PyExc_ValueError, "the time of a timer is below 0");
        return -1;
    }
    *out = (uint64_t)value;
    return 0;
}

static PyObject *timer_heap_set(timer_heap *self, PyObject *const *args,
                                Py_ssize_t n)
{
    tc_timer timer = {0};
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected set(time_ns, id)");
        return NULL;
    }
    if (to_time(args[0], &timer.time_ns) < 0)
        return NULL;
    timer.id = PyLong_AsLongLong(args[1]);
    if (timer.id == -1 && PyErr_Occurred())
        return NULL;
    if (self->count == self->capacity && grow(self) < 0)
        return NULL;
    timer.sequence = self->set++;
    put(self, timer);
    Py_RETURN_NONE;
}

static PyObject *timer_heap_due(timer_heap *self, PyObject *now)
{
    uint64_t now_ns;
    if (to_time(now, &now_ns) < 0)
        return NULL;
    if (self->count == 0 || self->heap[0].time_ns > now_ns)
        Py_RETURN_NONE;
    tc_timer first = take(self);
    self->due_ns = first.time_ns;
    return PyLong_FromLongLong(first.id);
}

static PyObject *timer_heap_first_ns(timer_heap *self, void *unused)
{
    (void)unused;
    if (self->count == 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(self->heap[0].time_ns);
}

static PyObject *timer_heap_due_ns(timer_heap *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->due_ns);
}

static void timer_heap_dealloc(timer_heap *self)
{
    PyMem_Free(self->heap);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef timer_heap_methods[] = {
    {"set", (PyCFunction)(void (*)(void))timer_heap_set, METH_FASTCALL,
     "set(time_ns, id): sets a timer, which expires at time_ns."},
    {"due", (PyCFunction)timer_heap_due, METH_O,
     "due(now_ns): pops the first timer, if due, and returns its id; or None."},
    {0},
};

static PyGetSetDef timer_heap_values[] = {
    {"first_ns", (getter)timer_heap_first_ns, NULL,
     "When the next timer expires; None: no timer is set.", NULL},
    {"due_ns", (getter)timer_heap_due_ns, NULL,
     "The time of the timer that was popped last.", NULL},
    {0},
};

PyTypeObject tc_timer_heap_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tailrace_codec.TimerHeap",
    .tp_doc = "TimerHeap(): a heap of timers.",
    .tp_basicsize = sizeof(timer_heap),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)timer_heap_dealloc,
    .tp_methods = timer_heap_methods,
    .tp_getset = timer_heap_values,
};
