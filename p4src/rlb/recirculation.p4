// SPDX-License-Identifier: Apache-2.0
// Recirculation: a packet leaves by the port MIRROR, which has no link (common/types.p4), and enters ingress again. So
// it waits for path p, although PFC may soon pause p (a warning: warnings.p4): the other path p_s would take longer
// (reroute.p4). Here are delay, limits (RLB §IV-B.1) and queue accounts (queued bytes by port, common/queues.p4).
//
//   begin   the packet's bytes are charged (added) to its ingress port and to MIRROR; egress keeps both charges, as the
//           packet stays buffered
//   return  both charges are removed, as if the packet had just arrived; the delay t_rc of the recirculation is measured
//
// Limits: `most` recirculations of a packet, and `room` packets at the same time. With `dynamic` (the paper's RLB*):
//   eq. 4, 5   bytes in the ingress queue, this packet, and bytes that arrive within t_rc: at most Q_PFC (pause_bytes)
//   eq. 6      the packet's delay so far + t_rc <= RTT(p_s) - RTT(p)
// DEVIATION: eq. 5 is to give the number of packets that fit below Q_PFC, but divides bytes by a time. Here one packet
// must fit. A packet in MIRROR's queue stays charged to its ingress port, so eq. 4 counts it for the next packet.
// DEVIATION: t_rc is measured with packets. The paper computes it from the length of the queue (times the rate, which
// is no time), but some targets do not report this length.
// A recirculated packet has no ingress timestamp in v1model (simple_switch clears it). Its time is the later of two:
// when the newest packet came from a link, and when this packet left MIRROR's queue. Both lie before its arrival in
// ingress, the second by the packet's wait for ingress: so its time is too early by this wait at most, never too late.
#ifndef RLB_RECIRCULATION_P4
#define RLB_RECIRCULATION_P4
#include "common/queues.p4"
#include "rlb/config.p4"

// Written and read in ingress only.
@name("recirculation_ticks") register<bit<32>>(1) recirculation_ticks;         // the newest t_rc
@name("recirculation_seen_ticks") register<ticks_t>(1) recirculation_seen_ticks;  // when it was measured
@name("recirculating") register<bit<16>>(1) recirculating;                     // packets that are being recirculated
// Index: earlier recirculations of the packet. The sum is the number of recirculations; the last cell that is not 0
// shows the maximum for one packet.
@name("recirculations") counter(RECIRCULATION_COUNTS, CounterType.packets_and_bytes) recirculations;
@name("recirculations_refused") counter(1, CounterType.packets) recirculations_refused;

// The time of a packet in ingress. `latest_ticks`: timestamp of the newest packet from a link; ingress only.
@name("latest_ticks") register<ticks_t>(1) latest_ticks;

control IngressTime(in bool returned, in ticks_t arrived_ticks, in preserved_t preserved, out ticks_t now_ticks) {
    apply {
        ticks_t latest;
        now_ticks = arrived_ticks;
        latest_ticks.read(latest, 0);
        if (returned) {
            now_ticks = preserved.left_ticks;
            if (latest > now_ticks) {
                now_ticks = latest;
            }
        } else if (arrived_ticks > latest) {
            latest_ticks.write(0, arrived_ticks);
        }
    }
}

// Applied early in ingress, for a recirculated packet.
control EndRecirculation(in ticks_t now_ticks, inout preserved_t preserved) {
    @hidden action undo_charge() {
        bit<32> total;
        enqueued_by_source.read(total, (bit<32>)preserved.in_port);
        enqueued_by_source.write((bit<32>)preserved.in_port, total - preserved.bytes);  // egress writes dequeued_*
        dequeued_bytes.read(total, (bit<32>)(bit<9>)SpecialPort_t.MIRROR);  // a cell that egress never writes
        dequeued_bytes.write((bit<32>)(bit<9>)SpecialPort_t.MIRROR, total + preserved.bytes);
    }
    apply {
        bit<16> packets;
        undo_charge();
        // a delay of 0 ticks is not measured
        if (now_ticks != preserved.sent_ticks) {
            recirculation_ticks.write(0, (bit<32>)(now_ticks - preserved.sent_ticks));
            recirculation_seen_ticks.write(0, now_ticks);
        }
        recirculating.read(packets, 0);
        recirculating.write(0, packets |-| 1);
        preserved.in_recirculation = 0;
    }
}

// The expected delay of the next recirculation: the delay of the last one (eq. 6), or `usual_ticks` if that is too old.
control ExpectedDelay(in ticks_t now_ticks, in recirculation_config_t config, out bit<32> delay_ticks) {
    apply {
        ticks_t seen_ticks;
        recirculation_ticks.read(delay_ticks, 0);
        recirculation_seen_ticks.read(seen_ticks, 0);
        if (seen_ticks == 0 || LONG_AGO(now_ticks, seen_ticks, (ticks_t)config.trust_ticks)) {
            delay_ticks = config.usual_ticks;
        }
    }
}

// Whether the limits allow another recirculation. `gain_ticks`: RTT(p_s) - RTT(p).
control MayRecirculate(in preserved_t preserved, in bit<32> bytes, in bit<32> gain_ticks, in bit<32> delay_ticks,
                       in ticks_t now_ticks, in bit<32> pause_bytes, in recirculation_config_t config,
                       out bool may_recirculate) {
    SourceLoad() source_load;  // bytes that came in at a port and still wait
    apply {
        bit<16> packets;
        recirculating.read(packets, 0);
        may_recirculate = preserved.count < config.most && packets < config.room;
        if (config.dynamic == 1) {
            bit<32> queue_bytes;
            source_load.apply(preserved.in_port, queue_bytes);
            // inflow: bytes per tick, 16 fractional bits
            bit<64> inflow_bytes = ((bit<64>)config.inflow * (bit<64>)delay_ticks) >> 16;
            bool fits = (bit<64>)queue_bytes + (bit<64>)bytes + inflow_bytes <= (bit<64>)pause_bytes;  // eq. 4
            bool pays = now_ticks - preserved.first_ticks + (ticks_t)delay_ticks <= (ticks_t)gain_ticks;  // eq. 6
            may_recirculate = may_recirculate && fits && pays;
        }
        if (!may_recirculate) {
            recirculations_refused.count(0);
        }
    }
}

// Sends the packet to MIRROR and records that it is recirculating.
control Recirculate(in bit<32> bytes, in ticks_t now_ticks, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    ChargeQueues() charge_queues;
    apply {
        bit<16> packets;
        port_t port = (port_t)(bit<9>)SpecialPort_t.MIRROR;
        standard_metadata.egress_spec = port;
        charge_queues.apply(bytes, meta.rlb.preserved.in_port, port, meta.charge);
        recirculating.read(packets, 0);
        recirculating.write(0, packets + 1);
        recirculations.count((bit<32>)meta.rlb.preserved.count);
        meta.rlb.preserved.in_recirculation = 1;
        meta.rlb.preserved.bytes = bytes;
        meta.rlb.preserved.count = meta.rlb.preserved.count + 1;
        meta.rlb.preserved.sent_ticks = now_ticks;
    }
}

#endif
