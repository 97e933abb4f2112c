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
control PushStamp(in ticks_t now_ticks, in port_t in_port, inout headers_t hdr) {
    apply {
        hdr.stamps.push_front(1);
        hdr.stamps[0].setValid();
        hdr.stamps[0].ticks = now_ticks[31:0];
        hdr.stamps[0].in_port = (bit<16>)in_port;
        hdr.shim.stamps = hdr.shim.stamps + 1;
    }
}

// At the egress switch, in front of the host's queue: what the ACK will need.
control SeedAck(in headers_t hdr, in bit<32> frame_bytes, in port_t in_port, out ack_seed_t seed) {
    apply {
        seed.wanted = 1;
        seed.port = in_port;
        seed.bytes = frame_bytes[23:0];
        seed.hops = hdr.shim.hops;
        seed.stamps = hdr.shim.stamps;
        seed.stack = hdr.stamps[0].ticks ++ hdr.stamps[0].in_port ++ hdr.stamps[1].ticks ++ hdr.stamps[1].in_port
            ++ hdr.stamps[2].ticks ++ hdr.stamps[2].in_port ++ hdr.stamps[3].ticks ++ hdr.stamps[3].in_port
            ++ hdr.stamps[4].ticks ++ hdr.stamps[4].in_port ++ hdr.stamps[5].ticks ++ hdr.stamps[5].in_port
            ++ hdr.stamps[6].ticks ++ hdr.stamps[6].in_port;
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
