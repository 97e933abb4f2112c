// Clones from ingress and egress, with and without preserved metadata; each copy says in a header where it comes from.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

#define PKT_INSTANCE_TYPE_NORMAL 0
#define PKT_INSTANCE_TYPE_INGRESS_CLONE 1
#define PKT_INSTANCE_TYPE_EGRESS_CLONE 2
#define FIELDS_FIRST 1
#define FIELDS_BOTH 2

header order_t {
    bit<8>  how;
    bit<8>  session;
    bit<16> value;
}

header stamp_t {
    bit<8>  instance_type;
    bit<8>  egress_port;
    bit<16> first;
    bit<16> second;
    bit<16> third;
    bit<16> rid;
}

struct headers_t {
    stamp_t    stamp;
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
    @field_list(FIELDS_FIRST, FIELDS_BOTH)
    bit<16> first;
    @field_list(FIELDS_BOTH)
    bit<13> second;
    bit<16> third;
}

parser CloneParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control CloneIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.order.isValid()) {
            meta.first = hdr.order.value;
            meta.second = hdr.order.value[12:0] ^ 0x155;
            meta.third = 0xDEAD;
            if (hdr.order.how[0:0] == 1) {
                clone(CloneType.I2E, (bit<32>)hdr.order.session);
            } else if (hdr.order.how[1:1] == 1) {
                clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.order.session, FIELDS_FIRST);
            } else if (hdr.order.how[2:2] == 1) {
                clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.order.session, FIELDS_BOTH);
            }
            // Changes made after the call are not in the ingress clone, metadata of the list is.
            hdr.order.value = hdr.order.value + 1;
            meta.first = meta.first + 1;
            if (hdr.order.how[3:3] == 1) {
                mark_to_drop(std);
            }
        }
    }
}

control CloneEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.stamp.setValid();
        hdr.stamp.instance_type = (bit<8>)std.instance_type;
        hdr.stamp.egress_port = (bit<8>)std.egress_port;
        hdr.stamp.first = meta.first;
        hdr.stamp.second = (bit<16>)meta.second;
        hdr.stamp.third = meta.third;
        hdr.stamp.rid = std.egress_rid;
        if (hdr.order.isValid() && std.instance_type != PKT_INSTANCE_TYPE_EGRESS_CLONE) {
            if (hdr.order.how[4:4] == 1) {
                clone(CloneType.E2E, (bit<32>)hdr.order.session);
            } else if (hdr.order.how[5:5] == 1) {
                clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.order.session, FIELDS_BOTH);
            }
            meta.first = meta.first + 0x100;
            if (hdr.order.how[6:6] == 1) {
                mark_to_drop(std);
            }
            hdr.order.how = hdr.order.how | 0x80;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(CloneParser(), NoVerify(), CloneIngress(), CloneEgress(), NoUpdate(), EmitAll()) main;
