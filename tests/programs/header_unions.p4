// Header unions and stacks of unions: at most one member is valid, and making one valid invalidates the others.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header tag_t {
    bit<8> kind;
}

header short_t {
    bit<8> value;
}

header word_t {
    bit<16> value;
    bit<16> extra;
}

header long_t {
    bit<64> value;
}

header_union body_t {
    short_t narrow;
    word_t  word;
    long_t  wide;
}

header option_a_t {
    bit<8> kind;
    bit<8> value;
}

header option_b_t {
    bit<8>  kind;
    bit<24> value;
}

header option_end_t {
    bit<8> kind;
}

header_union option_t {
    option_a_t   a;
    option_b_t   b;
    option_end_t end;
}

struct headers_t {
    ethernet_t  eth;
    tag_t       tag;
    body_t      body;
    option_t[4] options;
}

struct meta_t {
}

parser UnionParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        packet.extract(hdr.tag);
        transition select(hdr.tag.kind) {
            0x10 &&& 0xF0: parse_narrow;
            0x20 &&& 0xF0: parse_word;
            0x30 &&& 0xF0: parse_wide;
            0x40 &&& 0xF0: parse_options;
            default: accept;
        }
    }
    state parse_narrow {
        packet.extract(hdr.body.narrow);
        transition after_body;
    }
    state parse_word {
        packet.extract(hdr.body.word);
        transition after_body;
    }
    state parse_wide {
        packet.extract(hdr.body.wide);
        transition after_body;
    }
    state after_body {
        transition select(hdr.tag.kind[0:0]) {
            1: parse_options;
            default: accept;
        }
    }
    state parse_options {
        transition select(packet.lookahead<bit<8>>()) {
            0x00: parse_end;
            0xAA: parse_a;
            0xBB: parse_b;
            default: accept;
        }
    }
    state parse_a {
        packet.extract(hdr.options.next.a);
        transition parse_options;
    }
    state parse_b {
        packet.extract(hdr.options.next.b);
        transition parse_options;
    }
    state parse_end {
        packet.extract(hdr.options.next.end);
        transition accept;
    }
}

NO_VERIFY(headers_t, meta_t)

control UnionIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        if (hdr.tag.isValid()) {
            if (hdr.body.narrow.isValid()) {
                bit<8> value = hdr.body.narrow.value;
                hdr.body.word.setValid();
                hdr.body.word.value = (bit<16>)value;
                hdr.body.word.extra = 0x1234;
            } else if (hdr.body.word.isValid()) {
                bit<16> value = hdr.body.word.value;
                if (value[15:15] == 1) {
                    hdr.body.wide.setValid();
                    hdr.body.wide.value = (bit<64>)value << 20;
                } else {
                    hdr.body.word.setInvalid();
                }
            } else if (hdr.body.wide.isValid()) {
                hdr.body.wide.value = hdr.body.wide.value + 1;
            } else {
                hdr.body.narrow.setValid();
                hdr.body.narrow.value = 0x77;
            }
            if (hdr.options[0].a.isValid()) {
                hdr.options[0].a.value = ~hdr.options[0].a.value;
            }
            if (hdr.options[1].b.isValid()) {
                hdr.options[1].b.value = hdr.options[1].b.value - 1;
            }
            if (hdr.options[2].a.isValid()) {
                hdr.options[2].b.setValid();
                hdr.options[2].b.kind = 0xBB;
                hdr.options[2].b.value = 0xC0FFEE;
            }
            if (hdr.options[3].end.isValid()) {
                hdr.options[3].end.setInvalid();
            }
        }
    }
}

NO_EGRESS(headers_t, meta_t)
NO_UPDATE(headers_t, meta_t)
EMIT_ALL(headers_t)

V1Switch(UnionParser(), NoVerify(), UnionIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
