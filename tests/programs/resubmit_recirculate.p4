// Resubmit and recirculate with different field lists; the packet counts its passes and stops by itself.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

#define FIELDS_MARK 0
#define FIELDS_KEPT 1

header order_t {
    bit<8>  resubmits;
    bit<8>  recirculations;
    bit<8>  flags;
    bit<8>  instance_type;
    bit<16> kept;
    bit<16> lost;
    bit<32> length;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
    @field_list(FIELDS_MARK)
    bit<1>  mark;
    @field_list(FIELDS_KEPT)
    bit<8>  passes;
    @field_list(FIELDS_KEPT)
    bit<16> kept;
    bit<16> lost;
}

parser PassParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control PassIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.order.isValid()) {
            bit<8> wanted = hdr.order.resubmits & 3;
            hdr.order.instance_type = (bit<8>)std.instance_type;
            hdr.order.kept = meta.kept;
            hdr.order.lost = meta.lost;
            meta.lost = 0xBEEF;
            if (meta.mark == 1) {
                hdr.order.kept = 0x1234;
            }
            if (hdr.order.flags[0:0] == 1) {
                // A resubmitted packet starts again from the bytes received: the count is in the metadata.
                if (meta.passes < wanted) {
                    meta.passes = meta.passes + 1;
                    meta.kept = meta.kept + 0x101;
                    resubmit_preserving_field_list(FIELDS_KEPT);
                }
            } else if (wanted != 0 && std.instance_type == 0) {
                meta.kept = 0x7777;
                meta.mark = 1;
                resubmit_preserving_field_list(FIELDS_MARK);
            }
            hdr.order.length = std.packet_length;
        }
    }
}

control PassEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.order.isValid() && hdr.order.recirculations[1:0] != 0) {
            // A recirculated packet carries its changes, so the count is in the packet itself.
            hdr.order.recirculations = hdr.order.recirculations - 1;
            hdr.order.flags = hdr.order.flags & 0xFE;
            hdr.order.resubmits = 0;
            if (hdr.order.flags[1:1] == 1) {
                meta.kept = (bit<16>)hdr.order.length ^ 0xFFFF;
                recirculate_preserving_field_list(FIELDS_KEPT);
            } else {
                recirculate_preserving_field_list(FIELDS_MARK);
            }
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(PassParser(), NoVerify(), PassIngress(), PassEgress(), NoUpdate(), EmitAll()) main;
