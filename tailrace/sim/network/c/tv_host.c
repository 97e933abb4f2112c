/* A host: its events, and its two wires (the directions of its link). tc_nic_*
 * call the NIC through the codec (tc_nic.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_host.h"

#include "tc_nic.h"

struct tv_host {
    tv_wire *in, *out;
    tc_nic *nic;         /* NULL: the host sends nothing */
    uint64_t wake_ps;    /* when to ask the NIC; while sending: free_ps */
    uint64_t free_ps;    /* when the last bit of the last frame has left */
    uint64_t rate_bps;   /* of the last frame */
    uint64_t remainder;  /* fraction of free_ps, in 1/rate_bps ps */
    uint64_t notified_ps; /* latest time with which the NIC was called */
    uint64_t last_ps;    /* when the last frame was received or sent */
    int running;         /* whether tv_host_run has not returned yet */
};

tv_host *tv_host_new(tv_wire *in, tv_wire *out)
{
    tv_host *h = PyMem_Calloc(1, sizeof *h);
    if (!h) {
        PyErr_NoMemory();
        return NULL;
    }
    h->in = in;
    h->out = out;
    h->wake_ps = TC_NEVER;
    return h;
}

void tv_host_free(tv_host *h)
{
    if (!h)
        return;
    Py_CLEAR(h->nic);
    PyMem_Free(h);
}

int tv_host_attach(tv_host *h, PyObject *port)
{
    if (h->running) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a NIC cannot be replaced while it is being called");
        return -1;
    }
    if (!PyObject_TypeCheck(port, &tc_nic_type)) {
        PyErr_Format(PyExc_TypeError, "expected the port of a NIC, not %s",
                     Py_TYPE(port)->tp_name);
        return -1;
    }
    Py_XSETREF(h->nic, (tc_nic *)Py_NewRef(port));
    return 0;
}

uint64_t tv_host_next(const tv_host *h)
{
    uint64_t arrival = tv_wire_next(h->in);
    return arrival < h->wake_ps ? arrival : h->wake_ps;
}

/* Hands all frames that arrive at an instant to the NIC. Returns their number,
 * and sets *delivered if any was not lost; -1 with an exception. */
static int hand_arrivals(tv_host *h, uint64_t now_ps, int *delivered)
{
    int count = 0;
    while (tv_wire_next(h->in) == now_ps) {
        tc_frame frame;
        int taken = tv_wire_take(h->in, &frame);
        if (taken < 0)
            return -1;
        count++;
        h->last_ps = now_ps;
        if (!taken || !h->nic)
            continue;
        *delivered = 1;
        if (tc_nic_arrive(h->nic, now_ps / TV_PS_PER_NS, &frame) < 0)
            return -1;
    }
    return count;
}

/* Occupies the wire for the time of a frame. While the wire stays busy, the
 * rounded-off fraction is carried over, so rounding errors do not add up. */
static void occupy(tv_host *h, uint64_t now_ps, uint64_t bytes)
{
    uint64_t rate_bps = tv_wire_rate_bps(h->out);
    if (h->free_ps < now_ps || h->rate_bps != rate_bps)
        h->remainder = 0;
    if (h->free_ps < now_ps)
        h->free_ps = now_ps;
    h->rate_bps = rate_bps;
    /* no overflow for TC_MOST_BYTES and any remainder: asserted below */
    /* bits * ps/s: the time in units of 1/rate_bps ps */
    uint64_t work = bytes * 8 * TV_PS_PER_S + h->remainder;
    h->free_ps += work / rate_bps;
    h->remainder = work % rate_bps;
}

_Static_assert(TC_MOST_BYTES * UINT64_C(8) <
                   (UINT64_MAX - TV_PS_PER_S) / TV_PS_PER_S,
               "a frame's serialisation in ps");

/* Asks the NIC for a frame and sends it, when the wire is free. 0, -1. */
static int ask_nic(tv_host *h, uint64_t now_ps)
{
    tc_departure d;
    uint64_t next_ns;
    int departs = tc_nic_depart(h->nic, now_ps / TV_PS_PER_NS, &d, &next_ns);
    if (departs < 0)
        return -1;
    if (!departs) {
        h->wake_ps = next_ns > TC_NEVER / TV_PS_PER_NS
                         ? TC_NEVER
                         : next_ns * TV_PS_PER_NS;
        return 0;
    }
    uint64_t bytes = (uint64_t)d.head_len + d.tail_len + d.virt;
    if (bytes > TC_MOST_BYTES) {
        PyErr_Format(PyExc_ValueError,
                     "a NIC sends a frame of %llu bytes, the limit is %llu",
                     (unsigned long long)bytes,
                     (unsigned long long)TC_MOST_BYTES);
        return -1;
    }
    occupy(h, now_ps, bytes);
    h->wake_ps = h->free_ps;
    h->last_ps = now_ps;
    return tv_wire_send(h->out, now_ps, h->free_ps + tv_wire_delay_ps(h->out),
                        d.head, d.head_len, d.tail, d.tail_len, d.virt);
}

static int run(tv_host *h, uint64_t end_ps)
{
    int events = 0;
    uint64_t now_ps;
    while ((now_ps = tv_host_next(h)) < end_ps) {
        /* whether to ask the NIC for a frame: a delivery may cause one, too */
        int due = h->wake_ps == now_ps;
        if (h->notified_ps < now_ps)
            h->notified_ps = now_ps;
        if (due)
            h->wake_ps = TC_NEVER;
        int arrived = hand_arrivals(h, now_ps, &due);
        if (arrived < 0)
            return -1;
        events += arrived;
        if (!due || !h->nic || now_ps < h->free_ps)
            continue;
        events++;
        if (ask_nic(h, now_ps) < 0)
            return -1;
    }
    return events;
}

int tv_host_run(tv_host *h, uint64_t end_ps)
{
    h->running = 1;
    int events = run(h, end_ps);
    h->running = 0;
    return events;
}

int tv_host_idle(tv_host *h)
{
    return h->nic ? tc_nic_idle(h->nic) : 1;
}

int tv_host_poll(tv_host *h, uint64_t now_ps)
{
    if (!h->nic)
        return 0;
    if (now_ps < h->notified_ps)
        now_ps = h->notified_ps;
    if (now_ps < h->free_ps)
        now_ps = h->free_ps;
    if (now_ps < h->wake_ps)
        h->wake_ps = now_ps;
    return 0;
}

uint64_t tv_host_last_ps(const tv_host *h)
{
    return h->last_ps;
}

int tv_host_traverse(tv_host *h, visitproc visit, void *arg)
{
    if (h)
        Py_VISIT(h->nic);
    return 0;
}
