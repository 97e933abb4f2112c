// Parser states with every kind of select key: exact, mask, range, several fields, default, lookahead and advance.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header vlan_t {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
    bit<16> ether_type;
}

// First byte of every record: 4 bits of kind, 4 bits of how many bytes to skip after it.
header kind_t {
    bit<4> kind;
    bit<4> skip;
}

header small_t {
    bit<8> value;
}

header large_t {
    bit<24> value;
    bit<40> tail;
}

// Records the path through the parser; always valid on output.
header trace_t {
    bit<8>  path;
    bit<16> peeked;
    bit<8>  flags;
}

struct headers_t {
    trace_t    trace;
    ethernet_t eth;
    vlan_t     vlan;
    ipv4_t     ipv4;
    udp_t      udp;
    kind_t     kind;
    small_t    small;
    large_t    large;
}

struct meta_t {
    bit<8>  path;
    bit<16> peeked;
    bit<13> slice;
}

parser SelectParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.path = 0;
        meta.peeked = 0;
        meta.slice = 0;
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.VLAN: parse_vlan;
            EtherType.IPV4: parse_ipv4;
            0x0600 &&& 0xFF00: parse_peek;
            0x9000 .. 0x9FFF: parse_kind;
            _: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.path = meta.path | 1;
        transition select(hdr.vlan.pcp, hdr.vlan.vid, hdr.vlan.ether_type) {
            (7, _, _): parse_peek;
            (_, 1 .. 9, EtherType.IPV4): parse_ipv4;
            (0 &&& 4, 0x100 &&& 0xF00, _): parse_kind;
            (_, _, EtherType.IPV4): parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.path = meta.path | 2;
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (0, 5, 17): parse_udp;
            (0, 5 .. 15, 0x90 &&& 0xF0): parse_kind;
            _: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        meta.path = meta.path | 4;
        transition select(hdr.udp.dst_port ^ hdr.udp.src_port, hdr.udp.length[3:0]) {
            (0, _): parse_peek;
            (_, 8 .. 15): parse_kind;
            default: accept;
        }
    }
    state parse_peek {
        meta.peeked = packet.lookahead<bit<16>>();
        meta.path = meta.path | 8;
        // Skips one byte and a half-word without storing them.
        packet.advance(24);
        transition select(packet.lookahead<bit<4>>()) {
            0 .. 7: parse_kind;
            default: accept;
        }
    }
    state parse_kind {
        packet.extract(hdr.kind);
        meta.path = meta.path | 16;
        packet.advance((bit<32>)hdr.kind.skip << 3);
        meta.slice = hdr.eth.src[20:8];
        transition select(hdr.kind.kind) {
            1 &&& 1: parse_small;
            2: parse_large;
            4: parse_large;
            default: accept;
        }
    }
    state parse_small {
        packet.extract(hdr.small);
        meta.path = meta.path | 32;
        transition accept;
    }
    state parse_large {
        packet.extract(hdr.large);
        meta.path = meta.path | 64;
        transition select((bit<1>)(hdr.large.value == 0)) {
            1: parse_small;
            default: accept;
        }
    }
}

NO_VERIFY(headers_t, meta_t)

control SelectIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.trace.setValid();
        hdr.trace.path = meta.path;
        hdr.trace.peeked = meta.peeked ^ (bit<16>)meta.slice;
        hdr.trace.flags = 0;
        if (std.parser_error != error.NoError) {
            hdr.trace.flags = 0x80;
        }
        std.egress_spec = std.ingress_port;
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(SelectParser(), NoVerify(), SelectIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
