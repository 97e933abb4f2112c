// SPDX-License-Identifier: Apache-2.0
// The shim, a header between Ethernet and IPv4: hops and stamps (common/headers.p4; Flowcut §II-B, §III-A1).
#ifndef FLOWCUT_SHIM_P4
#define FLOWCUT_SHIM_P4
#include "common/metadata.p4"

// Adds the shim, at the source's switch.
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

// Adds a stamp, at every switch that tracks the packet's flow. The caller checks that the stack is not full.
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

// At the egress switch, in ingress: saves in metadata what the ACK needs.
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

// At the egress switch, in egress: removes shim and stamps, which hosts never receive.
control StripShim(inout headers_t hdr) {
    apply {
        hdr.ethernet.ether_type = hdr.shim.next_ether_type;
        hdr.tailrace.setInvalid();
        hdr.shim.setInvalid();
        hdr.stamps.pop_front(STAMPS);
    }
}

#endif
