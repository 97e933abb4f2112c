// Every HashAlgorithm that BMv2 knows (all but `random`) with base and max, over keys of whole and odd widths.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header key_t {
    bit<32>  a;
    bit<13>  b;
    bit<3>   c;
    bit<128> d;
    bit<32>  base;
    bit<32>  max;
}

header result_t {
    bit<32> crc32;
    bit<32> crc32_custom;
    bit<16> crc16;
    bit<16> crc16_custom;
    bit<64> identity;
    bit<16> csum16;
    bit<16> xor16;
    bit<32> bounded_crc32;
    bit<32> bounded_crc16;
    bit<16> bounded_csum16;
    bit<10> narrow;
    bit<6>  zero_max;
}

struct headers_t {
    ethernet_t eth;
    result_t   result;
    key_t      key;
}

struct meta_t {
}

parser HashParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.key);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control HashIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.key.isValid()) {
            hdr.result.setValid();
            hdr.result.narrow = 0;
            hdr.result.zero_max = 0;
            hash(hdr.result.crc32, HashAlgorithm.crc32, 32w0, { hdr.key.a, hdr.key.b, hdr.key.c }, 33w0x100000000);
            hash(hdr.result.crc32_custom, HashAlgorithm.crc32_custom, 32w0, { hdr.key.d, hdr.key.a }, 33w0x100000000);
            hash(hdr.result.crc16, HashAlgorithm.crc16, 16w0, { hdr.key.a, hdr.key.d }, 17w0x10000);
            hash(hdr.result.crc16_custom, HashAlgorithm.crc16_custom, 16w0, { hdr.key.b, hdr.key.c }, 17w0x10000);
            hash(hdr.result.identity, HashAlgorithm.identity, 64w0, { hdr.key.a, hdr.key.b, hdr.key.c }, 65w0x10000000000000000);
            hash(hdr.result.csum16, HashAlgorithm.csum16, 16w0, { hdr.key.a, hdr.key.b, hdr.key.c, hdr.key.d }, 17w0x10000);
            hash(hdr.result.xor16, HashAlgorithm.xor16, 16w0, { hdr.key.a, hdr.key.d }, 17w0x10000);
            // Base and bound from the packet; odd key widths.
            hash(hdr.result.bounded_crc32, HashAlgorithm.crc32, hdr.key.base, { hdr.key.b, hdr.key.d }, hdr.key.max);
            hash(hdr.result.bounded_crc16, HashAlgorithm.crc16, hdr.key.base, { hdr.key.c, hdr.key.a, 5w9 }, hdr.key.max);
            hash(hdr.result.bounded_csum16, HashAlgorithm.csum16, 16w100, { hdr.key.b, hdr.key.a }, 16w77);
            hash(hdr.result.narrow, HashAlgorithm.crc32, 10w3, { hdr.key.d[99:31] }, 10w900);
            hash(hdr.result.zero_max, HashAlgorithm.crc16, 6w5, { hdr.key.a }, 6w0);
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(HashParser(), NoVerify(), HashIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
