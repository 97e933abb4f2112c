/* Sending of a NIC in Python: builds frames from the packets that it returns.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A template is requested from the NIC once and cached, until its slot belongs
 * to another flow's end (the sender's or the receiver's state of a flow).
 */
#include "tc_nic_port.h"

#include <string.h>

/* Templates per end of a flow: one for data or ACKs, one for NIC ACKs. */
#define TEMPLATES 2u

/* Converts a non-negative number. Returns 0 or -1. */
static int read_number(PyObject *object, uint64_t *out)
{
    /* the fastest of Python's functions on machines whose long has 64 bits */
    long value = PyLong_AsLong(object);
    if (value < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_OverflowError,
                            "a NIC returned a negative number");
        return -1;
    }
    *out = (uint64_t)value;
    return 0;
}

/* Converts the next time that a NIC returns: None or a number. Returns 0 or
 * -1. */
static int read_time(PyObject *object, uint64_t now_ns, uint64_t *next_ns)
{
    *next_ns = TC_NEVER;
    if (object == Py_None)
        return 0;
    int overflow;
    long long time_ns = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (time_ns == -1 && PyErr_Occurred())
        return -1;
    if (overflow > 0)
        return 0;
    /* the NIC has no packet at now_ns */
    *next_ns = time_ns <= (long long)now_ns ? now_ns + 1 : (uint64_t)time_ns;
    return 0;
}

/* Sends bytes and a number of virtual bytes unchanged. Returns 1 or -1. */
static int send_raw(tc_nic *n, PyObject *data, PyObject *virtual_bytes,
                    tc_departure *out)
{
    uint64_t virt;
    if (read_number(virtual_bytes, &virt) < 0 ||
        PyObject_GetBuffer(data, &n->buffer, PyBUF_SIMPLE) < 0)
        return -1;
    if (virt > TC_MOST_BYTES || n->buffer.len > (Py_ssize_t)TC_MOST_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a NIC's frame is too long");
        return -1;
    }
    out->head = n->buffer.buf;
    out->head_len = (uint32_t)n->buffer.len;
    out->virt = (uint32_t)virt;
    return 1;
}

/* Asks the NIC for a template and caches it, in place of an older one. Returns
 * NULL with an exception. */
static tc_template *request_template(tc_nic *n, uint64_t template_id,
                                     uint64_t slot)
{
    if (!n->calls[TEMPLATE]) {
        PyErr_SetString(PyExc_TypeError,
                        "a NIC without a method template sent a packet");
        return NULL;
    }
    PyObject *args[2] = {NULL, PyLong_FromUnsignedLongLong(template_id)};
    if (!args[1])
        return NULL;
    PyObject *result =
        PyObject_Vectorcall(n->calls[TEMPLATE], args + 1,
                            1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(args[1]);
    if (!result)
        return NULL;
    const char *head, *body;
    Py_ssize_t head_len, body_len;
    tc_template *template = NULL;
    if (!PyTuple_Check(result))
        PyErr_SetString(PyExc_TypeError, "a NIC's template is no tuple");
    if (!PyTuple_Check(result) ||
        !PyArg_ParseTuple(result, "y#y#:template", &head, &head_len, &body,
                          &body_len))
        goto out;
    tc_cached_template *cached = n->templates[slot];
    if (!cached)
        cached = n->templates[slot] = PyMem_Malloc(sizeof *cached);
    if (!cached) {
        PyErr_NoMemory();
        goto out;
    }
    cached->handle = UINT64_MAX; /* invalid until the rest has succeeded */
    uint32_t kind =
        (uint32_t)(template_id & ((1ull << n->codec->layout.kind_bits) - 1));
    if (head_len > (Py_ssize_t)TC_TEMPLATE_MAX ||
        body_len > (Py_ssize_t)TC_TEMPLATE_MAX ||
        tc_template_init(n->codec, &cached->content, kind,
                         (const uint8_t *)head, (uint32_t)head_len,
                         (const uint8_t *)body, (uint32_t)body_len) < 0) {
        PyErr_Format(PyExc_ValueError,
                     "a NIC's template of kind %u has an invalid length: %zd "
                     "header and %zd body bytes",
                     (unsigned)kind, head_len, body_len);
        goto out;
    }
    cached->handle = template_id >> n->codec->layout.kind_bits;
    template = &cached->content;
out:
    Py_DECREF(result);
    return template;
}

/* The template of an id, from the cache or the NIC; NULL with an exception. */
static tc_template *template_of(tc_nic *n, uint64_t template_id, uint32_t kind)
{
    uint64_t handle = template_id >> n->codec->layout.kind_bits;
    uint64_t end = handle & ((1ull << n->codec->layout.slot_bits) - 1);
    uint64_t slot = end * TEMPLATES + (kind == n->codec->layout.kind_nic_ack);
    if (slot >= n->template_count) {
        uint64_t count = 2 * (slot + TEMPLATES);
        tc_cached_template **grown =
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
    tc_cached_template *cached = n->templates[slot];
    return cached && cached->handle == handle
               ? &cached->content
               : request_template(n, template_id, slot);
}

static int too_long(void)
{
    PyErr_SetString(PyExc_ValueError,
                    "a NIC's packet is too long for IPv4");
    return -1;
}

/* Copies a real payload, padding and ICRC into one buffer. Returns 0 or -1. */
static int join_tail(tc_nic *n, const uint8_t *payload, uint32_t bytes,
                     uint32_t tail_bytes)
{
    uint32_t needed = bytes + tail_bytes;
    if (needed > n->payload_and_icrc_size) {
        uint8_t *grown = PyMem_Realloc(n->payload_and_icrc, needed);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        n->payload_and_icrc = grown;
        n->payload_and_icrc_size = needed;
    }
    memcpy(n->payload_and_icrc, payload, bytes);
    memcpy(n->payload_and_icrc + bytes, n->tail, tail_bytes);
    return 0;
}

/* Sends (template_id, psn_fields, data_fields, payload). Returns 1 or -1. */
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
                     "a NIC's payload has %zd bytes, expected %u",
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
                          .tail = n->payload_and_icrc,
                          .tail_len = bytes + tail_bytes};
    return 1;
}

/* Sends (template_id, a, b) of a kind that has a template; tailrace.codec.calls
 * says what a and b are for each kind. Returns 1 or -1. */
static int send_packet(tc_nic *n, uint64_t template_id, uint64_t a, uint64_t b,
                       uint64_t now_ns, PyObject *packet, tc_departure *out)
{
    const tc_layout *l = &n->codec->layout;
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

/* Sends a tuple from next_packet, whose reference it steals. Returns 1 or
 * -1. */
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
    if (template_id == n->codec->layout.kind_raw)
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
    PyObject *result = tc_nic_call(n, NEXT_PACKET, now_ns, NULL, 0);
    if (!result)
        return -1;
    if (PyTuple_Check(result))
        return depart_packet(n, now_ns, result, out);
    int status = read_time(result, now_ns, next_ns);
    Py_DECREF(result);
    return status;
}
