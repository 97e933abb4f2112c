// Variable-length headers: IPv4 options of 0..40 bytes, taken whole, compared, copied, checksummed and removed.
// SPDX-License-Identifier: Apache-2.0
#include "common/base.p4"

header options_t {
    varbit<320> data;
}

// Variable field between two fixed ones.
header tlv_t {
    bit<8>     kind;
    bit<8>     length;
    varbit<96> value;
    bit<8>     trailer;
}

header note_t {
    bit<8>  copied;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t eth;
    note_t     note;
    ipv4_t     ipv4;
    options_t  options;
    options_t  copy;
    tlv_t      tlv;
}

struct meta_t {
}

parser VarbitParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.eth);
        transition select(hdr.eth.ether_type) {
            EtherType.IPV4: parse_ipv4;
            EtherType.TEST: parse_tlv;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5: accept;
            default: parse_options;
        }
    }
    state parse_options {
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition select(hdr.ipv4.protocol) {
            0xFD: parse_tlv;
            default: accept;
        }
    }
    state parse_tlv {
        bit<16> start_of_tlv = packet.lookahead<bit<16>>();
        packet.extract(hdr.tlv, (bit<32>)(start_of_tlv[7:0]) << 3);
        transition accept;
    }
}

control VarbitVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
              hdr.options.data },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control VarbitIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        hdr.note.setValid();
        hdr.note.copied = (bit<8>)std.checksum_error;
        hdr.note.checksum = 0;
        if (hdr.options.isValid()) {
            if (hdr.ipv4.ttl > 128) {
                hdr.copy = hdr.options;
                hdr.note.copied = hdr.note.copied | 2;
                if (hdr.copy == hdr.options) {
                    hdr.note.copied = hdr.note.copied | 4;
                }
            }
            if (hdr.ipv4.ttl[0:0] == 1) {
                hdr.options.setInvalid();
            }
        }
        if (hdr.tlv.isValid()) {
            hdr.tlv.trailer = hdr.tlv.trailer + hdr.tlv.length;
            if (hdr.tlv.kind == 7) {
                hdr.tlv.setInvalid();
            }
        }
    }
}

NO_EGRESS(headers_t, meta_t)

control VarbitUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.options.isValid() && hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_len, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.options.data },
            hdr.note.checksum, HashAlgorithm.csum16);
    }
}

EMIT_ALL(headers_t)

V1Switch(VarbitParser(), VarbitVerify(), VarbitIngress(), NoEgress(), VarbitUpdate(), EmitAll()) main;
