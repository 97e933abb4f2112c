// Control flow: exit and return, switch on an action and on a value, hit and miss, nested if, if inside an action.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header order_t {
    bit<8>  code;
    bit<8>  value;
    bit<16> trace;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
}

parser FlowParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

// A function with several returns.
bit<8> clamp(in bit<8> value, in bit<8> limit) {
    if (value > limit) {
        return limit;
    }
    if (value < 3) {
        return 3;
    }
    return value;
}

// An action outside a control: p4c hands it a copy of the standard metadata and copies it back.
action drop(inout standard_metadata_t std) {
    mark_to_drop(std);
}

control FlowIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action bump(bit<16> amount) {
        hdr.order.trace = hdr.order.trace + amount;
    }
    // Conditions and a return inside an action.
    action conditional(bit<8> limit) {
        if (hdr.order.value > limit) {
            hdr.order.value = limit;
            if (hdr.order.code[0:0] == 1) {
                hdr.order.trace = hdr.order.trace | 0x8000;
                return;
            }
        } else {
            hdr.order.value = hdr.order.value + 1;
        }
        hdr.order.trace = hdr.order.trace ^ 0x0F00;
    }
    action leave() {
        hdr.order.trace = 0xE817;
        exit;
    }
    table first {
        key = { hdr.order.code: exact @name("code"); }
        actions = { bump; conditional; leave; drop(std); NoAction; }
        size = 256;
        default_action = NoAction();
    }
    table second {
        key = { hdr.order.value: ternary @name("value"); }
        actions = { bump; conditional; NoAction; }
        size = 64;
        default_action = bump(7);
    }
    table third {
        key = { hdr.order.trace: range @name("trace"); }
        actions = { bump; leave; }
        size = 64;
        default_action = bump(0x100);
    }
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (!hdr.order.isValid()) {
            return;
        }
        hdr.order.trace = 0;
        switch (first.apply().action_run) {
            bump: {
                hdr.order.trace = hdr.order.trace + 1;
                if (second.apply().hit) {
                    hdr.order.trace = hdr.order.trace + 2;
                } else {
                    hdr.order.trace = hdr.order.trace + 4;
                }
            }
            conditional:
            drop: {
                hdr.order.trace = hdr.order.trace + 8;
            }
            default: {
                if (third.apply().miss) {
                    hdr.order.trace = hdr.order.trace + 16;
                }
            }
        }
        switch (hdr.order.value) {
            1: { bump(0x20); }
            2:
            3: { bump(0x40); }
            200: { exit; }
            default: { hdr.order.value = clamp(hdr.order.value, 100); }
        }
        if (hdr.order.code > 200) {
            if (hdr.order.code > 250) {
                hdr.order.trace = ~hdr.order.trace;
                return;
            } else if (hdr.order.code == 240) {
                drop(std);
                exit;
            }
            hdr.order.trace[3:0] = 0xA;
        }
        hdr.order.code = hdr.order.code + 1;
    }
}

control FlowEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action finish() {
        hdr.eth.src[7:0] = 0xFF;
        if (hdr.order.isValid() && hdr.order.code == 17) {
            exit;
        }
        hdr.eth.src[15:8] = 0xEE;
    }
    apply {
        // exit in ingress does not skip egress.
        hdr.eth.src[47:40] = 0x5A;
        finish();
        hdr.eth.src[23:16] = 0xDD;
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(FlowParser(), NoVerify(), FlowIngress(), FlowEgress(), NoUpdate(), EmitAll()) main;
