// Every kind of entity that P4Runtime can reach, in one small pipeline.
// SPDX-License-Identifier: Apache-2.0
// p4c-warns: Target does not support default_action
#include "../common/base.p4"

// Frames from and to the CPU port start with these; 16 bits each, with padding.
@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> to_pipeline;
    bit<6> pad;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<3> reason;
    bit<4> pad;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   eth;
    ipv4_t       ipv4;
    udp_t        udp;
}

struct meta_t {
    bit<16> color;
    bit<1>  special;
}

struct learn_t {
    bit<48> src;
    bit<9>  port;
}

parser AllParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) special_types;

    state start {
        transition select(std.ingress_port) {
            510:     parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            special_types: parse_special;
            0x0800:        parse_ipv4;
            default:       accept;
        }
    }
    state parse_special {
        meta.special = 1;
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            17:      parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control AllIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) mac_hits;
    direct_meter<bit<16>>(MeterType.bytes) mac_rate;
    direct_counter(CounterType.packets) fixed_hits;
    counter(8, CounterType.packets_and_bytes) by_port;
    meter(4, MeterType.packets) by_class;
    register<bit<32>>(16) words;
    register<bit<100>>(2) wide;
    action_selector(HashAlgorithm.crc16, 64, 16) hops;
    action_profile(32) marks;

    action drop() {
        mark_to_drop(std);
    }
    action send(bit<9> port) {
        std.egress_spec = port;
    }
    action forward(bit<9> port) {
        mac_rate.read(meta.color);
        std.egress_spec = port;
    }
    action rewrite(bit<9> port, bit<48> dst) {
        std.egress_spec = port;
        hdr.eth.dst = dst;
    }
    action flood(bit<16> group) {
        std.mcast_grp = group;
    }
    action learn() {
        digest<learn_t>(1, { hdr.eth.src, std.ingress_port });
    }
    action mirror(bit<32> cell) {
        words.write(cell, (bit<32>)std.packet_length);
        clone(CloneType.I2E, 5);
    }
    action set_tos(bit<8> value) {
        hdr.ipv4.diffserv = value;
    }

    // exact, with everything that can hang on an entry
    table mac {
        key = { hdr.eth.dst: exact @name("dst"); }
        actions = { forward; flood; @tableonly drop; @defaultonly learn; }
        default_action = learn();
        counters = mac_hits;
        meters = mac_rate;
        support_timeout = true;
        size = 16384;
    }
    table route {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { send; rewrite; drop; NoAction; }
        default_action = NoAction();
        size = 512;
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary @name("src");
            hdr.ipv4.protocol: optional @name("protocol");
            hdr.udp.dst_port: range @name("dst_port");
            std.ingress_port: exact @name("port");
        }
        actions = { drop; send; mirror; NoAction; }
        const default_action = NoAction();
        size = 64;
    }
    // longer matches first, and a field that does not fill its bytes
    table fixed {
        key = { hdr.ipv4.protocol: ternary @name("protocol"); meta.special: exact @name("special"); }
        actions = { set_tos; NoAction; }
        const entries = {
            (17, 0): set_tos(4);
            (_, 0): set_tos(8);
        }
        counters = fixed_hits;
    }
    // entries of the program that may change
    table initial {
        key = { hdr.udp.src_port: exact @name("src_port"); }
        actions = { set_tos; NoAction; }
        entries = {
            53: set_tos(1);
            123: set_tos(2);
        }
        size = 32;
    }
    table hop {
        key = {
            hdr.ipv4.dst: lpm @name("dst");
            hdr.ipv4.src: selector;
            hdr.udp.src_port: selector;
        }
        actions = { send; rewrite; }
        implementation = hops;
        size = 128;
    }
    table mark {
        key = { hdr.ipv4.diffserv: exact @name("tos"); }
        actions = { set_tos; NoAction; }
        implementation = marks;
        size = 64;
    }
    // no key: one configuration
    table config {
        actions = { set_tos; NoAction; }
        default_action = NoAction();
        size = 1;
    }
    apply {
        if (hdr.packet_out.isValid() && hdr.packet_out.to_pipeline == 0) {
            std.egress_spec = hdr.packet_out.egress_port;
        } else {
            by_port.count((bit<32>)std.ingress_port);
            by_class.execute_meter((bit<32>)hdr.ipv4.diffserv[1:0], meta.color);
            mac.apply();
            if (hdr.ipv4.isValid()) {
                route.apply();
                hop.apply();
                fixed.apply();
                mark.apply();
                config.apply();
                if (hdr.udp.isValid()) {
                    initial.apply();
                    acl.apply();
                }
            }
            wide.write(0, (bit<100>)hdr.eth.src);
        }
    }
}

control AllEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.packet_out.setInvalid();
        if (std.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = (bit<3>)std.instance_type;
            hdr.packet_in.pad = 0;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(AllParser(), NoVerify(), AllIngress(), AllEgress(), NoUpdate(), EmitAll()) main;
