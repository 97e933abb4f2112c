// Signed fields of 2 to 200 bits: wrapping and saturating arithmetic, arithmetic shift, comparison, sign extension.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header operands_t {
    int<2>   a2;
    int<2>   b2;
    int<8>   a8;
    int<8>   b8;
    int<13>  a13;
    int<13>  b13;
    int<32>  a32;
    int<32>  b32;
    int<63>  a63;
    int<63>  b63;
    int<64>  a64;
    int<64>  b64;
    int<128> a128;
    int<128> b128;
    int<200> a200;
    int<200> b200;
    bit<8>   shift;
    bit<4>   pad;
}

header results_t {
    int<2>   add2;
    int<8>   sub8;
    int<8>   mul8;
    int<13>  neg13;
    int<13>  shr13;
    int<32>  shl32;
    int<32>  shr32;
    int<63>  mul63;
    int<64>  sub64;
    int<64>  shr64;
    int<128> add128;
    int<128> shr128;
    int<200> mul200;
    int<8>   sat_add8;
    int<8>   sat_sub8;
    int<13>  sat_add13;
    int<64>  sat_sub64;
    int<128> sat_add128;
    int<64>  extend64;
    bit<64>  unsigned64;
    int<13>  narrow13;
    int<200> extend200;
    int<8>   logic8;
    int<8>   mux8;
    bit<8>   compares;
    bit<3>   pad;
}

struct headers_t {
    ethernet_t eth;
    results_t  r;
    operands_t o;
}

struct meta_t {
}

parser SignedParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.o);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control SignedIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action wrapping() {
        hdr.r.add2 = hdr.o.a2 + hdr.o.b2;
        hdr.r.sub8 = hdr.o.a8 - hdr.o.b8;
        hdr.r.mul8 = hdr.o.a8 * hdr.o.b8;
        hdr.r.neg13 = -hdr.o.a13;
        hdr.r.mul63 = hdr.o.a63 * hdr.o.b63;
        hdr.r.sub64 = hdr.o.a64 - hdr.o.b64;
        hdr.r.add128 = hdr.o.a128 + hdr.o.b128;
        hdr.r.mul200 = hdr.o.a200 * hdr.o.b200;
    }
    action shifts() {
        hdr.r.shr13 = hdr.o.a13 >> hdr.o.shift[3:0];
        hdr.r.shl32 = hdr.o.a32 << hdr.o.shift[5:0];
        hdr.r.shr32 = hdr.o.a32 >> hdr.o.shift[5:0];
        hdr.r.shr64 = hdr.o.a64 >> hdr.o.shift;
        hdr.r.shr128 = hdr.o.a128 >> hdr.o.shift;
    }
    action saturating() {
        hdr.r.sat_add8 = hdr.o.a8 |+| hdr.o.b8;
        hdr.r.sat_sub8 = hdr.o.a8 |-| hdr.o.b8;
        hdr.r.sat_add13 = hdr.o.a13 |+| hdr.o.b13;
        hdr.r.sat_sub64 = hdr.o.a64 |-| hdr.o.b64;
        hdr.r.sat_add128 = hdr.o.a128 |+| hdr.o.b128;
    }
    action casts() {
        hdr.r.extend64 = (int<64>)hdr.o.a13;
        hdr.r.unsigned64 = (bit<64>)(int<64>)hdr.o.b8;
        hdr.r.narrow13 = (int<13>)hdr.o.a32;
        hdr.r.extend200 = (int<200>)hdr.o.b128;
        hdr.r.logic8 = (hdr.o.a8 & hdr.o.b8) | ~(hdr.o.a8 ^ 0x55);
        hdr.r.mux8 = hdr.o.a64 < hdr.o.b64 ? hdr.o.a8 : hdr.o.b8;
    }
    action comparisons() {
        hdr.r.compares = (bit<1>)(hdr.o.a2 < hdr.o.b2) ++ (bit<1>)(hdr.o.a8 <= hdr.o.b8)
            ++ (bit<1>)(hdr.o.a13 > hdr.o.b13) ++ (bit<1>)(hdr.o.a32 >= hdr.o.b32)
            ++ (bit<1>)(hdr.o.a63 == hdr.o.b63) ++ (bit<1>)(hdr.o.a128 < hdr.o.b128)
            ++ (bit<1>)(hdr.o.a200 > hdr.o.b200) ++ (bit<1>)(hdr.o.a8 < -5);
    }
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.o.isValid()) {
            hdr.r.setValid();
            wrapping();
            shifts();
            saturating();
            casts();
            comparisons();
            hdr.r.pad = 0;
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(SignedParser(), NoVerify(), SignedIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
