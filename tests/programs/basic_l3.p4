// SPDX-License-Identifier: Apache-2.0
// The smallest IPv4 router: longest prefix match, next hop's MAC, TTL, header checksum. The benchmarks' program.
//
//   parse Ethernet, IPv4 -> verify checksum -> route (LPM) -> smac of the egress port -> update checksum -> deparse
//
// What dies: frames that are not IPv4, packets with a bad header checksum, a TTL of 1 or less, no route.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<32> ROUTE_TABLE_SIZE = 16384;

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9> port_t;

header ethernet_t {
    mac_t    dst;
    mac_t    src;
    bit<16>  ether_type;
}

header ipv4_h {
    bit<4>   version;
    bit<4>   ihl;
    bit<8>   dscp_ecn;
    bit<16>  total_len;
    bit<16>  identification;
    bit<3>   flags;
    bit<13>  frag_offset;
    bit<8>   ttl;
    bit<8>   protocol;
    bit<16>  checksum;
    ipv4_t   src;
    ipv4_t   dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_h     ipv4;
}

struct metadata_t { }

parser L3Parser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control L3VerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control L3Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    action forward(@name("next_hop") mac_t next_hop, @name("port") port_t port) {
        std.egress_spec = port;
        hdr.ethernet.dst = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    @name("route")
    table route {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { forward; drop; }
        const default_action = drop();
        size = ROUTE_TABLE_SIZE;
    }

    apply {
        if (hdr.ipv4.isValid() && std.checksum_error == 0 && hdr.ipv4.ttl > 1) {
            route.apply();
        } else {
            drop();
        }
    }
}  // control L3Ingress

control L3Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action rewrite_source(@name("src") mac_t src) {
        hdr.ethernet.src = src;
    }

    @name("port_mac")
    table port_mac {
        key = { std.egress_port: exact @name("port"); }
        actions = { rewrite_source; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        port_mac.apply();
    }
}  // control L3Egress

control L3ComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control L3Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(L3Parser(), L3VerifyChecksum(), L3Ingress(), L3Egress(), L3ComputeChecksum(), L3Deparser()) main;
