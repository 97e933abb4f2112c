/* Declarations that the files of the NIC port share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tc_nic.c calls a NIC for arrivals, tc_nic_send.c builds the frames that it
 * sends, tc_python.c is the interface to Python.
 */
#ifndef TC_NIC_PORT_H
#define TC_NIC_PORT_H

#include "tc_codec.h"
#include "tc_nic.h"

/* Methods of a NIC; their names are in tc_nic.c. A NIC has either those before
 * PARSED_CALLS, or on_frame. All have next_packet; those that send packets that
 * are built here need `template`. */
enum { ON_DATA, ON_TRIMMED, ON_ACK, ON_CNP, ON_NIC_ACK, ON_FLOW_PAUSE, ON_PFC,
       ON_DISCARD, PARSED_CALLS, NEXT_PACKET = PARSED_CALLS, ON_FRAME, TEMPLATE,
       CALLS };

/* The Python type Codec, which parses and builds packets. */
typedef struct tc_codec_object {
    PyObject_HEAD
    tc_codec codec;
} tc_codec_object;

extern PyTypeObject tc_codec_type;
extern PyTypeObject tc_timer_heap_type;

/* A cached template, and the handle of the flow's end (the sender's or the
 * receiver's state of a flow in a NIC) to which it belongs. */
typedef struct tc_cached_template {
    uint64_t handle;
    tc_template content;
} tc_cached_template;

struct tc_nic {
    PyObject_HEAD
    tc_codec_object *owner;        /* the Python object Codec */
    const tc_codec *codec;         /* that of `owner` */
    PyObject *object;              /* the NIC */
    PyObject *calls[CALLS];        /* bound methods; NULL: not defined */
    uint32_t address;              /* IPv4, of the host; unset with on_frame */
    uint64_t now_ns;
    PyObject *now;                 /* now_ns as a Python int, or NULL */
    tc_cached_template **templates; /* by slot of a flow's end, then kind */
    uint64_t template_count;
    PyObject *sent;                /* owns the bytes that were sent last */
    Py_buffer buffer;              /* of `sent`, if buffer.obj */
    uint8_t frame[TC_BUILD_MAX], tail[TC_TAIL_MAX];
    uint8_t *payload_and_icrc;     /* buffer: real payload, padding, ICRC */
    uint32_t payload_and_icrc_size;
};

/* Initialises an allocated port for this NIC. Returns 0, or -1 if the NIC lacks
 * a method. */
int tc_nic_init(tc_nic *n, PyObject *nic);
int tc_nic_traverse(tc_nic *n, visitproc visit, void *arg);
int tc_nic_clear(tc_nic *n);
/* Releases all memory and references of the port. */
void tc_nic_free(tc_nic *n);

/* Calls a method with the time and `count` new references, which it steals; a
 * NULL among them means that an exception is set. Returns a new reference, or
 * NULL. */
PyObject *tc_nic_call(tc_nic *n, int which, uint64_t now_ns, PyObject **given,
                      size_t count);

/* Releases the packet that was sent last. */
void tc_nic_release(tc_nic *n);

#endif
