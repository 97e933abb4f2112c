/* Exchanges messages between the ranks (the processes of a run, each of which
 * runs a part of the network) on one machine through shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * From each rank to each other rank there is a ring buffer with one writer and
 * one reader. A message is its length and its bytes; a message longer than the
 * ring is sent in pieces while both ranks are in the exchange. A rank that can
 * neither write nor read sleeps on its bell, a futex. Another rank rings that
 * bell after it has written bytes to the sleeping rank or read bytes from it.
 */
#include "tv_python.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CACHE_LINE 64
#define RING_BYTES (UINT64_C(1) << 18)
/* Polls of the bell before sleeping: a few microseconds. */
#define POLLS 400
/* Sleep between two checks for signals and for peers that have ended. */
#define SLEEP_NS 50000000L
#define LENGTH_BYTES 8u
#define MOST_RANKS 1024u

typedef struct bell {
    _Alignas(CACHE_LINE) _Atomic uint32_t rung; /* how often */
} bell;

typedef struct ring {
    _Alignas(CACHE_LINE) _Atomic uint64_t read; /* bytes since the start */
    _Alignas(CACHE_LINE) _Atomic uint64_t written;
    _Alignas(CACHE_LINE) uint8_t data[RING_BYTES];
} ring;

/* The transfer of a message, whose length is sent first. */
typedef struct transfer {
    uint8_t length[LENGTH_BYTES];
    uint64_t done;            /* bytes transferred, the length's included */
    PyObject *bytes;          /* NULL: the length is not yet known */
} transfer;

/* One exchange with all other ranks. */
typedef struct session {
    bell *bells;              /* by rank */
    ring *rings;              /* by writer, then reader */
    uint32_t rank, count;     /* this rank; number of ranks */
    uint32_t open;            /* transfers, in both directions, that are not
                               * complete */
    PyObject *fds;            /* sockets of the other ranks */
    transfer *out, *in;       /* by rank */
} session;

static size_t memory_bytes(uint32_t count)
{
    return count * sizeof(bell) + (size_t)count * count * sizeof(ring);
}

PyObject *tv_shared_bytes(PyObject *module, PyObject *ranks)
{
    (void)module;
    unsigned long count = PyLong_AsUnsignedLong(ranks);
    if (PyErr_Occurred())
        return NULL;
    if (count < 1 || count > MOST_RANKS)
        return PyErr_Format(PyExc_ValueError, "%lu ranks, expected 1 to %u",
                            count, MOST_RANKS);
    return PyLong_FromSize_t(memory_bytes((uint32_t)count));
}

/* ---- rings ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Writes as many bytes as the ring has space for; returns their number. */
static uint64_t put(ring *r, const uint8_t *from, uint64_t bytes)
{
    uint64_t at = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint64_t freed = atomic_load_explicit(&r->read, memory_order_acquire);
    uint64_t n = least(bytes, RING_BYTES - (at - freed));
    uint64_t start = at % RING_BYTES, first = least(n, RING_BYTES - start);
    memcpy(r->data + start, from, first);
    memcpy(r->data, from + first, n - first);
    atomic_store_explicit(&r->written, at + n, memory_order_release);
    return n;
}

/* Reads up to `bytes` bytes; returns the number that the ring had. */
static uint64_t get(ring *r, uint8_t *to, uint64_t bytes)
{
    uint64_t at = atomic_load_explicit(&r->read, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&r->written, memory_order_acquire);
    uint64_t n = least(bytes, end - at);
    uint64_t start = at % RING_BYTES, first = least(n, RING_BYTES - start);
    memcpy(to, r->data + start, first);
    memcpy(to + first, r->data, n - first);
    atomic_store_explicit(&r->read, at + n, memory_order_release);
    return n;
}

/* ---- transfers ---- */

static uint64_t size_of(const transfer *t)
{
    return LENGTH_BYTES + (uint64_t)PyBytes_GET_SIZE(t->bytes);
}

static int finished(const transfer *t)
{
    return t->bytes && t->done == size_of(t);
}

/* Writes as much as the ring has space for; returns the number of bytes. */
static uint64_t send_some(ring *r, transfer *t)
{
    uint64_t before = t->done;
    if (t->done < LENGTH_BYTES)
        t->done += put(r, t->length + t->done, LENGTH_BYTES - t->done);
    if (t->done >= LENGTH_BYTES && !finished(t))
        t->done += put(r,
                       (const uint8_t *)PyBytes_AS_STRING(t->bytes) +
                           (t->done - LENGTH_BYTES),
                       size_of(t) - t->done);
    return t->done - before;
}

/* Reads as many bytes of a message as the ring has, and sets *some to their
 * number; 0, -1. */
static int take_some(ring *r, transfer *t, uint64_t *some)
{
    uint64_t before = t->done;
    if (t->done < LENGTH_BYTES)
        t->done += get(r, t->length + t->done, LENGTH_BYTES - t->done);
    if (t->done == LENGTH_BYTES && !t->bytes) {
        uint64_t length;
        memcpy(&length, t->length, sizeof length);
        t->bytes = length > PY_SSIZE_T_MAX
                       ? PyErr_NoMemory()
                       : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
        if (!t->bytes)
            return -1;
    }
    if (t->bytes && !finished(t))
        t->done += get(r,
                       (uint8_t *)PyBytes_AS_STRING(t->bytes) +
                           (t->done - LENGTH_BYTES),
                       size_of(t) - t->done);
    *some = t->done - before;
    return 0;
}

static void ring_bell(bell *b)
{
    atomic_fetch_add_explicit(&b->rung, 1, memory_order_release);
    syscall(SYS_futex, &b->rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Transfers what can be transferred to and from another rank. 1: some bytes;
 * 0: nothing; -1: exception. */
static int exchange_some(session *t, uint32_t other)
{
    transfer *out = &t->out[other], *in = &t->in[other];
    uint64_t sent = 0, taken = 0;
    if (!finished(out)) {
        sent = send_some(&t->rings[t->rank * t->count + other], out);
        t->open -= finished(out);
    }
    if (!finished(in)) {
        if (take_some(&t->rings[other * t->count + t->rank], in, &taken) < 0)
            return -1;
        t->open -= finished(in);
    }
    if (!sent && !taken)
        return 0;
    ring_bell(&t->bells[other]);
    return 1;
}

/* ---- waiting ---- */

/* Whether the other end of each socket is open, so that its rank is alive. */
static int all_alive(PyObject *fds)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fds); i++) {
        struct pollfd p = {.fd = (int)PyLong_AsLong(PyList_GET_ITEM(fds, i))};
        if (poll(&p, 1, 0) > 0 && p.revents)
            return 0;
    }
    return 1;
}

/* Sleeps until the bell differs from `seen`, for SLEEP_NS at most. 0: another
 * rank has ended; -1: exception; else 1. */
static int wait_for(const session *t, uint32_t seen)
{
    _Atomic uint32_t *rung = &t->bells[t->rank].rung;
    for (int i = 0; i < POLLS; i++)
        if (atomic_load_explicit(rung, memory_order_acquire) != seen)
            return 1;
    struct timespec timeout = {.tv_nsec = SLEEP_NS};
    long rc;
    Py_BEGIN_ALLOW_THREADS
    rc = syscall(SYS_futex, rung, FUTEX_WAIT, seen, &timeout, NULL, 0);
    Py_END_ALLOW_THREADS
    if (rc == 0 || errno == EAGAIN)
        return 1;
    if (PyErr_CheckSignals() < 0)
        return -1;
    return all_alive(t->fds);
}

/* 1: all transfers are complete; 0: another rank has ended; -1: exception. */
static int run(session *t)
{
    while (t->open) {
        uint32_t seen = atomic_load_explicit(&t->bells[t->rank].rung,
                                             memory_order_acquire);
        int some = 0;
        for (uint32_t i = 0; i < t->count; i++) {
            int moved = i == t->rank ? 0 : exchange_some(t, i);
            if (moved < 0)
                return -1;
            some |= moved;
        }
        if (some || !t->open)
            continue;
        int rc = wait_for(t, seen);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

/* ---- the functions for Python ---- */

static PyObject *exchange(session *t, PyObject *messages)
{
    for (uint32_t i = 0; i < t->count; i++) {
        PyObject *bytes = PyList_GET_ITEM(messages, i);
        if (!PyBytes_Check(bytes))
            return PyErr_Format(PyExc_TypeError, "expected bytes");
        uint64_t length = (uint64_t)PyBytes_GET_SIZE(bytes);
        t->out[i].bytes = bytes;
        memcpy(t->out[i].length, &length, sizeof length);
    }
    t->open = 2 * (t->count - 1); /* to and from each other rank */
    t->in[t->rank].bytes = Py_NewRef(t->out[t->rank].bytes);
    int rc = run(t);
    if (rc == 0)
        Py_RETURN_NONE;
    PyObject *received = rc < 0 ? NULL : PyList_New(t->count);
    for (uint32_t i = 0; received && i < t->count; i++)
        PyList_SET_ITEM(received, i, Py_NewRef(t->in[i].bytes));
    return received;
}

PyObject *tv_shared_exchange(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer memory;
    PyObject *messages, *received = NULL;
    session t = {0};
    if (!PyArg_ParseTuple(args, "w*IIO!O!", &memory, &t.rank, &t.count,
                          &PyList_Type, &t.fds, &PyList_Type, &messages))
        return NULL;
    t.out = PyMem_Calloc((size_t)t.count + 1, sizeof *t.out);
    t.in = PyMem_Calloc((size_t)t.count + 1, sizeof *t.in);
    t.bells = memory.buf;
    t.rings = (ring *)(t.bells + t.count);
    if (!t.out || !t.in)
        PyErr_NoMemory();
    else if (t.rank >= t.count || t.count > MOST_RANKS ||
             (size_t)memory.len < memory_bytes(t.count) ||
             PyList_GET_SIZE(messages) != (Py_ssize_t)t.count)
        PyErr_SetString(PyExc_ValueError, "expected a message for each rank");
    else
        received = exchange(&t, messages);
    for (uint32_t i = 0; t.in && i < t.count; i++)
        Py_XDECREF(t.in[i].bytes);
    PyMem_Free(t.out);
    PyMem_Free(t.in);
    PyBuffer_Release(&memory);
    return received;
}
