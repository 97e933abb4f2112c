/* A NIC in Python: its methods, and what it is told of arrivals.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The methods of a NIC are looked up once. Per packet nothing is allocated but
 * the numbers that a call carries.
 */
#include "tv_nic_port.h"

static const char *const packet_calls[] = {
    "on_data",       "on_trimmed", "on_ack",  "on_cnp",      "on_nic_ack",
    "on_flow_pause", "on_pfc",     "on_junk", "next_packet", "template"};
static const char *const frame_calls[] = {"on_frame", "next_frame",
                                          "next_time_ns"};

#define MOST_ARGUMENTS 8

tv_nic *tv_nic_new(PyObject *object)
{
    tv_nic *n = PyMem_Calloc(1, sizeof *n);
    if (!n) {
        PyErr_NoMemory();
        return NULL;
    }
    /* what else is asked for a packet must be there, too */
    int packets = PyObject_HasAttrString(object, packet_calls[NEXT_PACKET]);
    n->packets = packets;
    n->object = Py_NewRef(object);
    const char *const *names = packets ? packet_calls : frame_calls;
    for (int i = 0; i < (packets ? PACKET_CALLS : FRAME_CALLS); i++)
        if (!(n->calls[i] = PyObject_GetAttrString(object, names[i])))
            goto fail;
    if (packets) {
        PyObject *address = PyObject_GetAttrString(object, "address");
        if (!address)
            goto fail;
        n->address = (uint32_t)PyLong_AsUnsignedLong(address);
        Py_DECREF(address);
        if (PyErr_Occurred())
            goto fail;
    }
    return n;
fail:
    tv_nic_free(n);
    return NULL;
}

void tv_nic_release(tv_nic *n)
{
    if (n->buffer.obj)
        PyBuffer_Release(&n->buffer);
    Py_CLEAR(n->sent);
}

void tv_nic_free(tv_nic *n)
{
    if (!n)
        return;
    tv_nic_release(n);
    for (int i = 0; i < PACKET_CALLS; i++)
        Py_XDECREF(n->calls[i]);
    Py_XDECREF(n->now);
    Py_XDECREF(n->object);
    for (uint64_t i = 0; i < n->template_count; i++)
        PyMem_Free(n->templates[i]);
    PyMem_Free(n->templates);
    PyMem_Free(n->long_tail);
    PyMem_Free(n);
}

int tv_nic_traverse(tv_nic *n, visitproc visit, void *arg)
{
    Py_VISIT(n->object);
    for (int i = 0; i < PACKET_CALLS; i++)
        Py_VISIT(n->calls[i]);
    Py_VISIT(n->sent);
    return 0;
}

int tv_nic_idle(tv_nic *n)
{
    PyObject *idle = PyObject_GetAttr(n->object, tv_nic_idle_attr);
    if (!idle)
        return -1;
    int truth = PyObject_IsTrue(idle);
    Py_DECREF(idle);
    return truth;
}

/* ---- calls ---- */

/* The time as an argument: made once for all calls of an instant. */
static PyObject *now_object(tv_nic *n, uint64_t now_ns)
{
    if (!n->now || n->now_ns != now_ns) {
        PyObject *made = PyLong_FromUnsignedLongLong(now_ns);
        if (!made)
            return NULL;
        Py_XSETREF(n->now, made);
        n->now_ns = now_ns;
    }
    return n->now;
}

PyObject *tv_nic_call(tv_nic *n, int which, uint64_t now_ns,
                      PyObject **given, size_t count)
{
    PyObject *args[MOST_ARGUMENTS + 2];
    PyObject *result = NULL;
    PyObject *now = now_object(n, now_ns);
    int whole = now != NULL;
    for (size_t i = 0; i < count; i++) {
        args[i + 2] = given[i];
        whole &= given[i] != NULL;
    }
    if (whole) {
        args[1] = now;
        result = PyObject_Vectorcall(
            n->calls[which], args + 1,
            (count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(given[i]);
    return result;
}

/* The same where only an exception is of interest. */
static int tell(tv_nic *n, int which, uint64_t now_ns, PyObject **given,
                size_t count)
{
    PyObject *result = tv_nic_call(n, which, now_ns, given, count);
    if (!result)
        return -1;
    Py_DECREF(result);
    return 0;
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

/* ---- arrivals ---- */

static int tell_data(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    const tv_layout *l = &tv_nic_codec.at;
    PyObject *given[] = {
        number((uint64_t)p->src << l->qpn_bits | p->qpn),
        number((uint64_t)p->wire_sport << l->sport_shift | p->psn),
        number(p->shape), PyLong_FromLongLong(p->ticks)};
    return tell(n, ON_DATA, now_ns, given, 4);
}

static int tell_trimmed(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    const tv_layout *l = &tv_nic_codec.at;
    PyObject *given[] = {
        number((uint64_t)p->src << l->qpn_bits | p->qpn),
        number((uint64_t)p->wire_sport << l->sport_shift | p->psn),
        number(p->shape)};
    return tell(n, ON_TRIMMED, now_ns, given, 3);
}

static int tell_ack(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    const tv_layout *l = &tv_nic_codec.at;
    uint64_t place = (uint64_t)p->wire_sport << l->sport_shift |
                     (uint64_t)p->becn << l->becn_shift | p->psn;
    PyObject *given[] = {number((uint64_t)p->src << l->qpn_bits | p->qpn),
                         number(place), number(p->aeth)};
    return tell(n, ON_ACK, now_ns, given, 3);
}

static int tell_nic_ack(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    const tv_layout *l = &tv_nic_codec.at;
    PyObject *given[] = {number((uint64_t)p->src << l->port_bits | p->sport),
                         number(p->count), number((uint64_t)p->ticks)};
    return tell(n, ON_NIC_ACK, now_ns, given, 3);
}

static int tell_flow_pause(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    PyObject *given[] = {number(p->src),      number(p->dst),
                         number(p->sport),    number(p->dport),
                         number(p->protocol), number(p->op),
                         number(p->credit_bytes)};
    return tell(n, ON_FLOW_PAUSE, now_ns, given, 7);
}

static int tell_pfc(tv_nic *n, uint64_t now_ns, const tv_packet *p)
{
    PyObject *quanta = PyTuple_New(TV_PFC_PRIORITIES);
    for (uint32_t i = 0; quanta && i < TV_PFC_PRIORITIES; i++) {
        PyObject *value = PyLong_FromLong(p->quanta[i]);
        if (value)
            PyTuple_SET_ITEM(quanta, i, value);
        else
            Py_CLEAR(quanta);
    }
    return tell(n, ON_PFC, now_ns, &quanta, 1);
}

static int tell_junk(tv_nic *n, uint64_t now_ns, uint32_t reason)
{
    PyObject *given = number(reason);
    return tell(n, ON_JUNK, now_ns, &given, 1);
}

static int arrive_packet(tv_nic *n, uint64_t now_ns, const tv_frame *frame)
{
    tv_packet p;
    tv_parse(&tv_nic_codec, frame->data, frame->len, frame->virt, &p);
    switch (p.kind) {
    case TV_JUNK:
        return tell_junk(n, now_ns, p.reason);
    case TV_FLOW_PAUSE:
        return tell_flow_pause(n, now_ns, &p);
    case TV_PFC:
        return tell_pfc(n, now_ns, &p);
    }
    if (p.dst != n->address)
        return tell_junk(n, now_ns, tv_nic_codec.at.junk_not_ours);
    switch (p.kind) {
    case TV_DATA:
        return tell_data(n, now_ns, &p);
    case TV_TRIMMED:
        return tell_trimmed(n, now_ns, &p);
    case TV_ACK:
        return tell_ack(n, now_ns, &p);
    case TV_NIC_ACK:
        return tell_nic_ack(n, now_ns, &p);
    default: {
        PyObject *peer =
            number((uint64_t)p.src << tv_nic_codec.at.qpn_bits | p.qpn);
        return tell(n, ON_CNP, now_ns, &peer, 1);
    }
    }
}

int tv_nic_arrive(tv_nic *n, uint64_t now_ns, const tv_frame *frame)
{
    if (n->packets)
        return arrive_packet(n, now_ns, frame);
    PyObject *given[] = {
        PyBytes_FromStringAndSize((const char *)frame->data, frame->len),
        number(frame->virt)};
    return tell(n, ON_FRAME, now_ns, given, 2);
}
