// Registers of 1, 7, 32, 48 and 200 bits: read, modify, write; state carried from packet to packet, also in egress.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header op_t {
    bit<8>   code;
    bit<8>   index;
    bit<48>  operand;
    bit<200> wide;
    bit<32>  seen;
    bit<7>   narrow;
    bit<1>   flag;
}

struct headers_t {
    ethernet_t eth;
    op_t       op;
}

struct meta_t {
}

parser RegisterParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.op);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control RegisterIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<32>>(256) packets_seen;
    register<bit<48>>(256) sums;
    register<bit<200>>(16) wide_cells;
    register<bit<7>>(256) narrow_cells;
    register<bit<1>>(256) flags;

    action count_packet() {
        bit<32> seen;
        packets_seen.read(seen, (bit<32>)hdr.op.index);
        seen = seen + 1;
        packets_seen.write((bit<32>)hdr.op.index, seen);
        hdr.op.seen = seen;
    }
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.op.isValid()) {
            count_packet();
            bit<32> index = (bit<32>)hdr.op.index;
            if (hdr.op.code[0:0] == 1) {
                bit<48> sum;
                sums.read(sum, index);
                sum = sum + hdr.op.operand;
                sums.write(index, sum);
                hdr.op.operand = sum;
            }
            if (hdr.op.code[1:1] == 1) {
                bit<200> previous;
                wide_cells.read(previous, index & 15);
                wide_cells.write(index & 15, hdr.op.wide);
                hdr.op.wide = previous ^ hdr.op.wide;
            }
            if (hdr.op.code[2:2] == 1) {
                bit<7> narrow;
                narrow_cells.read(narrow, index);
                narrow_cells.write(index, narrow + hdr.op.narrow);
                hdr.op.narrow = narrow;
            }
            if (hdr.op.code[3:3] == 1) {
                bit<1> flag;
                flags.read(flag, index);
                flags.write(index, ~flag);
                hdr.op.flag = flag;
            }
        }
    }
}

control RegisterEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<32>>(8) by_port;
    apply {
        if (hdr.op.isValid() && hdr.op.code[4:4] == 1) {
            bit<32> bytes;
            by_port.read(bytes, (bit<32>)std.egress_port & 7);
            bytes = bytes + std.packet_length;
            by_port.write((bit<32>)std.egress_port & 7, bytes);
            hdr.op.seen = bytes;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(RegisterParser(), NoVerify(), RegisterIngress(), RegisterEgress(), NoUpdate(), EmitAll()) main;
