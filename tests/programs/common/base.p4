// Shared preamble of the test programs: Ethernet, a payload word, and the blocks most programs leave empty.
// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_BASE_P4
#define TEST_BASE_P4

#include <core.p4>
#include <v1model.p4>

enum bit<16> EtherType {
    IPV4 = 0x0800,
    VLAN = 0x8100,
    MPLS = 0x8847,
    TEST = 0x88B5
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// The port an Ethernet destination asks for: its low three bits, so 0..7; 0 where the frame is too short to have one.
#define PORT_OF(eth) ((eth).isValid() ? (bit<9>)(eth).dst[2:0] : 0)

#define NO_VERIFY(H, M) \
control NoVerify(inout H hdr, inout M meta) { apply { } }

#define NO_UPDATE(H, M) \
control NoUpdate(inout H hdr, inout M meta) { apply { } }

#define NO_EGRESS(H, M) \
control NoEgress(inout H hdr, inout M meta, inout standard_metadata_t std) { apply { } }

#define EMIT_ALL(H) \
control EmitAll(packet_out packet, in H hdr) { apply { packet.emit(hdr); } }

#endif
