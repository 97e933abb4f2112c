// Tables whose actions live in an action profile or an action selector: members, groups, weights, shared profile.
// SPDX-License-Identifier: Apache-2.0
// p4c gives every table a default action and then warns that a table with a profile cannot have one:
// p4c-warns: Target does not support default_action
#include "common/base.p4"

struct headers_t {
    ethernet_t eth;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct meta_t {
}

parser ProfileParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control ProfileIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action_profile(128) rewrites;
    action_selector(HashAlgorithm.crc16, 128, 14) next_hops;
    action_selector(HashAlgorithm.crc32, 64, 10) uplinks;

    action drop() {
        mark_to_drop(std);
    }
    action set_port(bit<9> port) {
        std.egress_spec = port;
    }
    action set_port_and_mac(bit<9> port, bit<48> dst) {
        std.egress_spec = port;
        hdr.eth.dst = dst;
    }
    action set_tos(bit<8> value) {
        hdr.ipv4.diffserv = value;
    }
    action set_id(bit<16> value) {
        hdr.ipv4.identification = value;
    }
    // Plain profile: the entry names one member.
    table rewrite {
        key = { hdr.ipv4.protocol: exact @name("protocol"); }
        actions = { set_tos; set_id; NoAction; }
        implementation = rewrites;
        size = 256;
    }
    // Selector over the 5-tuple.
    table route {
        key = {
            hdr.ipv4.dst: lpm @name("dst");
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
            hdr.ipv4.protocol: selector;
            hdr.udp.src_port: selector;
            hdr.udp.dst_port: selector;
        }
        actions = { set_port; set_port_and_mac; drop; }
        implementation = next_hops;
        size = 256;
    }
    // Selector over a key of odd width, one-shot programmed by the plan.
    table uplink {
        key = {
            hdr.eth.src[7:0]: ternary @name("src_low");
            hdr.ipv4.frag_offset: selector;
            hdr.udp.length: selector;
        }
        actions = { set_tos; NoAction; }
        implementation = uplinks;
        size = 64;
    }
    apply {
        if (!hdr.udp.isValid()) {
            mark_to_drop(std);
            return;
        }
        if (!route.apply().hit) {
            std.egress_spec = 7;
        }
        rewrite.apply();
        switch (uplink.apply().action_run) {
            set_tos: {
                hdr.udp.checksum = 1;
            }
            default: {
                hdr.udp.checksum = 0;
            }
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(ProfileParser(), NoVerify(), ProfileIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
