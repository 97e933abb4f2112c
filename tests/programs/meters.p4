// Direct and indirect meters. The plan gives them a burst and no refill (or never exhausts them): no colour depends on time.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header key_t {
    bit<8> flow;
    bit<8> color;
    bit<8> port_color;
    bit<8> direct_color;
}

struct headers_t {
    ethernet_t eth;
    key_t      key;
}

struct meta_t {
    bit<2> direct_color;
}

parser MeterParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.direct_color = 3;
        packet.extract(hdr.eth);
        packet.extract(hdr.key);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control MeterIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    meter(256, MeterType.packets) flow_meter;
    meter(8, MeterType.bytes) port_meter;
    direct_meter<bit<2>>(MeterType.packets) entry_meter;

    action metered(bit<9> port) {
        entry_meter.read(meta.direct_color);
        std.egress_spec = port;
    }
    action metered_drop() {
        entry_meter.read(meta.direct_color);
        mark_to_drop(std);
    }
    table flows {
        key = { hdr.key.flow: exact @name("flow"); }
        actions = { metered; metered_drop; }
        meters = entry_meter;
        size = 256;
        const default_action = metered_drop();
    }
    apply {
        if (hdr.key.isValid()) {
            bit<8> color;
            flow_meter.execute_meter((bit<32>)hdr.key.flow, color);
            hdr.key.color = color;
            flows.apply();
            hdr.key.direct_color = (bit<8>)meta.direct_color;
            bit<3> port_color;
            port_meter.execute_meter((bit<32>)hdr.eth.src[2:0], port_color);
            hdr.key.port_color = (bit<8>)port_color;
        } else {
            mark_to_drop(std);
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(MeterParser(), NoVerify(), MeterIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
