// SPDX-License-Identifier: Apache-2.0
// The egress switch makes an ACK when the data packet leaves the queue to its host (Flowcut §II-A): a clone becomes the
// ACK and is recirculated. So it passes ingress, gets a queue of high priority and is counted like any other packet.
// The clone has no shim (hops and stamps, common/headers.p4). Its preserved metadata, the seed, has the shim's values
// (ack_seed_t, common/metadata.p4).
//   data in egress -> shim removed -> host
//                  \- clone, session ACK_SESSION, port MIRROR (has no link) -> egress: becomes ACK -> recirculated
#ifndef FLOWCUT_ACK_MAKER_P4
#define FLOWCUT_ACK_MAKER_P4
#include "common/instances.p4"
#include "flowcut/table.p4"
#include "flowcut/shim.p4"

// Bytes before an ACK's stamps, Ethernet header included.
const bit<32> ACK_BYTES = 14 + 1 + 18;

control RestoreStamps(in ack_seed_t seed, inout headers_t hdr) {
    apply {
        bit<(STAMPS*48)> stack = seed.stack;  // stamp 0 in the highest 48 bits, as SeedAck has packed it (shim.p4)
#define RESTORE(i) if (seed.stamps > i) { \
            hdr.stamps[i].setValid(); \
            hdr.stamps[i].ticks = stack[(STAMPS-i)*48-1:(STAMPS-i)*48-32]; \
            hdr.stamps[i].moved = stack[(STAMPS-i)*48-33:(STAMPS-i)*48-33]; \
            hdr.stamps[i].untracked = stack[(STAMPS-i)*48-34:(STAMPS-i)*48-34]; \
            hdr.stamps[i].drained = stack[(STAMPS-i)*48-35:(STAMPS-i)*48-35]; \
            hdr.stamps[i].reserved = stack[(STAMPS-i)*48-36:(STAMPS-i)*48-39]; \
            hdr.stamps[i].in_port = stack[(STAMPS-i)*48-40:(STAMPS-i)*48-48]; \
        }
        RESTORE(0)
        RESTORE(1)
        RESTORE(2)
        RESTORE(3)
        RESTORE(4)
        RESTORE(5)
        RESTORE(6)
    }
}

control MakeAck(in ack_seed_t seed, inout headers_t hdr) {
    RestoreStamps() restore_stamps;

    apply {
        mac_t host = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = host;
        hdr.ethernet.ether_type = ETHERTYPE_TAILRACE;
        hdr.tailrace.setValid();
        hdr.tailrace.subtype = Subtype_t.FLOWCUT_ACK;
        hdr.ack.setValid();
        hdr.ack.src = hdr.ipv4.src;
        hdr.ack.dst = hdr.ipv4.dst;
        hdr.ack.sport = hdr.udp.sport;
        hdr.ack.dport = hdr.udp.dport;
        if (hdr.tcp.isValid()) {
            hdr.ack.sport = hdr.tcp.sport;
            hdr.ack.dport = hdr.tcp.dport;
        }
        hdr.ack.protocol = hdr.ipv4.protocol;
        hdr.ack.bytes = seed.bytes;
        hdr.ack.hops = seed.hops;
        hdr.ack.stamps = seed.stamps;
        hdr.ack.reserved = 0;
        hdr.ack.hops_back = 0;
        hdr.ack.congested = 0;
        restore_stamps.apply(seed, hdr);
        hdr.ipv4.setInvalid();
        hdr.tcp.setInvalid();
        hdr.udp.setInvalid();
        hdr.nic_shim.setInvalid();
        hdr.bth.setInvalid();
    }
}

// The new ACK in ingress, after recirculation. The data packet's payload still follows it: a truncation before the
// recirculation would be lost, so it is done here.
control SendNewAck(in headers_t hdr, inout ack_seed_t seed, out port_t port, out bit<32> ack_bytes) {
    apply {
        port = seed.port;
        seed.wanted = 0;  // recirculation has preserved it; egress would make an ACK of this ACK
        ack_bytes = ACK_BYTES + STAMP_BYTES * (bit<32>)hdr.ack.stamps;
        truncate(ack_bytes);
    }
}

#endif
