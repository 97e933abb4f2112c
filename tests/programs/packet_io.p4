// Packets to and from the controller, with metadata headers of odd widths; others go where the first byte says.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> handle_as_received;
    bit<6> pad;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   eth;
}

struct meta_t {
}

parser PacketIoParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.eth);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control PacketIoIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.packet_out.isValid() && hdr.packet_out.handle_as_received == 0) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.eth.isValid() && hdr.eth.ether_type != EtherType.TEST) {
            hdr.packet_out.setInvalid();
            std.egress_spec = PORT_OF(hdr.eth);
        } else {
            hdr.packet_out.setInvalid();
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = 42;
            std.egress_spec = CPU_PORT;
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(PacketIoParser(), NoVerify(), PacketIoIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
