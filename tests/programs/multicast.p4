// Multicast groups: replicas with ids, unknown groups, and the order of multicast, unicast and drop decisions.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header order_t {
    bit<16> group;
    bit<8>  flags;
    bit<8>  instance_type;
    bit<16> rid;
    bit<16> port;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
}

parser MulticastParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control MulticastIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.order.isValid()) {
            std.mcast_grp = hdr.order.group;
            if (hdr.order.flags[0:0] == 1) {
                // Dropping clears the group too.
                mark_to_drop(std);
            }
            if (hdr.order.flags[1:1] == 1) {
                // A port chosen after the drop revives the packet, as unicast.
                std.egress_spec = 5;
            }
            if (hdr.order.flags[2:2] == 1) {
                std.mcast_grp = 3;
            }
        }
    }
}

control MulticastEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.order.isValid()) {
            hdr.order.instance_type = (bit<8>)std.instance_type;
            hdr.order.rid = std.egress_rid;
            hdr.order.port = (bit<16>)std.egress_port;
            // Split horizon by the program, for those who ask for it.
            if (hdr.order.flags[3:3] == 1 && std.egress_port == std.ingress_port) {
                mark_to_drop(std);
            }
            // Each replica has headers of its own.
            hdr.order.group = hdr.order.group + std.egress_rid;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(MulticastParser(), NoVerify(), MulticastIngress(), MulticastEgress(), NoUpdate(), EmitAll()) main;
