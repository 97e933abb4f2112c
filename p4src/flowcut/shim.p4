// SPDX-License-Identifier: Apache-2.0
// The shim between Ethernet and IPv4 (Flowcut §II-B, §III-A1).
#ifndef FLOWCUT_SHIM_P4
#define FLOWCUT_SHIM_P4
#include "common/metadata.p4"

// At the switch of the source.
control PushShim(inout headers_t hdr) {
    apply {
        hdr.tailrace.setValid();
        hdr.tailrace.subtype = Subtype_t.DATA_SHIM;
        hdr.shim.setValid();
        hdr.shim.hops = 0;
        hdr.shim.stamps = 0;
        hdr.shim.next_ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHERTYPE_TAILRACE;
    }
}

// At every switch that tracks the packet's flow. There must be room for one more.
control PushStamp(in ticks_t now_ticks, in port_t in_port, in bit<1> moved, in bit<1> untracked,
                  in bit<1> drained, inout headers_t hdr) {
    apply {
        hdr.stamps.push_front(1);
        hdr.stamps[0].setValid();
        hdr.stamps[0].ticks = now_ticks[31:0];
        hdr.stamps[0].moved = moved;
        hdr.stamps[0].untracked = untracked;
        hdr.stamps[0].drained = drained;
        hdr.stamps[0].reserved = 0;
        hdr.stamps[0].in_port = in_port;
        hdr.shim.stamps = hdr.shim.stamps + 1;
    }
}

#define STAMP(i) (hdr.stamps[i].ticks ++ hdr.stamps[i].moved ++ hdr.stamps[i].untracked ++ hdr.stamps[i].drained \
            ++ hdr.stamps[i].reserved ++ hdr.stamps[i].in_port)

// At the egress switch, in front of the host's queue: what the ACK will need.
control SeedAck(in headers_t hdr, in bit<32> frame_bytes, in port_t in_port, out ack_seed_t seed) {
    apply {
        seed.wanted = 1;
        seed.port = in_port;
        seed.bytes = frame_bytes[23:0];
        seed.hops = hdr.shim.hops;
        seed.stamps = hdr.shim.stamps;
        seed.stack = STAMP(0) ++ STAMP(1) ++ STAMP(2) ++ STAMP(3) ++ STAMP(4) ++ STAMP(5) ++ STAMP(6);
    }
}

// At the egress switch, on the way to the host, which never sees a shim.
control StripShim(inout headers_t hdr) {
    apply {
        hdr.ethernet.ether_type = hdr.shim.next_ether_type;
        hdr.tailrace.setInvalid();
        hdr.shim.setInvalid();
        hdr.stamps.pop_front(STAMPS);
    }
}

#endif
