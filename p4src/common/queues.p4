// SPDX-License-Identifier: Apache-2.0
// Queue accounts: how many bytes wait in the switch, readable in ingress, for each egress port (least-loaded selection,
// limits, ECN) and for each ingress port (PFC prediction).
//
//   ingress end:  charge    enqueued_* += bytes
//   egress start: release   dequeued_* += bytes          load = enqueued - dequeued  (modulo 2^32)
//
// There are two counters that only grow instead of one that grows and shrinks: on BMv2, ingress and egress are
// different threads, and updates of a cell that both write would be lost. Several egress threads write
// `dequeued_by_source`; BMv2 locks a register during one action, so one action reads and writes it.
// Packets that did not pass ingress (clones, multicast copies) have no charge and release none. A recirculated packet
// is charged again, for its egress port only. If the traffic manager dropped a packet, its bytes would stay in the
// account for ever, so `set_queue_limit` keeps the load below the traffic manager's limit.
#ifndef COMMON_QUEUES_P4
#define COMMON_QUEUES_P4
#include "common/metadata.p4"

// Index: port. Cell: bytes since the switch started, modulo 2^32. Written only in this file.
@name("enqueued_bytes") register<bit<32>>(PORTS) enqueued_bytes;            // by egress port, at ingress
@name("dequeued_bytes") register<bit<32>>(PORTS) dequeued_bytes;            // by egress port, at egress
@name("enqueued_by_source") register<bit<32>>(PORTS) enqueued_by_source;    // by ingress port, at ingress
@name("dequeued_by_source") register<bit<32>>(PORTS) dequeued_by_source;    // by ingress port, at egress

// Bytes that wait for an egress port.
control QueueLoad(in port_t port, out bit<32> bytes) {
    apply {
        bit<32> enqueued;
        bit<32> dequeued;
        enqueued_bytes.read(enqueued, (bit<32>)port);
        dequeued_bytes.read(dequeued, (bit<32>)port);
        bytes = enqueued - dequeued;
    }
}

// Bytes that came in at a port and wait for any egress port.
control SourceLoad(in port_t port, out bit<32> bytes) {
    apply {
        bit<32> enqueued;
        bit<32> dequeued;
        enqueued_by_source.read(enqueued, (bit<32>)port);
        dequeued_by_source.read(dequeued, (bit<32>)port);
        bytes = enqueued - dequeued;
    }
}

// At the end of ingress, for a unicast packet. `in_port` is a special port if the packet did not come over a link.
control ChargeQueues(in bit<32> bytes, in port_t in_port, in port_t out_port, inout charge_t charge) {
    @hidden action add() {
        bit<32> total;
        enqueued_bytes.read(total, (bit<32>)out_port);
        enqueued_bytes.write((bit<32>)out_port, total + bytes);
        bit<32> from_source;
        enqueued_by_source.read(from_source, (bit<32>)in_port);
        enqueued_by_source.write((bit<32>)in_port, from_source + bytes);
        charge.bytes = bytes;
        charge.in_port = in_port;
        charge.out_port = out_port;
    }
    apply {
        add();
    }
}

// Applied first in egress.
control ReleaseQueues(inout charge_t charge) {
    @hidden action subtract() {
        bit<32> total;
        dequeued_bytes.read(total, (bit<32>)charge.out_port);
        dequeued_bytes.write((bit<32>)charge.out_port, total + charge.bytes);
        bit<32> from_source;
        dequeued_by_source.read(from_source, (bit<32>)charge.in_port);
        dequeued_by_source.write((bit<32>)charge.in_port, from_source + charge.bytes);
        charge.bytes = 0;
    }
    apply {
        if (charge.bytes != 0) {
            subtract();
        }
    }
}

#endif
