/* Traffic manager: ports, priority queues, serialisation, PFC.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each port has strict-priority queues (higher number first), limited in
 * packets and in bytes, tail drop. A packet runs egress when it leaves its
 * queue; its bytes then occupy the port for length / rate. Limits in packets/s
 * are per queue, as simple_switch's set_queue_rate has them.
 *
 * PFC (IEEE 802.1Qbb): bytes buffered in the switch are counted by the port
 * they came in on and the priority they were queued with; above xoff the
 * sender is paused, at xon it is resumed, beyond xoff + headroom packets are
 * dropped. A pause received stops the queue of that priority.
 */
#ifndef TR_TM_H
#define TR_TM_H

#include "tr_core.h"

tr_port *tr_port_get(tr_switch *s, uint32_t port);
/* Takes the next packet that may leave this port now; NULL: none. */
tr_pkt *tr_port_dequeue(tr_switch *s, uint32_t port, uint64_t now_ns);
/* When this port has something to do next, given nothing more arrives. */
uint64_t tr_port_next(const tr_port *port, uint32_t priorities,
                      uint64_t now_ns);
/* Sends p (egress done) from its egress port: serialises it and appends it to
 * the output list. */
void tr_port_send(tr_switch *s, tr_pkt *p, uint64_t now_ns);
void tr_port_flush(tr_switch *s, tr_port *port);

/* PFC. */
void tr_pfc_set(tr_port *t, const tr_pfc_config *cfg);
int tr_pfc_admit(tr_switch *s, tr_pkt *p, uint32_t priority);
void tr_pfc_release(tr_switch *s, tr_pkt *p);
/* Repeats pauses that would run out; the time of the next repeat. */
uint64_t tr_pfc_refresh(tr_switch *s, uint32_t port, uint64_t now_ns);
/* Obeys a pause frame; 0 when the frame is none. */
int tr_pfc_obey(tr_switch *s, uint32_t port, const uint8_t *data,
                uint32_t len, uint64_t now_ns);

#endif
