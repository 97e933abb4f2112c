/* Calls of a NIC in Python: looks its methods up, and calls them for arrivals.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The methods of a NIC are looked up once; tailrace.codec.calls describes them.
 * on_ack is called for RoCE's ACK, on_nic_ack for the ACK of a Flowcut NIC
 * (Flowcut §II-D); `template` returns the constant bytes of a flow's packets.
 * Several fields of a packet are packed into one argument, because for each
 * packet only the arguments are allocated. virt: payload bytes that are counted
 * but not stored.
 */
#include "tc_nic_port.h"

static const char *const names[CALLS] = {
    "on_data",       "on_trimmed", "on_ack",     "on_cnp",      "on_nic_ack",
    "on_flow_pause", "on_pfc",     "on_discard", "next_packet", "on_frame",
    "template"};

#define MOST_ARGUMENTS 8

/* Looks a method up. Returns 0 or -1. */
static int look_up(tc_nic *n, int which)
{
    n->calls[which] = PyObject_GetAttrString(n->object, names[which]);
    return n->calls[which] ? 0 : -1;
}

int tc_nic_init(tc_nic *n, PyObject *object)
{
    n->object = Py_NewRef(object);
    if (PyObject_HasAttrString(object, names[TEMPLATE]) &&
        look_up(n, TEMPLATE) < 0)
        return -1;
    if (PyObject_HasAttrString(object, names[ON_FRAME]))
        return look_up(n, ON_FRAME) < 0 ? -1 : look_up(n, NEXT_PACKET);
    for (int i = 0; i <= NEXT_PACKET; i++)
        if (look_up(n, i) < 0)
            return -1;
    PyObject *address = PyObject_GetAttrString(object, "address");
    if (!address)
        return -1;
    n->address = (uint32_t)PyLong_AsUnsignedLong(address);
    Py_DECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

void tc_nic_release(tc_nic *n)
{
    if (n->buffer.obj)
        PyBuffer_Release(&n->buffer);
    Py_CLEAR(n->sent);
}

void tc_nic_free(tc_nic *n)
{
    tc_nic_clear(n);
    Py_CLEAR(n->now);
    Py_CLEAR(n->owner);
    for (uint64_t i = 0; i < n->template_count; i++)
        PyMem_Free(n->templates[i]);
    PyMem_Free(n->templates);
    PyMem_Free(n->payload_and_icrc);
}

int tc_nic_clear(tc_nic *n)
{
    tc_nic_release(n);
    for (int i = 0; i < CALLS; i++)
        Py_CLEAR(n->calls[i]);
    Py_CLEAR(n->object);
    return 0;
}

int tc_nic_traverse(tc_nic *n, visitproc visit, void *arg)
{
    Py_VISIT(n->object);
    Py_VISIT(n->owner);
    for (int i = 0; i < CALLS; i++)
        Py_VISIT(n->calls[i]);
    Py_VISIT(n->sent);
    return 0;
}

int tc_nic_idle(tc_nic *n)
{
    PyObject *idle = PyObject_GetAttrString(n->object, "idle");
    if (!idle)
        return -1;
    int truth = PyObject_IsTrue(idle);
    Py_DECREF(idle);
    return truth;
}

/* ---- calls ---- */

/* The time as a Python object, made once for all calls at the same time. */
static PyObject *now_object(tc_nic *n, uint64_t now_ns)
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

PyObject *tc_nic_call(tc_nic *n, int which, uint64_t now_ns,
                      PyObject **given, size_t count)
{
    PyObject *args[MOST_ARGUMENTS + 2];
    PyObject *result = NULL;
    PyObject *now = now_object(n, now_ns);
    int complete = now != NULL;
    for (size_t i = 0; i < count; i++) {
        args[i + 2] = given[i];
        complete &= given[i] != NULL;
    }
    if (complete) {
        args[1] = now;
        result = PyObject_Vectorcall(
            n->calls[which], args + 1,
            (count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(given[i]);
    return result;
}

/* As tc_nic_call, without the result. Returns 0 or -1. */
static int notify(tc_nic *n, int which, uint64_t now_ns, PyObject **given,
                size_t count)
{
    PyObject *result = tc_nic_call(n, which, now_ns, given, count);
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

/* wire_sport is the UDP source port in the frame; sport is that of the flow,
 * which the sending NIC may have replaced in the frame. */

static int notify_data(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    const tc_layout *l = &n->codec->layout;
    PyObject *given[] = {
        number((uint64_t)p->src << l->qpn_bits | p->qpn),
        number((uint64_t)p->wire_sport << l->sport_shift | p->psn),
        number(p->data_fields), PyLong_FromLongLong(p->ticks)};
    return notify(n, ON_DATA, now_ns, given, 4);
}

static int notify_trimmed(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    const tc_layout *l = &n->codec->layout;
    PyObject *given[] = {
        number((uint64_t)p->src << l->qpn_bits | p->qpn),
        number((uint64_t)p->wire_sport << l->sport_shift | p->psn),
        number(p->data_fields)};
    return notify(n, ON_TRIMMED, now_ns, given, 3);
}

static int notify_ack(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    const tc_layout *l = &n->codec->layout;
    uint64_t psn_fields = (uint64_t)p->wire_sport << l->sport_shift |
                          (uint64_t)p->becn << l->becn_shift | p->psn;
    PyObject *given[] = {number((uint64_t)p->src << l->qpn_bits | p->qpn),
                         number(psn_fields), number(p->aeth)};
    return notify(n, ON_ACK, now_ns, given, 3);
}

static int notify_nic_ack(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    const tc_layout *l = &n->codec->layout;
    PyObject *given[] = {number((uint64_t)p->src << l->port_bits | p->sport),
                         number(p->count), number((uint64_t)p->ticks)};
    return notify(n, ON_NIC_ACK, now_ns, given, 3);
}

static int notify_flow_pause(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    PyObject *given[] = {number(p->src),      number(p->dst),
                         number(p->sport),    number(p->dport),
                         number(p->protocol), number(p->op),
                         number(p->credit_bytes)};
    return notify(n, ON_FLOW_PAUSE, now_ns, given, 7);
}

static int notify_pfc(tc_nic *n, uint64_t now_ns, const tc_packet *p)
{
    PyObject *quanta = PyTuple_New(TC_PFC_PRIORITIES);
    for (uint32_t i = 0; quanta && i < TC_PFC_PRIORITIES; i++) {
        PyObject *value = PyLong_FromLong(p->quanta[i]);
        if (value)
            PyTuple_SET_ITEM(quanta, i, value);
        else
            Py_CLEAR(quanta);
    }
    return notify(n, ON_PFC, now_ns, &quanta, 1);
}

static int notify_discard(tc_nic *n, uint64_t now_ns, uint32_t reason)
{
    PyObject *given = number(reason);
    return notify(n, ON_DISCARD, now_ns, &given, 1);
}

static int arrive_packet(tc_nic *n, uint64_t now_ns, const tc_frame *frame)
{
    tc_packet p;
    tc_parse(n->codec, frame->data, frame->len, frame->virt, &p);
    switch (p.kind) {
    case TC_DISCARD:
        return notify_discard(n, now_ns, p.reason);
    case TC_FLOW_PAUSE:
        return notify_flow_pause(n, now_ns, &p);
    case TC_PFC:
        return notify_pfc(n, now_ns, &p);
    }
    if (p.dst != n->address)
        return notify_discard(n, now_ns, n->codec->layout.discard_not_ours);
    switch (p.kind) {
    case TC_DATA:
        return notify_data(n, now_ns, &p);
    case TC_TRIMMED:
        return notify_trimmed(n, now_ns, &p);
    case TC_ACK:
        return notify_ack(n, now_ns, &p);
    case TC_NIC_ACK:
        return notify_nic_ack(n, now_ns, &p);
    default: {
        PyObject *peer =
            number((uint64_t)p.src << n->codec->layout.qpn_bits | p.qpn);
        return notify(n, ON_CNP, now_ns, &peer, 1);
    }
    }
}

int tc_nic_arrive(tc_nic *n, uint64_t now_ns, const tc_frame *frame)
{
    if (!n->calls[ON_FRAME])
        return arrive_packet(n, now_ns, frame);
    PyObject *given[] = {
        PyBytes_FromStringAndSize((const char *)frame->data, frame->len),
        number(frame->virt)};
    return notify(n, ON_FRAME, now_ns, given, 2);
}
