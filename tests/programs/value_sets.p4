// Parser value sets: of one field, and of several with exact, ternary and mixed members, beside plain cases.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

struct tunnel_key_t {
    @match(exact)
    bit<16> port;
    @match(exact)
    bit<8>  kind;
}

header tunnel_t {
    bit<16> port;
    bit<8>  kind;
    bit<8>  rest;
}

header mark_t {
    bit<32> value;
}

struct headers_t {
    ethernet_t eth;
    tunnel_t   tunnel;
    mark_t     mark;
}

struct meta_t {
    bit<8> path;
}

parser SetParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(8) tunnel_types;
    value_set<tunnel_key_t>(8) marked_tunnels;

    state start {
        meta.path = 0;
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.TEST: parse_tunnel;
            tunnel_types: parse_tunnel;
            EtherType.IPV4: accept;
            default: other;
        }
    }
    state parse_tunnel {
        packet.extract(hdr.tunnel);
        meta.path = meta.path | 1;
        transition select(hdr.tunnel.port, hdr.tunnel.kind) {
            marked_tunnels: parse_mark;
            (0 &&& 0xF000, 1): parse_mark;
            default: accept;
        }
    }
    state parse_mark {
        packet.extract(hdr.mark);
        meta.path = meta.path | 2;
        transition accept;
    }
    state other {
        meta.path = meta.path | 4;
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control SetIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        hdr.eth.src[47:40] = meta.path;
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(SetParser(), NoVerify(), SetIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
