// Entries written in the program: const and initial ones, of every match kind, with and without stated priorities.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header key_t {
    bit<8>  a;
    bit<16> b;
    bit<32> c;
}

header result_t {
    bit<8>  exact;
    bit<8>  lpm;
    bit<8>  ternary;
    bit<8>  range;
    bit<8>  optional;
    bit<8>  prioritised;
    bit<16> initial;
}

struct headers_t {
    ethernet_t eth;
    result_t   result;
    key_t      key;
}

struct meta_t {
}

parser EntriesParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.key);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control EntriesIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set_exact(bit<8> value) { hdr.result.exact = value; }
    action set_lpm(bit<8> value) { hdr.result.lpm = value; }
    action set_ternary(bit<8> value) { hdr.result.ternary = value; }
    action set_range(bit<8> value) { hdr.result.range = value; }
    action set_optional(bit<8> value) { hdr.result.optional = value; }
    action set_prioritised(bit<8> value) { hdr.result.prioritised = value; }
    action set_initial(bit<16> value) { hdr.result.initial = value; }

    table const_exact {
        key = {
            hdr.key.a: exact @name("a");
            hdr.key.b: exact @name("b");
        }
        actions = { set_exact; }
        const entries = {
            (0, 0): set_exact(1);
            (1, 0x0101): set_exact(2);
            (2, 0xFFFF): set_exact(3);
        }
        const default_action = set_exact(0xF0);
    }
    table const_lpm {
        key = { hdr.key.c: lpm @name("c"); }
        actions = { set_lpm; }
        const entries = {
            0x0A000000 &&& 0xFF000000: set_lpm(1);
            0x0A010000 &&& 0xFFFF0000: set_lpm(2);
            0x0A010101: set_lpm(3);
            0xC0000000 &&& 0xE0000000: set_lpm(4);
            _: set_lpm(5);
        }
        const default_action = set_lpm(0xF1);
    }
    table const_ternary {
        key = {
            hdr.key.a: ternary @name("a");
            hdr.key.b: ternary @name("b");
        }
        actions = { set_ternary; }
        const entries = {
            (1, _): set_ternary(1);
            (1 &&& 0x0F, 0x0100 &&& 0xFF00): set_ternary(2);
            (_, 0x0101): set_ternary(3);
            (0x80 &&& 0x80, _): set_ternary(4);
        }
        const default_action = set_ternary(0xF2);
    }
    table const_range {
        key = {
            hdr.key.a: range @name("a");
            hdr.key.b: exact @name("b");
        }
        actions = { set_range; }
        const entries = {
            (0 .. 10, 0x0101): set_range(1);
            (5 .. 200, 0x0101): set_range(2);
            (_, 0xFFFF): set_range(3);
            (7, 0x0000): set_range(4);
        }
        const default_action = set_range(0xF3);
    }
    table const_optional {
        key = {
            hdr.key.a: optional @name("a");
            hdr.key.b: optional @name("b");
        }
        actions = { set_optional; }
        const entries = {
            (1, 0x0101): set_optional(1);
            (1, _): set_optional(2);
            (_, 0xFFFF): set_optional(3);
        }
        const default_action = set_optional(0xF4);
    }
    table prioritised {
        key = { hdr.key.c: ternary @name("c"); }
        actions = { set_prioritised; }
        size = 64;
        entries = {
            const priority=100: 0x00000000 &&& 0x80000000: set_prioritised(4);
            priority=20: 0x8A010000 &&& 0xFFFF0000: set_prioritised(2);
            const priority=10: 0x8A000000 &&& 0xFF000000: set_prioritised(1);
            priority=5: 0x80000000 &&& 0x80000000: set_prioritised(3);
        }
        default_action = set_prioritised(0xF5);
    }
    // Entries that are not const. BMv2 lets nobody add more to a table that starts with some.
    table initial {
        key = { hdr.key.b: exact @name("b"); }
        actions = { set_initial; NoAction; }
        size = 1024;
        entries = {
            0x0101: set_initial(0x1111);
            const 0xFFFF: set_initial(0x2222);
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.key.isValid()) {
            hdr.result.setValid();
            hdr.result = { 0, 0, 0, 0, 0, 0, 0 };
            const_exact.apply();
            const_lpm.apply();
            const_ternary.apply();
            const_range.apply();
            const_optional.apply();
            prioritised.apply();
            initial.apply();
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(EntriesParser(), NoVerify(), EntriesIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
