// Headers and structs as values: setValid, setInvalid, copy, swap, compare, and validity in expressions and keys.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header pair_t {
    bit<8>  left;
    bit<13> odd;
    bit<3>  rest;
    bit<8>  right;
}

header order_t {
    bit<8> code;
    bit<8> result;
}

struct inner_t {
    bit<8>  x;
    bit<13> y;
}

struct outer_t {
    inner_t first;
    inner_t second;
    bit<8>  count;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
    pair_t     a;
    pair_t     b;
    pair_t     c;
}

struct meta_t {
    outer_t left;
    outer_t right;
}

parser OpsParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition select(hdr.order.code[7:6]) {
            0: parse_a;
            1: parse_a_b;
            2: parse_b;
            default: accept;
        }
    }
    state parse_a {
        packet.extract(hdr.a);
        transition accept;
    }
    state parse_a_b {
        packet.extract(hdr.a);
        packet.extract(hdr.b);
        transition accept;
    }
    state parse_b {
        packet.extract(hdr.b);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control OpsIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action copy_a_to_c() {
        hdr.c = hdr.a;
    }
    action swap() {
        pair_t saved = hdr.a;
        hdr.a = hdr.b;
        hdr.b = saved;
    }
    action fill_c() {
        hdr.c.setValid();
        hdr.c = { 1, 0x1FFF, 2, 3 };
    }
    action remove_a() {
        hdr.a.setInvalid();
    }
    action remove_all() {
        hdr.a.setInvalid();
        hdr.b.setInvalid();
        hdr.c.setInvalid();
    }
    // A second setValid keeps the fields; the assignment of an invalid header invalidates.
    action revalidate() {
        hdr.a.setValid();
        hdr.a = hdr.c;
    }
    table operation {
        key = {
            hdr.order.code[3:0]: exact @name("operation");
            hdr.a.isValid(): exact @name("a_valid");
        }
        actions = { copy_a_to_c; swap; fill_c; remove_a; remove_all; revalidate; NoAction; }
        const entries = {
            (0, true): copy_a_to_c();
            (1, true): swap();
            (1, false): swap();
            (2, true): fill_c();
            (2, false): fill_c();
            (3, true): remove_a();
            (4, true): remove_all();
            (4, false): remove_all();
            (5, true): revalidate();
            (6, false): copy_a_to_c();
        }
        const default_action = NoAction();
    }
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        meta.left = { { 1, 2 }, { 3, 4 }, 5 };
        meta.right = meta.left;
        if (hdr.order.isValid()) {
            hdr.order.result = 0;
            operation.apply();
            if (hdr.a.isValid() && hdr.b.isValid() && hdr.a == hdr.b) {
                hdr.order.result[0:0] = 1;
            }
            if (hdr.a.isValid() && hdr.c.isValid() && hdr.a != hdr.c) {
                hdr.order.result[1:1] = 1;
            }
            if (hdr.a.isValid()) {
                meta.right.second.y = hdr.a.odd;
                meta.right.first.x = hdr.a.left;
            }
            // Whole structs are compared field by field.
            if (meta.left == meta.right) {
                hdr.order.result[2:2] = 1;
            }
            if (meta.left.first == meta.right.first) {
                hdr.order.result[3:3] = 1;
            }
            meta.left = meta.right;
            if (meta.left == meta.right) {
                hdr.order.result[4:4] = 1;
            }
            hdr.order.result[7:7] = (bit<1>)(hdr.b.isValid() || hdr.c.isValid());
        }
    }
}

control OpsEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        // Metadata of ingress is still there.
        if (hdr.order.isValid()) {
            hdr.order.result[6:5] = meta.right.second.y[1:0];
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(OpsParser(), NoVerify(), OpsIngress(), OpsEgress(), NoUpdate(), EmitAll()) main;
