// SPDX-License-Identifier: Apache-2.0
// Data that waits for a closed port (paused by PFC) is recirculated, and kept in order by sequence numbers.
//
//   ingress  a data packet gets its egress port's next number, after all limits, and must not be dropped afterwards
//   egress   port open, and the number is the next to leave  -> the packet leaves
//            else                                            -> recirculated
//   ingress  recirculated: port open, and the number is the next to leave, or follows the last one that was let in
//                         -> let in: enqueued at its port, with priority over data that was not recirculated
//            else         -> enqueued at port WAITING, whose queue has a limited rate; egress recirculates it again
//
// Egress decides the order, as one egress thread serves a port. Ingress only holds back packets that egress would
// recirculate again. The packet that is next to leave is let in each time that it returns to ingress. Packets in the
// queue of a closed port stay there in order, and are recirculated only when the queue serves them.
//
// If a numbered packet were lost, its port would wait for this number for ever: so after `patience_ticks` the next
// packet leaves out of turn. Queues must have space for `room` packets, so that they do not drop.
#ifndef PFC_ORDER_P4
#define PFC_ORDER_P4
#include "common/drops.p4"
#include "common/instances.p4"
#include "pfc/closed.p4"

const bit<3> PRIORITY_RESUMED = 1;  // of packets that are let in: above data, below control

// Index: port. Sequence numbers wrap at 2^32. pfc/watch.p4 has more registers: pfc_issued, pfc_turn and others.
@name("pfc_let_in") register<bit<32>>(PORTS) pfc_let_in;                // number after the last one let in; ingress only
@name("pfc_left_ticks") register<ticks_t>(PORTS) pfc_left_ticks;        // when the last packet left; written by egress
@name("pfc_all_issued") register<bit<32>>(1) pfc_all_issued;            // numbered packets of all ports; ingress only
@name("pfc_all_left") register<bit<32>>(1) pfc_all_left;                // those that have left; written by egress
@name("pfc_waits") counter(PORTS, CounterType.packets) pfc_waits;       // recirculations by egress of the port

// Whether the port has been open for more than `patience_ticks` and no packet has left by it in that time.
control IsStuck(in port_t port, in ticks_t closed_until_ticks, in ticks_t now_ticks, in bit<32> patience_ticks,
                out bool stuck) {
    apply {
        ticks_t left_ticks;
        pfc_left_ticks.read(left_ticks, (bit<32>)port);
        stuck = LONG_AGO(now_ticks, closed_until_ticks, (ticks_t)patience_ticks)
            && LONG_AGO(now_ticks, left_ticks, (ticks_t)patience_ticks);
    }
}

// In ingress, before the charge: assigns a sequence number; drops data in a storm, or if `room` numbered packets wait.
control TakeNumber(in ticks_t now_ticks, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    InStorm() in_storm;
    Drop() drop;
    apply {
        if (standard_metadata.priority == PRIORITY_DATA
            && standard_metadata.egress_spec < (port_t)(bit<9>)SpecialPort_t.WAITING) {
            bit<32> all_issued;
            bit<32> all_left;
            bool dropped_by_storm;
            pfc_all_issued.read(all_issued, 0);
            pfc_all_left.read(all_left, 0);
            in_storm.apply(standard_metadata.egress_spec, now_ticks, dropped_by_storm);
            if (dropped_by_storm) {
                drop.apply(DropReason_t.PFC_STORM, meta, standard_metadata);
            } else if (all_issued - all_left >= meta.pfc.config.room) {
                drop.apply(DropReason_t.NO_WAITING_ROOM, meta, standard_metadata);
            } else {
                bit<32> number;
                bit<32> turn;
                pfc_all_issued.write(0, all_issued + 1);
                pfc_issued.read(number, (bit<32>)standard_metadata.egress_spec);
                pfc_issued.write((bit<32>)standard_metadata.egress_spec, number + 1);
                pfc_turn.read(turn, (bit<32>)standard_metadata.egress_spec);
                if (turn == number) {
                    pfc_waits_since_ticks.write((bit<32>)standard_metadata.egress_spec, now_ticks);
                }
                meta.pfc.wait.numbered = 1;
                meta.pfc.wait.number = number;
            }
        }
    }
}

// In egress of the packet's port. `has_turn`: the packet may leave, else it is recirculated.
control TakeTurn(in port_t port, in ticks_t now_ticks, in bit<32> number, in bit<32> patience_ticks,
                 out bool has_turn) {
    IsStuck() is_stuck;

    // `passed`: count of this packet's number and the skipped numbers before it; none of them counts as waiting.
    @hidden action pass_turn(in bit<32> passed) {
        bit<32> all_left;
        pfc_all_left.read(all_left, 0);
        pfc_all_left.write(0, all_left + passed);
    }
    apply {
        ticks_t closed_until_ticks;
        bit<32> turn;
        bool stuck;
        pfc_closed_until_ticks.read(closed_until_ticks, (bit<32>)port);
        pfc_turn.read(turn, (bit<32>)port);
        is_stuck.apply(port, closed_until_ticks, now_ticks, patience_ticks, stuck);
        bool late = turn - number < (bit<32>)(1 << 31) && turn != number;  // its number was skipped before
        has_turn = now_ticks >= closed_until_ticks && (number == turn || late || stuck);
        if (has_turn && !late) {
            pfc_turn.write((bit<32>)port, number + 1);
            pfc_left_ticks.write((bit<32>)port, now_ticks);
            pass_turn(number - turn + 1);
        }
    }
}

// In ingress, for a packet that was recirculated.
control AfterRecirculation(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    WatchPauses() watch_pauses;
    IsStuck() is_stuck;
    apply {
        port_t port = meta.pfc.wait.out_port;
        bit<32> number = meta.pfc.wait.number;
        ticks_t closed_until_ticks;
        bit<32> turn;
        bit<32> let_in;
        bool stuck;
        watch_pauses.apply(port, meta.pfc.wait.seen_ticks, meta.pfc.limits);
        pfc_closed_until_ticks.read(closed_until_ticks, (bit<32>)port);
        pfc_turn.read(turn, (bit<32>)port);
        pfc_let_in.read(let_in, (bit<32>)port);
        is_stuck.apply(port, closed_until_ticks, meta.pfc.wait.seen_ticks, meta.pfc.config.patience_ticks, stuck);
        bool due = turn - number < (bit<32>)(1 << 31);  // it is next to leave, or was skipped before
        meta.charge.bytes = meta.pfc.wait.bytes;
        meta.charge.in_port = meta.pfc.wait.in_port;
        meta.charge.out_port = port;
        meta.route.to_host = meta.pfc.wait.to_host == 1;
        if (meta.pfc.wait.seen_ticks >= closed_until_ticks && (due || number == let_in || stuck)) {
            pfc_let_in.write((bit<32>)port, number + 1);
            standard_metadata.egress_spec = port;
            standard_metadata.priority = PRIORITY_RESUMED;
        } else {
            standard_metadata.egress_spec = (port_t)(bit<9>)SpecialPort_t.WAITING;
        }
    }
}

// In egress: recirculates the packet, with the metadata that it needs in ingress.
control RecirculateWaiting(in ticks_t now_ticks, inout metadata_t meta) {
    apply {
        meta.pfc.wait.bytes = meta.charge.bytes;
        meta.pfc.wait.in_port = meta.charge.in_port;
        meta.pfc.wait.out_port = meta.charge.out_port;
        meta.pfc.wait.to_host = (bit<1>)meta.route.to_host;
        meta.pfc.wait.seen_ticks = now_ticks;
        recirculate_preserving_field_list(KEEP_FOR_WAITING);
    }
}

#endif
