// Tables of every match kind and mixes of them: exact, lpm, ternary, range, optional, at odd widths.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header key_t {
    bit<8>   exact8;
    bit<3>   exact3;
    bit<13>  ternary13;
    bit<32>  lpm32;
    bit<128> lpm128;
    bit<16>  range16;
    bit<7>   range7;
    bit<1>   flag;
    bit<24>  optional24;
}

header result_t {
    bit<8> exact;
    bit<8> lpm;
    bit<8> lpm_mix;
    bit<8> ternary;
    bit<8> range;
    bit<8> optional;
    bit<8> mixed;
    bit<8> keyless;
}

struct headers_t {
    ethernet_t eth;
    result_t   result;
    key_t      key;
}

struct meta_t {
}

parser MatchParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.key);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control MatchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set_exact(bit<8> value) { hdr.result.exact = value; }
    action set_lpm(bit<8> value) { hdr.result.lpm = value; }
    action set_lpm_mix(bit<8> value) { hdr.result.lpm_mix = value; }
    action set_ternary(bit<8> value) { hdr.result.ternary = value; }
    action set_range(bit<8> value) { hdr.result.range = value; }
    action set_optional(bit<8> value) { hdr.result.optional = value; }
    action set_mixed(bit<8> value) { hdr.result.mixed = value; }
    action set_keyless(bit<8> value) { hdr.result.keyless = value; }

    table exact_match {
        key = {
            hdr.key.exact8: exact @name("exact8");
            hdr.key.exact3: exact @name("exact3");
            hdr.key.isValid(): exact @name("valid");
        }
        actions = { set_exact; }
        size = 1024;
        default_action = set_exact(0xF1);
    }
    table lpm_match {
        key = { hdr.key.lpm32: lpm @name("lpm32"); }
        actions = { set_lpm; NoAction; }
        size = 1024;
        default_action = NoAction();
    }
    table lpm_with_exact {
        key = {
            hdr.key.exact3: exact @name("exact3");
            hdr.key.lpm128: lpm @name("lpm128");
            hdr.key.flag: exact @name("flag");
        }
        actions = { set_lpm_mix; }
        size = 1024;
        default_action = set_lpm_mix(0xF2);
    }
    table ternary_match {
        key = {
            hdr.key.ternary13: ternary @name("ternary13");
            hdr.key.lpm128[67:35]: ternary @name("slice33");
        }
        actions = { set_ternary; }
        size = 1024;
        default_action = set_ternary(0xF3);
    }
    table range_match {
        key = {
            hdr.key.range16: range @name("range16");
            hdr.key.range7: range @name("range7");
        }
        actions = { set_range; }
        size = 1024;
        default_action = set_range(0xF4);
    }
    table optional_match {
        key = {
            hdr.key.optional24: optional @name("optional24");
            hdr.key.exact8: optional @name("exact8");
        }
        actions = { set_optional; }
        size = 1024;
        default_action = set_optional(0xF5);
    }
    table mixed_match {
        key = {
            hdr.key.exact3: exact @name("exact3");
            hdr.key.lpm32: lpm @name("lpm32");
            hdr.key.ternary13: ternary @name("ternary13");
            hdr.key.range7: range @name("range7");
            hdr.key.flag: optional @name("flag");
        }
        actions = { set_mixed; }
        size = 1024;
        default_action = set_mixed(0xF6);
    }
    table keyless {
        actions = { set_keyless; }
        default_action = set_keyless(0xF7);
    }

    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.key.isValid()) {
            hdr.result.setValid();
            hdr.result = { 0, 0, 0, 0, 0, 0, 0, 0 };
            exact_match.apply();
            if (!lpm_match.apply().hit) {
                hdr.result.lpm = 0xEE;
            }
            lpm_with_exact.apply();
            ternary_match.apply();
            range_match.apply();
            optional_match.apply();
            mixed_match.apply();
            keyless.apply();
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(MatchParser(), NoVerify(), MatchIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
