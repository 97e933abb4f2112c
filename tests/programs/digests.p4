// Digests of a struct, of single fields and of wide ones; the packet itself is forwarded as learned.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

struct mac_learn_t {
    bit<48> src;
    bit<9>  port;
}

struct wide_learn_t {
    bit<129> wide;
    bit<7>   narrow;
    bit<1>   flag;
}

header wide_t {
    bit<129> wide;
    bit<7>   narrow;
}

struct headers_t {
    ethernet_t eth;
    wide_t     wide;
}

struct meta_t {
}

parser DigestParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.TEST: parse_wide;
            default: accept;
        }
    }
    state parse_wide {
        packet.extract(hdr.wide);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control DigestIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action learn() {
        digest<mac_learn_t>(1, { hdr.eth.src, std.ingress_port });
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    table known {
        key = { hdr.eth.src: exact @name("src"); }
        actions = { NoAction; learn; }
        size = 1024;
        const default_action = learn();
    }
    table destinations {
        key = { hdr.eth.dst: exact @name("dst"); }
        actions = { forward; }
        size = 1024;
        default_action = forward(7);
    }
    apply {
        if (hdr.eth.isValid()) {
            known.apply();
            destinations.apply();
            if (hdr.wide.isValid()) {
                digest<wide_learn_t>(2, { hdr.wide.wide, hdr.wide.narrow, hdr.eth.dst[0:0] });
                hdr.wide.wide = ~hdr.wide.wide;
            }
        } else {
            mark_to_drop(std);
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(DigestParser(), NoVerify(), DigestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
