/* What a NIC in Python has to send: packets, which are made frames here.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A packet's template is asked for once and kept, until another end of a flow
 * has taken the place of the one that it is of.
 */
#include "tc_nic_port.h"

#include <string.h>

/* Templates of a flow's end: data or ACK, and NIC ACK. */
#define TEMPLATES 2u

/* A number that is not negative. 0, -1. */
static int read_number(PyObject *said, uint64_t *out)
{
    /* the fastest of Python's ways on machines whose long has 64 bits */
    long value = PyLong_AsLong(said);
    if (value < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_OverflowError,
                            "a NIC says a negative number");
        return -1;
    }
    *out = (uint64_t)value;
    return 0;
}

/* What a NIC says of the next time: None or a number. 0, -1. */
static int read_time(PyObject *said, uint64_t now_ns, uint64_t *next_ns)
{
    *next_ns = TC_NEVER;
    if (said == Py_None)
        return 0;
    int overflow;
    long long time_ns = PyLong_AsLongLongAndOverflow(said, &overflow);
    if (time_ns == -1 && PyErr_Occurred())
        return -1;
    if (overflow > 0)
        return 0;
    /* it has just been asked what there is now */
    *next_ns = time_ns <= (long long)now_ns ? now_ns + 1 : (uint64_t)time_ns;
    return 0;
}

/* Bytes and a number of virtual bytes are sent as they are. 1, -1. */
static int send_raw(tc_nic *n, PyObject *data, PyObject *virtual_bytes,
                    tc_departure *out)
{
    uint64_t virt;
    if (read_number(virtual_bytes, &virt) < 0 ||
        PyObject_GetBuffer(data, &n->buffer, PyBUF_SIMPLE) < 0)
        return -1;
    if (virt > TC_MOST_BYTES || n->buffer.len > (Py_ssize_t)TC_MOST_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a NIC sends too long a frame");
        return -1;
    }
    out->head = n->buffer.buf;
    out->head_len = (uint32_t)n->buffer.len;
    out->virt = (uint32_t)virt;
    return 1;
}

/* Asks for a template and keeps it, in place of an older one. NULL:
 * exception. */
static tc_template *learn(tc_nic *n, uint64_t template_id, uint64_t slot)
{
    if (!n->calls[TEMPLATE]) {
        PyErr_SetString(PyExc_TypeError,
                        "a NIC that has no template sends a packet");
        return NULL;
    }
    PyObject *args[2] = {NULL, PyLong_FromUnsignedLongLong(template_id)};
    if (!args[1])
        return NULL;
    PyObject *said =
        PyObject_Vectorcall(n->calls[TEMPLATE], args + 1,
                            1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(args[1]);
    if (!said)
        return NULL;
    const char *head, *body;
    Py_ssize_t head_len, body_len;
    tc_template *template = NULL;
    if (!PyTuple_Check(said))
        PyErr_SetString(PyExc_TypeError, "a NIC's template is no tuple");
    if (!PyTuple_Check(said) ||
        !PyArg_ParseTuple(said, "y#y#:template", &head, &head_len, &body,
                          &body_len))
        goto out;
    tc_kept *kept = n->templates[slot];
    if (!kept)
        kept = n->templates[slot] = PyMem_Malloc(sizeof *kept);
    if (!kept) {
        PyErr_NoMemory();
        goto out;
    }
    kept->handle = UINT64_MAX; /* of nobody, should this fail */
    uint32_t kind =
        (uint32_t)(template_id & ((1ull << n->codec->at.kind_bits) - 1));
    if (head_len > (Py_ssize_t)TC_TEMPLATE_ROOM ||
        body_len > (Py_ssize_t)TC_TEMPLATE_ROOM ||
        tc_template_init(n->codec, &kept->made, kind, (const uint8_t *)head,
                         (uint32_t)head_len, (const uint8_t *)body,
                         (uint32_t)body_len) < 0) {
        PyErr_Format(PyExc_ValueError,
                     "a NIC's template of kind %u with %zd and %zd bytes",
                     (unsigned)kind, head_len, body_len);
        goto out;
    }
    kept->handle = template_id >> n->codec->at.kind_bits;
    template = &kept->made;
out:
    Py_DECREF(said);
    return template;
}

/* A template, NULL with an exception. */
static tc_template *template_of(tc_nic *n, uint64_t template_id, uint32_t kind)
{
    uint64_t handle = template_id >> n->codec->at.kind_bits;
    uint64_t place = handle & ((1ull << n->codec->at.place_bits) - 1);
    uint64_t slot = place * TEMPLATES + (kind == n->codec->at.kind_nic_ack);
    if (slot >= n->template_count) {
        uint64_t count = 2 * (slot + TEMPLATES);
        tc_kept **grown =
            PyMem_Realloc(n->templates, count * sizeof *grown);
        if (!grown) {
            PyErr_NoMemory();
            return NULL;
        }
        memset(grown + n->template_count, 0,
               (count - n->template_count) * sizeof *grown);
        n->templates = grown;
        n->template_count = count;
    }
    tc_kept *kept = n->templates[slot];
    return kept && kept->handle == handle ? &kept->made
                                          : learn(n, template_id, slot);
}

static int too_long(void)
{
    PyErr_SetString(PyExc_ValueError,
                    "a NIC sends a packet longer than IPv4 can say");
    return -1;
}

/* Puts a real payload and what comes behind it into one piece. 0, -1. */
static int join_tail(tc_nic *n, const uint8_t *payload, uint32_t bytes,
                     uint32_t tail_bytes)
{
    uint32_t room = bytes + tail_bytes;
    if (room > n->long_tail_room) {
        uint8_t *grown = PyMem_Realloc(n->long_tail, room);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        n->long_tail = grown;
        n->long_tail_room = room;
    }
    memcpy(n->long_tail, payload, bytes);
    memcpy(n->long_tail + bytes, n->tail, tail_bytes);
    return 0;
}

/* (template_id, psn_fields, data_fields, payload). 1, -1. */
static int send_payload(tc_nic *n, const tc_template *t,
                        uint64_t psn_fields, uint64_t data_fields,
                        uint64_t now_ns, PyObject *packet,
                        tc_departure *out)
{
    if (PyTuple_GET_SIZE(packet) != 4) {
        PyErr_SetString(PyExc_TypeError, "a NIC's packet lacks its payload");
        return -1;
    }
    if (PyObject_GetBuffer(PyTuple_GET_ITEM(packet, 3), &n->buffer,
                           PyBUF_SIMPLE) < 0)
        return -1;
    uint32_t bytes = tc_payload_bytes(n->codec, data_fields), tail_bytes;
    if (n->buffer.len != (Py_ssize_t)bytes) {
        PyErr_Format(PyExc_ValueError,
                     "a NIC's payload has %zd bytes, its packet says %u",
                     n->buffer.len, (unsigned)bytes);
        return -1;
    }
    uint32_t len =
        tc_build_payload(n->codec, t, psn_fields, data_fields,
                         (uint32_t)now_ns, n->buffer.buf, n->frame, n->tail,
                         &tail_bytes);
    if (!len)
        return too_long();
    if (join_tail(n, n->buffer.buf, bytes, tail_bytes) < 0)
        return -1;
    *out = (tc_departure){.head = n->frame, .head_len = len,
                          .tail = n->long_tail,
                          .tail_len = bytes + tail_bytes};
    return 1;
}

/* (template_id, a, b) of a kind that has a template. 1, -1. */
static int send_packet(tc_nic *n, uint64_t template_id, uint64_t a, uint64_t b,
                       uint64_t now_ns, PyObject *packet, tc_departure *out)
{
    const tc_layout *l = &n->codec->at;
    uint32_t kind = (uint32_t)(template_id & ((1ull << l->kind_bits) - 1));
    tc_template *t = template_of(n, template_id, kind);
    if (!t)
        return -1;
    out->head = n->frame;
    if (kind == l->kind_data) {
        out->head_len = tc_build_data(n->codec, t, a, b, (uint32_t)now_ns,
                                      n->frame, &out->virt);
        return out->head_len ? 1 : too_long();
    }
    if (kind == l->kind_payload)
        return send_payload(n, t, a, b, now_ns, packet, out);
    if (kind == l->kind_ack)
        out->head_len = tc_build_ack(n->codec, t, a, (uint32_t)b, n->frame);
    else
        out->head_len = tc_build_nic_ack(n->codec, t, (uint32_t)a, (uint32_t)b,
                                         n->frame);
    return 1;
}

/* A tuple of next_packet. 1, -1; takes the reference. */
static int depart_packet(tc_nic *n, uint64_t now_ns, PyObject *packet,
                         tc_departure *out)
{
    n->sent = packet;
    if (PyTuple_GET_SIZE(packet) < 3) {
        PyErr_SetString(PyExc_TypeError, "a NIC's packet is too short");
        return -1;
    }
    uint64_t template_id, a, b;
    if (read_number(PyTuple_GET_ITEM(packet, 0), &template_id) < 0)
        return -1;
    if (template_id == n->codec->at.kind_raw)
        return send_raw(n, PyTuple_GET_ITEM(packet, 1),
                        PyTuple_GET_ITEM(packet, 2), out);
    if (read_number(PyTuple_GET_ITEM(packet, 1), &a) < 0 ||
        read_number(PyTuple_GET_ITEM(packet, 2), &b) < 0)
        return -1;
    return send_packet(n, template_id, a, b, now_ns, packet, out);
}

int tc_nic_depart(tc_nic *n, uint64_t now_ns, tc_departure *out,
                  uint64_t *next_ns)
{
    memset(out, 0, sizeof *out);
    tc_nic_release(n);
    PyObject *said = tc_nic_call(n, NEXT_PACKET, now_ns, NULL, 0);
    if (!said)
        return -1;
    if (PyTuple_Check(said))
        return depart_packet(n, now_ns, said, out);
    int bad = read_time(said, now_ns, next_ns);
    Py_DECREF(said);
    return bad;
}
