// Direct and indirect counters of packets, bytes and both, in ingress and egress.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header key_t {
    bit<8> group;
    bit<8> index;
}

struct headers_t {
    ethernet_t eth;
    key_t      key;
}

struct meta_t {
}

parser CounterParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.key);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control CounterIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(256, CounterType.packets) packets_by_index;
    counter(256, CounterType.bytes) bytes_by_index;
    counter(16, CounterType.packets_and_bytes) both_by_port;
    direct_counter(CounterType.packets_and_bytes) group_hits;
    direct_counter(CounterType.packets) index_hits;

    action forward(bit<9> port) {
        std.egress_spec = port;
        packets_by_index.count((bit<32>)hdr.key.index);
    }
    action forward_counted(bit<9> port) {
        std.egress_spec = port;
        group_hits.count();
    }
    action drop() {
        mark_to_drop(std);
    }
    table by_group {
        key = { hdr.key.group: exact @name("group"); }
        actions = { forward; forward_counted; drop; }
        counters = group_hits;
        size = 256;
        const default_action = drop();
    }
    table by_index {
        key = { hdr.key.index: ternary @name("index"); }
        actions = { NoAction; }
        counters = index_hits;
        size = 64;
        const default_action = NoAction();
    }
    apply {
        both_by_port.count((bit<32>)std.ingress_port);
        if (hdr.key.isValid()) {
            by_group.apply();
            by_index.apply();
            bytes_by_index.count((bit<32>)hdr.key.index);
        } else {
            mark_to_drop(std);
        }
    }
}

control CounterEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) egress_port_count;
    apply {
        egress_port_count.count((bit<32>)std.egress_port);
        hdr.key.group = hdr.key.group + 1;
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(CounterParser(), NoVerify(), CounterIngress(), CounterEgress(), NoUpdate(), EmitAll()) main;
