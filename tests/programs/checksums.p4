// Checksums verified and updated: csum16 over headers, over a payload, conditionally, and crc/xor as checksums.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header tail_t {
    bit<32> crc32;
    bit<16> crc16;
    bit<16> xor16;
    bit<8>  errors;
    bit<8>  flags;
}

struct headers_t {
    ethernet_t eth;
    ipv4_t     ipv4;
    udp_t      udp;
    tail_t     tail;
}

struct meta_t {
    bit<16> l4_length;
}

parser ChecksumParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.l4_length = 0;
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.l4_length = hdr.ipv4.total_len - 20;
        transition select(hdr.ipv4.protocol) {
            17: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            4791: parse_tail;
            default: accept;
        }
    }
    state parse_tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

control ChecksumVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.udp.isValid() && !hdr.tail.isValid() && hdr.udp.checksum != 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.l4_length, hdr.udp.src_port,
              hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.tail.isValid() && hdr.tail.flags[0:0] == 1,
            { hdr.eth.dst, hdr.eth.src }, hdr.tail.crc32, HashAlgorithm.crc32);
    }
}

control ChecksumIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        // 0xBAD marks a checksum error where the receiver can see it.
        if (std.checksum_error == 1) {
            hdr.eth.src = 0xBAD;
        }
        if (hdr.tail.isValid()) {
            hdr.tail.errors = (bit<8>)std.checksum_error;
        }
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 0) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }
}

NO_EGRESS(headers_t, meta_t)

control ChecksumUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.tail.isValid(), { hdr.eth.dst, hdr.eth.src, hdr.ipv4.ttl }, hdr.tail.crc32, HashAlgorithm.crc32);
        update_checksum(hdr.tail.isValid() && hdr.tail.flags[1:1] == 1,
            { hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.tail.crc32 }, hdr.tail.crc16, HashAlgorithm.crc16);
        update_checksum_with_payload(hdr.tail.isValid() && hdr.tail.flags[2:2] == 1,
            { hdr.eth.ether_type, hdr.udp.length }, hdr.tail.xor16, HashAlgorithm.xor16);
        update_checksum_with_payload(hdr.udp.isValid() && !hdr.tail.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.l4_length, hdr.udp.src_port,
              hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

EMIT_ALL(headers_t)

V1Switch(ChecksumParser(), ChecksumVerify(), ChecksumIngress(), NoEgress(), ChecksumUpdate(), EmitAll()) main;
