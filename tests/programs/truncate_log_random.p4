// truncate, random, assert, assume and log_msg. Random bytes that can differ go to a field the harness masks.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header order_t {
    bit<16> keep;
    bit<8>  flags;
    bit<8>  fixed;
    bit<16> inside;
    bit<32> random;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
    ipv4_t     ipv4;
}

struct meta_t {
}

parser TruncateParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition select(hdr.order.flags[7:7]) {
            1: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control TruncateIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        log_msg("packet received");
        if (hdr.order.isValid()) {
            log_msg("keep = {}, flags = {}", { hdr.order.keep, hdr.order.flags });
            assume(std.ingress_port < 511);
            assert(hdr.order.flags == (hdr.order.flags & 0xFF));
            // One possible value only.
            random(hdr.order.fixed, 8w0x42, 8w0x42);
            bit<16> value;
            random(value, 16w10, 16w20);
            hdr.order.inside = (bit<16>)(bit<1>)(value >= 10 && value <= 20);
            random(hdr.order.random, 32w0, 32w0xFFFFFFFF);
            if (hdr.order.flags[0:0] == 1) {
                truncate((bit<32>)hdr.order.keep);
            }
            if (hdr.order.flags[1:1] == 1 && hdr.ipv4.isValid()) {
                hdr.ipv4.setInvalid();
            }
        }
    }
}

control TruncateEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.order.isValid() && hdr.order.flags[2:2] == 1) {
            // The length that reaches the wire is that of the deparsed packet.
            truncate(std.packet_length - 8);
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(TruncateParser(), NoVerify(), TruncateIngress(), TruncateEgress(), NoUpdate(), EmitAll()) main;
