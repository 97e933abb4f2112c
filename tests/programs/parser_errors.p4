// Every way a v1model parser can fail, and verify() with errors of our own: the error is written into the packet.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

error {
    BadVersion,
    BadLength
}

header control_t {
    bit<8> selector;
    bit<8> length;
}

header item_t {
    bit<8> more;
    bit<8> value;
}

header options_t {
    varbit<64> data;
}

header result_t {
    bit<8>  code;
    bit<8>  depth;
    bit<16> packet_length;
}

struct headers_t {
    result_t   result;
    ethernet_t eth;
    control_t  ctl;
    item_t[3]  items;
    options_t  options;
    ipv4_t     ipv4;
}

struct meta_t {
    bit<8> depth;
}

parser ErrorParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.depth = 0;
        packet.extract(hdr.eth);
        meta.depth = 1;
        transition select(hdr.eth.ether_type) {
            EtherType.IPV4: parse_ipv4;
            EtherType.TEST: parse_control;
            0x0000 &&& 0x8000: accept;
            // Anything else has no matching case: NoMatch in P4_16, but BMv2 takes it as accepted.
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.BadVersion);
        meta.depth = 2;
        verify(hdr.ipv4.ihl >= 5 && hdr.ipv4.total_len >= 20, error.BadLength);
        meta.depth = 3;
        transition accept;
    }
    state parse_control {
        packet.extract(hdr.ctl);
        meta.depth = 4;
        transition select(hdr.ctl.selector) {
            0: parse_item;
            1: parse_options;
            2: parse_lookahead;
            3: parse_advance;
            4: parse_bits;
            5: parse_advance_bits;
            default: accept;
        }
    }
    // A fourth item overruns the stack: StackOutOfBounds.
    state parse_item {
        packet.extract(hdr.items.next);
        meta.depth = meta.depth + 1;
        transition select(hdr.items.last.more) {
            0: accept;
            default: parse_item;
        }
    }
    // More than 64 bits do not fit the varbit: HeaderTooShort.
    state parse_options {
        packet.extract(hdr.options, (bit<32>)hdr.ctl.length * 8);
        meta.depth = 8;
        transition accept;
    }
    // A number of bits that is not whole bytes: ParserInvalidArgument.
    state parse_bits {
        packet.extract(hdr.options, (bit<32>)hdr.ctl.length);
        meta.depth = 11;
        transition accept;
    }
    state parse_advance_bits {
        packet.advance((bit<32>)hdr.ctl.length);
        meta.depth = 12;
        transition accept;
    }
    // Looks past the end of a short packet: PacketTooShort.
    state parse_lookahead {
        meta.depth = packet.lookahead<bit<64>>()[7:0];
        transition accept;
    }
    // Advances past the end of a short packet: PacketTooShort.
    state parse_advance {
        packet.advance((bit<32>)hdr.ctl.length * 8);
        meta.depth = 10;
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control ErrorIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.result.setValid();
        hdr.result.code = 0xFF;
        if (std.parser_error == error.NoError) {
            hdr.result.code = 0;
        } else if (std.parser_error == error.PacketTooShort) {
            hdr.result.code = 1;
        } else if (std.parser_error == error.NoMatch) {
            hdr.result.code = 2;
        } else if (std.parser_error == error.StackOutOfBounds) {
            hdr.result.code = 3;
        } else if (std.parser_error == error.HeaderTooShort) {
            hdr.result.code = 4;
        } else if (std.parser_error == error.ParserTimeout) {
            hdr.result.code = 5;
        } else if (std.parser_error == error.ParserInvalidArgument) {
            hdr.result.code = 6;
        } else if (std.parser_error == error.BadVersion) {
            hdr.result.code = 7;
        } else if (std.parser_error == error.BadLength) {
            hdr.result.code = 8;
        }
        hdr.result.depth = meta.depth;
        hdr.result.packet_length = (bit<16>)std.packet_length;
        std.egress_spec = std.ingress_port;
    }
}

control ErrorEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        // The parser error is still visible in egress.
        if (std.parser_error == error.BadVersion) {
            hdr.result.depth = hdr.result.depth | 0x80;
        }
    }
}

NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(ErrorParser(), NoVerify(), ErrorIngress(), ErrorEgress(), NoUpdate(), EmitAll()) main;
