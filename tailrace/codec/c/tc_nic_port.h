/* What the files of the NIC port share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tc_nic.c holds a NIC and tells it of arrivals, tc_nic_send.c sends what it
 * has, tc_python.c is the face that Python sees.
 */
#ifndef TC_NIC_PORT_H
#define TC_NIC_PORT_H

#include "tc_codec.h"
#include "tc_nic.h"

/* Methods of a NIC; names in tc_nic.c. It has the first ones or on_frame, and
 * must have a template if it sends packets that are made here. */
enum { ON_DATA, ON_TRIMMED, ON_ACK, ON_CNP, ON_NIC_ACK, ON_FLOW_PAUSE, ON_PFC,
       ON_DISCARD, PARSED_CALLS, NEXT_PACKET = PARSED_CALLS, ON_FRAME, TEMPLATE,
       CALLS };

/* The type Codec: how packets are read and made. */
typedef struct tc_codec_object {
    PyObject_HEAD
    tc_codec codec;
} tc_codec_object;

extern PyTypeObject tc_codec_type;
extern PyTypeObject tc_timer_heap_type;

/* What is kept of one end of a flow: its template, and whose it is. */
typedef struct tc_kept {
    uint64_t handle;
    tc_template made;
} tc_kept;

struct tc_nic {
    PyObject_HEAD
    tc_codec_object *owner;
    const tc_codec *codec;         /* the owner's */
    PyObject *object;
    PyObject *calls[CALLS];        /* bound methods; NULL: it has none */
    uint32_t address;              /* its own, IPv4, unless it has on_frame */
    uint64_t now_ns;
    PyObject *now;                 /* the same; NULL: not made yet */
    tc_kept **templates;           /* by place of an end, and kind */
    uint64_t template_count;
    PyObject *sent;                /* whose bytes are on their way out */
    Py_buffer buffer;              /* of it, if buffer.obj */
    uint8_t frame[TC_BUILD_ROOM], tail[TC_TAIL_ROOM];
    uint8_t *long_tail;            /* real payload, padding and ICRC */
    uint32_t long_tail_room;
};

/* Makes what was allocated a port of this NIC. 0; -1: it has not the methods of
 * one. */
int tc_nic_init(tc_nic *n, PyObject *nic);
int tc_nic_traverse(tc_nic *n, visitproc visit, void *arg);
int tc_nic_clear(tc_nic *n);
/* Lets go of all that it holds. */
void tc_nic_free(tc_nic *n);

/* Calls a method with the time and `count` new references, which it takes; one
 * that is NULL stands for an exception. New reference, or NULL. */
PyObject *tc_nic_call(tc_nic *n, int which, uint64_t now_ns, PyObject **given,
                      size_t count);

/* Lets go of what was sent last. */
void tc_nic_release(tc_nic *n);

#endif
