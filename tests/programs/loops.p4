// for loops with bounds known to the compiler and with bounds from the packet, break, compound assignment.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header order_t {
    bit<8>  count;
    bit<8>  stop;
    bit<32> value;
    bit<32> sum;
    bit<8>  ones;
    bit<8>  steps;
}

struct headers_t {
    ethernet_t eth;
    order_t    order;
}

struct meta_t {
}

parser LoopParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.order);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control LoopIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    // Unrolled by the compiler.
    action count_ones() {
        bit<32> rest = hdr.order.value;
        hdr.order.ones = 0;
        for (bit<8> i = 0; i < 32; i = i + 1) {
            if (rest[0:0] == 1) {
                hdr.order.ones += 1;
            }
            rest >>= 1;
        }
    }
    // Bound read from the packet, left early by break, cut short by continue. In an action p4c makes jumps of this.
    action sum_up() {
        hdr.order.sum = 0;
        hdr.order.steps = 0;
        for (bit<8> i = 0; i < hdr.order.count; i = i + 1) {
            if (i == hdr.order.stop) {
                break;
            }
            if (i[1:0] == 1) {
                continue;
            }
            hdr.order.sum += hdr.order.value + (bit<32>)i;
            hdr.order.steps |+|= 1;
        }
    }
    // A loop inside a loop, counting down.
    action nested() {
        for (bit<8> outer = 4; outer > 0; outer = outer - 1) {
            for (bit<8> inner = 0; inner < (hdr.order.count & 7); inner = inner + 1) {
                hdr.order.sum ^= (bit<32>)inner << (outer * 3);
            }
        }
    }
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        if (hdr.order.isValid()) {
            count_ones();
            sum_up();
            if (hdr.order.stop > 5) {
                nested();
            }
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(LoopParser(), NoVerify(), LoopIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
