// Every operator on unsigned fields wider than a machine word: 65, 96, 127, 128, 129, 200 and 256 bits.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header operands_t {
    bit<65>  a65;
    bit<65>  b65;
    bit<96>  a96;
    bit<127> a127;
    bit<127> b127;
    bit<128> a128;
    bit<128> b128;
    bit<129> a129;
    bit<129> b129;
    bit<200> a200;
    bit<200> b200;
    bit<256> a256;
    bit<256> b256;
    bit<9>   shift;
    bit<5>   pad;
}

header results_t {
    bit<65>  add65;
    bit<65>  mul65;
    bit<96>  neg96;
    bit<127> sub127;
    bit<127> shl127;
    bit<128> mul128;
    bit<128> shr128;
    bit<129> add129;
    bit<129> not129;
    bit<200> sub200;
    bit<200> mul200;
    bit<256> add256;
    bit<256> shl256;
    bit<256> shr256;
    bit<256> logic256;
    bit<321> concat321;
    bit<100> slice100;
    bit<200> cast200;
    bit<65>  cast65;
    bit<127> sat_add127;
    bit<256> sat_sub256;
    bit<8>   compares;
    bit<1>   pad;
}

struct headers_t {
    ethernet_t eth;
    results_t  r;
    operands_t o;
}

struct meta_t {
}

parser WideParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.o);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control WideIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action arithmetic() {
        hdr.r.add65 = hdr.o.a65 + hdr.o.b65;
        hdr.r.mul65 = hdr.o.a65 * hdr.o.b65;
        hdr.r.neg96 = -hdr.o.a96;
        hdr.r.sub127 = hdr.o.a127 - hdr.o.b127;
        hdr.r.mul128 = hdr.o.a128 * hdr.o.b128;
        hdr.r.add129 = hdr.o.a129 + hdr.o.b129 - 1;
        hdr.r.sub200 = hdr.o.a200 - hdr.o.b200;
        hdr.r.mul200 = hdr.o.a200 * hdr.o.b200 + hdr.o.a200;
        hdr.r.add256 = hdr.o.a256 + hdr.o.b256;
        hdr.r.sat_add127 = hdr.o.a127 |+| hdr.o.b127;
        hdr.r.sat_sub256 = hdr.o.a256 |-| hdr.o.b256;
    }
    action bitwise() {
        hdr.r.shl127 = hdr.o.a127 << hdr.o.shift[7:0];
        hdr.r.shr128 = hdr.o.a128 >> hdr.o.shift[7:0];
        hdr.r.not129 = ~hdr.o.a129;
        hdr.r.shl256 = hdr.o.a256 << hdr.o.shift[8:1];
        hdr.r.shr256 = hdr.o.a256 >> hdr.o.shift[7:0];
        hdr.r.logic256 = (hdr.o.a256 & hdr.o.b256) | (hdr.o.a256 ^ 256w0x123456789ABCDEF0123456789ABCDEF0123456789);
    }
    action shapes() {
        hdr.r.concat321 = hdr.o.a65 ++ hdr.o.b256;
        hdr.r.slice100 = hdr.o.a256[230:131];
        hdr.r.slice100[70:6] = hdr.o.b65;
        hdr.r.cast200 = (bit<200>)hdr.o.a129 | (bit<200>)hdr.o.b65 << 100;
        hdr.r.cast65 = (bit<65>)(hdr.o.a200 >> 64);
    }
    action comparisons() {
        hdr.r.compares = (bit<1>)(hdr.o.a65 == hdr.o.b65) ++ (bit<1>)(hdr.o.a127 < hdr.o.b127)
            ++ (bit<1>)(hdr.o.a128 >= hdr.o.b128) ++ (bit<1>)(hdr.o.a129 != hdr.o.b129)
            ++ (bit<1>)(hdr.o.a200 <= hdr.o.b200) ++ (bit<1>)(hdr.o.a256 > hdr.o.b256)
            ++ (bit<1>)(hdr.o.a256[255:1] == hdr.o.b256[255:1]) ++ (bit<1>)(hdr.o.a96 == 0);
    }
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.o.isValid()) {
            hdr.r.setValid();
            arithmetic();
            bitwise();
            shapes();
            comparisons();
            hdr.r.pad = 0;
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(WideParser(), NoVerify(), WideIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
