/* What the files of the NIC port share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tv_nic.c holds a NIC and tells it of arrivals, tv_nic_send.c sends what it
 * has, tv_nic_setup.c is told how packets are read and made.
 */
#ifndef TV_NIC_PORT_H
#define TV_NIC_PORT_H

#include "tv_codec.h"
#include "tv_nic.h"

/* Methods of a packet NIC, and of a frame NIC; names in tv_nic.c. */
enum { ON_DATA, ON_TRIMMED, ON_ACK, ON_CNP, ON_NIC_ACK, ON_FLOW_PAUSE, ON_PFC,
       ON_JUNK, NEXT_PACKET, TEMPLATE, PACKET_CALLS };
enum { ON_FRAME, NEXT_FRAME, NEXT_TIME, FRAME_CALLS };

struct tv_nic {
    PyObject *object;
    PyObject *calls[PACKET_CALLS]; /* bound methods, by kind of NIC */
    int packets;                   /* a packet NIC */
    uint32_t address;              /* packet NIC: its own, IPv4 */
    uint64_t now_ns;
    PyObject *now;                 /* the same; NULL: not made yet */
    tv_template **templates;       /* by end of a flow and kind */
    uint64_t template_count;
    PyObject *sent;                /* whose bytes are on their way out */
    Py_buffer buffer;              /* of it, if buffer.obj */
    uint8_t frame[TV_BUILD_ROOM], tail[TV_TAIL_ROOM];
    uint8_t *long_tail;            /* real payload, padding and ICRC */
    uint32_t long_tail_room;
};

/* How packets are read and made (tv_nic_setup.c). */
extern tv_codec tv_nic_codec;
/* Names of attributes. */
extern PyObject *tv_nic_idle_attr, *tv_nic_data_attr, *tv_nic_virtual_attr;

/* Calls a method with the time and `count` new references, which it takes; one
 * that is NULL stands for an exception. New reference, or NULL. */
PyObject *tv_nic_call(tv_nic *n, int which, uint64_t now_ns, PyObject **given,
                      size_t count);

/* Lets go of what was sent last. */
void tv_nic_release(tv_nic *n);

#endif
