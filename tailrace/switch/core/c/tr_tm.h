/* Traffic manager: ports, priority queues, serialisation, PFC.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each port has strict-priority queues (the highest number first), limited in
 * packets and in bytes, with tail drop. A packet runs egress when it leaves its
 * queue; its bytes then occupy the port for length / rate. Each queue may have
 * a limit in packets/s, like that of simple_switch's set_queue_rate.
 *
 * If ingress truncated a packet, it counts in queue and buffer with its length
 * after truncation.
 *
 * PFC (IEEE 802.1Qbb): buffered bytes are counted by ingress port and class.
 * The class is the priority with which the sender sent the packet: the priority
 * of the packet's queue here minus the `rise` of the ingress port. Above xoff
 * bytes the sender is paused, at xon bytes it is resumed, and above xoff +
 * headroom bytes packets are dropped. A received pause frame stops the queue of
 * its priority. All ports may share a buffer of limited size (tr_buffer.c).
 */
#ifndef TR_TM_H
#define TR_TM_H

#include "tr_core.h"

/* Implementation of tr_rx_virtual and tr_run; each program contains a copy. */
int tr_data_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
               uint32_t virt, uint64_t now_ps);
uint64_t tr_data_run(tr_switch *s, uint64_t now_ps);
/* The length in bytes with which p counts in a queue. */
TR_INLINE uint32_t tr_pkt_bytes(const tr_pkt *p)
{
    uint32_t bytes = p->len + p->virt;
    return bytes < p->trunc ? bytes : p->trunc;
}
/* Appends p to a list of packets. */
TR_INLINE void tr_list_add(tr_pkt **head, tr_pkt **tail, tr_pkt *p)
{
    p->next = NULL;
    if (*tail)
        (*tail)->next = p;
    else
        *head = p;
    *tail = p;
}

/* Removes and returns the first packet of a list that is not empty. */
TR_INLINE tr_pkt *tr_list_take(tr_pkt **head, tr_pkt **tail)
{
    tr_pkt *p = *head;
    *head = p->next;
    if (!*head)
        *tail = NULL;
    p->next = NULL;
    return p;
}

tr_port *tr_port_get(tr_switch *s, uint32_t port);
/* Dequeues the next packet that may leave this port now; NULL: none. */
tr_pkt *tr_port_dequeue(tr_switch *s, tr_port *t, uint64_t now_ps);
/* Dequeues the next packet of a queue, which the caller drops; NULL: none. */
tr_pkt *tr_port_take_to_drop(tr_switch *s, tr_port *t, uint32_t priority);
/* Drops p, whose egress port is t, and counts the drop there. */
void tr_port_drop(tr_switch *s, tr_port *t, tr_pkt *p, enum tr_drop reason);
/* When the next packet may leave this port, if no other packet arrives earlier;
 * now or a past time if it may leave at once. */
uint64_t tr_port_next(const tr_port *t);
/* Marks a port whose state has changed: the event loop serves it next. */
TR_INLINE void tr_port_touch(tr_switch *s, uint32_t port)
{
    s->due[port / 64] |= 1ULL << (port % 64);
    s->due_words |= (uint8_t)(1u << (port / 64));
}
/* Clears the marks and pending times of all ports. */
void tr_ports_clear(tr_switch *s);
/* Sends p, which has passed egress, from its egress port: serialises it and
 * appends it to the output list. */
void tr_port_send(tr_switch *s, tr_pkt *p, uint64_t now_ps);
/* Drops all packets in the port's queues. */
void tr_port_flush(tr_switch *s, tr_port *port);

/* Packs a packet that will wait in a queue into less memory (tr_pack.c). The
 * header bytes are not kept, since the deparser writes them again. Frees p and
 * returns the packed packet, or returns p itself if it cannot be packed. */
tr_pkt *tr_pkt_pack(tr_switch *s, tr_pkt *p);
/* Reverses tr_pkt_pack and frees q; NULL: no memory, and q is unchanged. */
tr_pkt *tr_pkt_unpack(tr_switch *s, tr_pkt *q);

/* The packet buffer (tr_buffer.c). */

/* PFC class of a packet that was received on this port and is queued with this
 * priority: the priority with which it was sent. from NULL: port not used. */
TR_INLINE uint32_t tr_pfc_class(const tr_port *from, uint32_t priority)
{
    uint32_t rise = from ? from->pfc.rise : 0;
    return priority > rise ? priority - rise : 0;
}

/* Charges p to the buffer, to be queued with this priority. A recirculated
 * packet is charged already: a lossless packet keeps its space, a packet that
 * is not lossless is charged again. Returns TR_DROP_COUNT if p is admitted,
 * else the reason for its drop. */
enum tr_drop tr_buffer_admit(tr_switch *s, tr_pkt *p, uint32_t priority);
/* Frees the space of p in the buffer; this may resume its sender. */
void tr_buffer_release(tr_switch *s, tr_pkt *p);
/* Recomputes the reserved bytes, after a change of headrooms or ports. */
void tr_buffer_reserve(tr_switch *s);
/* Resets the buffer when all packets have been freed. */
void tr_buffer_clear(tr_switch *s);

/* PFC: pause frames to senders, and received pause frames (tr_pfc.c). */
void tr_pfc_set(tr_switch *s, tr_port *t, uint32_t port,
                const tr_pfc_config *cfg);
/* Resets the ingress state of a port when its packets have been freed. */
void tr_pfc_forget(tr_switch *s, tr_port *t);
/* Handles a change of the port's link. Down: cancels all received pauses. Up:
 * sends the current pauses to the sender again. */
void tr_pfc_link(tr_switch *s, uint32_t port, int up);
/* Repeats the pause frame to a sender that still sends although the headroom is
 * full: the last pause frame was probably lost. */
void tr_pfc_insist(tr_switch *s, uint32_t port, uint32_t priority);
/* Sends a pause frame (stop) or resume frame to the port's peer. */
void tr_pfc_notify(tr_switch *s, uint32_t port, uint32_t priority, int stop);
/* Repeats pauses before they expire; returns the time of the next repeat. Only
 * for ports with PFC. */
uint64_t tr_pfc_refresh(tr_switch *s, uint32_t port, uint64_t now_ps);
/* Handles a received frame if it is MAC control. TR_DROP_PFC_FRAME: a PFC
 * frame, which was obeyed; TR_DROP_MAC_CONTROL: another MAC control frame, to
 * be dropped; TR_DROP_COUNT: an ordinary packet. Only for ports with PFC. */
enum tr_drop tr_pfc_obey(tr_switch *s, uint32_t port, const uint8_t *data,
                         uint32_t len, uint64_t now_ps);
/* Pauses a queue until until_ps; a time in the past ends its pause. */
void tr_pfc_pause_until(tr_port *t, uint32_t priority, uint64_t until_ps,
                        uint64_t now_ps);

/* The PFC watchdog (tr_watch.c): a queue that is paused for too long has a
 * storm. */

/* Updates the leaky bucket of a queue up to now, before its pause or its
 * settings change. */
void tr_watch_settle(tr_port *t, uint32_t priority, uint64_t now_ps);
/* Begins and ends storms of a port's queues; returns when to check next. */
uint64_t tr_watch(tr_switch *s, uint32_t port, uint64_t now_ps);
/* Applies the watchdog's action (drop or ignore) to the queues in a storm. */
void tr_watch_action(tr_port *t);
/* Ends a queue's storm, if there is one, and pauses the queue if a requested
 * pause has not ended. */
void tr_watch_end(tr_switch *s, uint32_t port, uint32_t priority,
                  uint64_t now_ps);

#endif
