// Header stacks: next, last and lastIndex in the parser; push, pop, constant and run-time indices in the controls.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

#define DEPTH 5

header mpls_t {
    bit<20> label;
    bit<3>  tc;
    bit<1>  bottom;
    bit<8>  ttl;
}

header note_t {
    bit<8>  last_index;
    bit<8>  valid_bits;
    bit<32> picked;
}

struct headers_t {
    ethernet_t    eth;
    note_t        note;
    mpls_t[DEPTH] mpls;
    ipv4_t        ipv4;
}

struct meta_t {
    bit<32> last_index;
    bit<20> last_label;
    bit<32> labels;
}

parser StackParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.last_index = 0xFF;
        meta.last_label = 0;
        meta.labels = 0;
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.MPLS: parse_mpls;
            EtherType.IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_mpls {
        packet.extract(hdr.mpls.next);
        meta.last_index = hdr.mpls.lastIndex;
        meta.last_label = hdr.mpls.last.label;
        meta.labels = meta.labels + 1;
        transition select(hdr.mpls.last.bottom, (bit<3>)meta.last_index) {
            (1, _): parse_ipv4;
            (0, DEPTH - 1): accept;
            default: parse_mpls;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control StackIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action push_one(bit<20> label) {
        hdr.mpls.push_front(1);
        hdr.mpls[0].setValid();
        hdr.mpls[0] = { label, 1, 0, 64 };
    }
    action push_two() {
        hdr.mpls.push_front(2);
        hdr.mpls[0].setValid();
        hdr.mpls[1].setValid();
        hdr.mpls[0].label = 0xAAAAA;
        hdr.mpls[0].tc = 2;
        hdr.mpls[0].bottom = 0;
        hdr.mpls[0].ttl = 1;
        hdr.mpls[1] = hdr.mpls[0];
        hdr.mpls[1].label = 0xBBBBB;
    }
    action pop_one() {
        hdr.mpls.pop_front(1);
    }
    action pop_all() {
        hdr.mpls.pop_front(DEPTH);
    }
    action swap_ends() {
        mpls_t first = hdr.mpls[0];
        hdr.mpls[0] = hdr.mpls[1];
        hdr.mpls[1] = first;
    }
    table stack_ops {
        key = { hdr.mpls[0].label: ternary @name("label"); }
        actions = { push_one; push_two; pop_one; pop_all; swap_ends; NoAction; }
        size = 64;
        const default_action = NoAction();
    }
    apply {
        std.egress_spec = PORT_OF(hdr.eth);
        hdr.note.setValid();
        hdr.note.last_index = (bit<8>)meta.last_index;
        hdr.note.valid_bits = 0;
        hdr.note.picked = (bit<32>)meta.last_label;
        if (hdr.mpls[0].isValid()) {
            // Run-time index, kept inside the valid part of the stack.
            bit<32> index = meta.last_index;
            hdr.note.picked = (bit<32>)(hdr.mpls[index].label ++ hdr.mpls[index].ttl);
            hdr.mpls[index].tc = hdr.mpls[index].tc ^ 5;
            if (hdr.mpls[meta.labels - 1].ttl < 200) {
                hdr.mpls[meta.labels - 1].ttl = hdr.mpls[meta.labels - 1].ttl + (bit<8>)index;
            }
            if (meta.labels > 1 || hdr.mpls[0].label < 0x80000) {
                stack_ops.apply();
            }
        }
    }
}

control StackEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.note.valid_bits[0:0] = (bit<1>)hdr.mpls[0].isValid();
        hdr.note.valid_bits[1:1] = (bit<1>)hdr.mpls[1].isValid();
        hdr.note.valid_bits[2:2] = (bit<1>)hdr.mpls[2].isValid();
        hdr.note.valid_bits[3:3] = (bit<1>)hdr.mpls[3].isValid();
        hdr.note.valid_bits[4:4] = (bit<1>)hdr.mpls[4].isValid();
        if (hdr.mpls[2].isValid() && hdr.mpls[1].isValid()) {
            if (hdr.mpls[1] == hdr.mpls[2]) {
                hdr.note.valid_bits = hdr.note.valid_bits | 0x80;
            }
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(StackParser(), NoVerify(), StackIngress(), StackEgress(), NoUpdate(), EmitAll()) main;
