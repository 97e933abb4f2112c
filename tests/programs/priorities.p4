// Priority queues and what the traffic manager tells: port, queue depths, times. What depends on time is not written out.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header order_t {
    bit<8>  priority;
    bit<8>  checks;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<16> egress_spec;
    bit<32> packet_length;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
    bit<48> ingress_time;
}

parser PriorityParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.ingress_time = 0;
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control PriorityIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        meta.ingress_time = std.ingress_global_timestamp;
        if (hdr.order.isValid()) {
            std.priority = hdr.order.priority[2:0];
            hdr.order.ingress_port = (bit<16>)std.ingress_port;
        }
    }
}

control PriorityEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.order.isValid()) {
            hdr.order.egress_port = (bit<16>)std.egress_port;
            hdr.order.egress_spec = (bit<16>)std.egress_spec;
            hdr.order.packet_length = std.packet_length;
            hdr.order.checks = 0;
            // Relations that hold however fast the machine is.
            hdr.order.checks[0:0] = (bit<1>)(std.egress_global_timestamp >= meta.ingress_time);
            hdr.order.checks[1:1] = (bit<1>)(std.enq_qdepth < 0x40000);
            hdr.order.checks[2:2] = (bit<1>)(std.deq_qdepth < 0x40000);
            hdr.order.checks[3:3] = (bit<1>)(std.deq_timedelta < 60000000);
            hdr.order.checks[4:4] = (bit<1>)(std.instance_type == 0);
            hdr.order.checks[7:5] = std.priority;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(PriorityParser(), NoVerify(), PriorityIngress(), PriorityEgress(), NoUpdate(), EmitAll()) main;
