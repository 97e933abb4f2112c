// Every operator on unsigned fields of 1 to 64 bits; results wrap at the width of the field.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header operands_t {
    bit<1>  a1;
    bit<1>  b1;
    bit<3>  a3;
    bit<3>  b3;
    bit<7>  a7;
    bit<7>  b7;
    bit<13> a13;
    bit<13> b13;
    bit<31> a31;
    bit<31> b31;
    bit<33> a33;
    bit<33> b33;
    bit<48> a48;
    bit<48> b48;
    bit<63> a63;
    bit<63> b63;
    bit<64> a64;
    bit<64> b64;
    bit<2>  pad;
}

header results_t {
    bit<1>  add1;
    bit<3>  sub3;
    bit<7>  mul7;
    bit<13> add13;
    bit<13> neg13;
    bit<31> mul31;
    bit<33> sub33;
    bit<33> shl33;
    bit<48> shr48;
    bit<48> xor48;
    bit<63> mul63;
    bit<63> not63;
    bit<64> add64;
    bit<64> sub64;
    bit<64> and64;
    bit<64> or64;
    bit<80> concat80;
    bit<20> slices20;
    bit<31> mux31;
    bit<64> cast64;
    bit<7>  cast7;
    bit<7>  sat_add7;
    bit<13> sat_sub13;
    bit<64> sat_add64;
    bit<16> constants16;
    bit<14> compares14;
}

struct headers_t {
    ethernet_t eth;
    results_t  r;
    operands_t o;
}

struct meta_t {
}

parser NarrowParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.o);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control NarrowIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action arithmetic() {
        hdr.r.add1 = hdr.o.a1 + hdr.o.b1;
        hdr.r.sub3 = hdr.o.a3 - hdr.o.b3;
        hdr.r.mul7 = hdr.o.a7 * hdr.o.b7;
        hdr.r.add13 = hdr.o.a13 + hdr.o.b13 + 1;
        hdr.r.neg13 = -hdr.o.a13;
        hdr.r.mul31 = hdr.o.a31 * hdr.o.b31;
        hdr.r.sub33 = hdr.o.a33 - hdr.o.b33;
        hdr.r.mul63 = hdr.o.a63 * hdr.o.b63;
        hdr.r.add64 = hdr.o.a64 + hdr.o.b64;
        hdr.r.sub64 = hdr.o.a64 - hdr.o.b64;
        hdr.r.sat_add7 = hdr.o.a7 |+| hdr.o.b7;
        hdr.r.sat_sub13 = hdr.o.a13 |-| hdr.o.b13;
        hdr.r.sat_add64 = hdr.o.a64 |+| hdr.o.b64;
    }
    action bitwise() {
        hdr.r.shl33 = hdr.o.a33 << hdr.o.b7;
        hdr.r.shr48 = hdr.o.a48 >> hdr.o.b3;
        hdr.r.xor48 = hdr.o.a48 ^ hdr.o.b48;
        hdr.r.not63 = ~hdr.o.a63;
        hdr.r.and64 = hdr.o.a64 & ~hdr.o.b64;
        hdr.r.or64 = hdr.o.a64 | hdr.o.b64 << 5;
    }
    action shapes() {
        hdr.r.concat80 = hdr.o.a33 ++ hdr.o.a3 ++ hdr.o.b31 ++ hdr.o.a13;
        hdr.r.slices20 = hdr.o.a31[22:10] ++ hdr.o.b64[63:57];
        hdr.r.slices20[4:2] = hdr.o.b3;
        hdr.r.mux31 = hdr.o.a7 < hdr.o.b7 ? hdr.o.a31 : hdr.o.b31;
        hdr.r.cast64 = (bit<64>)hdr.o.a13 + (bit<64>)(hdr.o.b33 >> 3);
        hdr.r.cast7 = (bit<7>)hdr.o.a48 ^ (bit<7>)hdr.o.b1;
        // Compile-time division and remainder.
        hdr.r.constants16 = (bit<16>)hdr.o.a13 + 16w1000 / 7 + 16w1000 % 7;
    }
    action comparisons() {
        hdr.r.compares14 = (bit<1>)(hdr.o.a1 == hdr.o.b1) ++ (bit<1>)(hdr.o.a3 != hdr.o.b3)
            ++ (bit<1>)(hdr.o.a7 < hdr.o.b7) ++ (bit<1>)(hdr.o.a13 <= hdr.o.b13)
            ++ (bit<1>)(hdr.o.a31 > hdr.o.b31) ++ (bit<1>)(hdr.o.a33 >= hdr.o.b33)
            ++ (bit<1>)(hdr.o.a48 == hdr.o.b48) ++ (bit<1>)(hdr.o.a63 < hdr.o.b63)
            ++ (bit<1>)(hdr.o.a64 > hdr.o.b64) ++ (bit<1>)(hdr.o.a64 != hdr.o.b64)
            ++ (bit<1>)(hdr.o.a7 > 100 && hdr.o.b7 < 50) ++ (bit<1>)(hdr.o.a7 > 100 || hdr.o.b7 < 50)
            ++ (bit<1>)!(hdr.o.a3 == 5) ++ (bit<1>)((hdr.o.a31 + 1) * 3 >= hdr.o.b31 - 7);
    }
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.o.isValid()) {
            hdr.r.setValid();
            arithmetic();
            bitwise();
            shapes();
            comparisons();
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(NarrowParser(), NoVerify(), NarrowIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
