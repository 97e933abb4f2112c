/* Traffic manager: ports, priority queues, serialisation, PFC.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each port has strict-priority queues (higher number first), limited in
 * packets and in bytes, tail drop. A packet runs egress when it leaves its
 * queue; its bytes then occupy the port for length / rate. Limits in packets/s
 * are per queue, as simple_switch's set_queue_rate has them.
 *
 * A packet that ingress truncated takes no more room than it will have on the
 * wire: what is cut off is not kept.
 *
 * PFC (IEEE 802.1Qbb): bytes buffered in the switch are counted by the port
 * they came in on and the priority they came with, which is that they are
 * queued with, less the `rise` of that port; above xoff the
 * sender is paused, at xon it is resumed, beyond xoff + headroom packets are
 * dropped. A pause received stops the queue of that priority. All ports may
 * share one buffer of limited size (tr_buffer.c).
 */
#ifndef TR_TM_H
#define TR_TM_H

#include "tr_core.h"

/* As tr_rx_virtual and tr_run, which call those of the program. */
int tr_data_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
               uint32_t virt, uint64_t now_ps);
uint64_t tr_data_run(tr_switch *s, uint64_t now_ps);
/* Bytes that p takes up in a queue. */
TR_INLINE uint32_t tr_pkt_bytes(const tr_pkt *p)
{
    uint32_t bytes = p->len + p->virt;
    return bytes < p->trunc ? bytes : p->trunc;
}
tr_port *tr_port_get(tr_switch *s, uint32_t port);
/* Takes the next packet that may leave this port now; NULL: none. */
tr_pkt *tr_port_dequeue(tr_switch *s, tr_port *t, uint64_t now_ps);
/* Takes the next packet of a queue, to be dropped; NULL: none. */
tr_pkt *tr_port_discard(tr_switch *s, tr_port *t, uint32_t priority);
/* Drops p, which was to leave by this port. */
void tr_port_drop(tr_switch *s, tr_port *t, tr_pkt *p, enum tr_drop reason);
/* When a packet may leave this port, given nothing more arrives; a time in the
 * past: at once. */
uint64_t tr_port_next(const tr_port *t);
/* Something may have changed for this port: it is looked at next. */
TR_INLINE void tr_port_touch(tr_switch *s, uint32_t port)
{
    s->due[port / 64] |= 1ULL << (port % 64);
    s->due_words |= (uint8_t)(1u << (port / 64));
}
/* No port is due or waits for a time any more. */
void tr_ports_rest(tr_switch *s);
/* Sends p (egress done) from its egress port: serialises it and appends it to
 * the output list. */
void tr_port_send(tr_switch *s, tr_pkt *p, uint64_t now_ps);
void tr_port_flush(tr_switch *s, tr_port *port);

/* The same packet in less room while it waits, p itself where that cannot be.
 * Its headers' bytes are gone then: the deparser writes them. */
tr_pkt *tr_pkt_pack(tr_switch *s, tr_pkt *p);
/* A packed packet as it was; NULL: no memory, and q is as before. */
tr_pkt *tr_pkt_unpack(tr_switch *s, tr_pkt *q);

/* The packet buffer and its accounts. */

/* The priority with which a packet was sent that came in by this port, NULL:
 * none, and waits with another one. */
TR_INLINE uint32_t tr_pfc_class(const tr_port *from, uint32_t priority)
{
    uint32_t rise = from ? from->pfc.rise : 0;
    return priority > rise ? priority - rise : 0;
}

/* Gives p its room, to wait with this priority; one that has room already (it
 * was recirculated) keeps it where it is lossless, else gets it anew.
 * TR_DROP_COUNT, or why there is none. */
enum tr_drop tr_buffer_admit(tr_switch *s, tr_pkt *p, uint32_t priority);
/* Takes the room of p back; its sender may be resumed. */
void tr_buffer_release(tr_switch *s, tr_pkt *p);
/* Headrooms or ports have changed. */
void tr_buffer_reserve(tr_switch *s);
/* There are no packets any more. */
void tr_buffer_clear(tr_switch *s);

/* PFC frames, and what they do. */
void tr_pfc_set(tr_switch *s, tr_port *t, uint32_t port,
                const tr_pfc_config *cfg);
/* Nothing waits any more that came in by this port. */
void tr_pfc_forget(tr_switch *s, tr_port *t);
/* The link of this port is down, and all pauses of either end are void; or it is
 * up again, and the sender is notified of its pauses once more. */
void tr_pfc_link(tr_switch *s, uint32_t port, int up);
/* Repeats the pause of the sender: the headroom is full, so it got lost. */
void tr_pfc_insist(tr_switch *s, uint32_t port, uint32_t priority);
/* Notifies the sender to this port to stop, or to go on. */
void tr_pfc_notify(tr_switch *s, uint32_t port, uint32_t priority, int stop);
/* Repeats pauses that would run out; the time of the next repeat. Only for
 * ports with PFC. */
uint64_t tr_pfc_refresh(tr_switch *s, uint32_t port, uint64_t now_ps);
/* Obeys a pause frame: TR_DROP_PFC_FRAME. Other MAC control frames go nowhere:
 * TR_DROP_MAC_CONTROL. All else is a packet: TR_DROP_COUNT. Only for ports with
 * PFC. */
enum tr_drop tr_pfc_obey(tr_switch *s, uint32_t port, const uint8_t *data,
                         uint32_t len, uint64_t now_ps);
/* The queue obeys a pause until then, a time in the past: none. */
void tr_pfc_gate(tr_port *t, uint32_t priority, uint64_t until_ps,
                 uint64_t now_ps);

/* The PFC watchdog. */

/* Brings the account of a queue up to now, before its pause or its settings
 * change. */
void tr_watch_settle(tr_port *t, uint32_t priority, uint64_t now_ps);
/* Storms begin and end; when to look at the port again. */
uint64_t tr_watch(tr_switch *s, uint32_t port, uint64_t now_ps);
/* The action of the watchdog has changed. */
void tr_watch_action(tr_port *t);
/* A storm ends, if there is one; pauses that last are obeyed again. */
void tr_watch_end(tr_switch *s, uint32_t port, uint32_t priority,
                  uint64_t now_ps);

#endif
