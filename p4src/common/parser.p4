// SPDX-License-Identifier: Apache-2.0
//  start -> packet_out
//        -> ethernet -> [detour] -> tailrace -> shim + stamps -> ipv4     Flowcut: data between switches
//                                            -> ack + stamps              Flowcut: ACK
//                                            -> probe -> ipv4             RLB: measures the RTT of a path
//                                            -> cnm                       RLB: congestion notification message
//                                -> ipv4 -> udp -> [nic_shim] -> bth      nic_shim: of a Flowcut NIC
//                                        -> tcp
//                    -> [vlan]   -> ipv4
//                    -> pfc
// The parser drops nothing. It sets the flow key (5-tuple), so later blocks need not distinguish UDP, TCP and ACKs.
#ifndef COMMON_PARSER_P4
#define COMMON_PARSER_P4
#include "common/headers.p4"
#include "common/metadata.p4"

error { Ipv4Options, BadIpv4, TooManyStamps }

parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<4> stamps_left;

    state start {
        stamps_left = 0;
        transition select(standard_metadata.ingress_port) {
            (bit<9>)SpecialPort_t.CPU: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;  // the frame after it is not parsed, and is sent unchanged
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.frame_bytes = standard_metadata.packet_length;
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_TAILRACE: parse_subtype;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_MAC_CONTROL: parse_mac_control;
            default: accept;
        }
    }
    state parse_mac_control {
        packet.extract(hdr.pfc);  // or another MAC control frame, which no block reads
        transition accept;
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.next_ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_subtype {
        transition select(packet.lookahead<bit<8>>()) {
            (bit<8>)Subtype_t.DETOUR: parse_detour;
            default: parse_tailrace;
        }
    }
    state parse_detour {
        packet.extract(hdr.detour_tag);  // the subtype DETOUR; hdr.tailrace has the subtype after the detour header
        packet.extract(hdr.detour);
        meta.detour = hdr.detour.group;
        meta.frame_bytes = meta.frame_bytes - DETOUR_BYTES;
        transition select(hdr.detour.next_ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_TAILRACE: parse_tailrace;
            default: accept;
        }
    }
    state parse_tailrace {
        packet.extract(hdr.tailrace);
        transition select(hdr.tailrace.subtype) {
            Subtype_t.DATA_SHIM: parse_shim;
            Subtype_t.FLOWCUT_ACK: parse_ack;
            Subtype_t.CNM: parse_cnm;
            Subtype_t.PATH_PROBE: parse_probe;
            default: accept;
        }
    }
    state parse_cnm {
        packet.extract(hdr.cnm);
        transition accept;
    }
    state parse_probe {
        packet.extract(hdr.probe);
        meta.frame_bytes = meta.frame_bytes - PROBE_BYTES;
        transition select(hdr.probe.next_ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_shim {
        packet.extract(hdr.shim);
        stamps_left = hdr.shim.stamps;
        meta.frame_bytes = meta.frame_bytes - SHIM_BYTES - STAMP_BYTES * (bit<32>)hdr.shim.stamps;
        verify(hdr.shim.stamps <= STAMPS, error.TooManyStamps);
        transition parse_shim_stamps;
    }
    state parse_ack {
        packet.extract(hdr.ack);
        stamps_left = hdr.ack.stamps;
        meta.flow.src = hdr.ack.src;
        meta.flow.dst = hdr.ack.dst;
        meta.flow.sport = hdr.ack.sport;
        meta.flow.dport = hdr.ack.dport;
        meta.flow.protocol = hdr.ack.protocol;
        verify(hdr.ack.stamps <= STAMPS, error.TooManyStamps);
        transition parse_ack_stamps;
    }
    state parse_shim_stamps {
        transition select(stamps_left) {
            0: parse_shimmed;
            default: parse_shim_stamp;
        }
    }
    state parse_shim_stamp {
        packet.extract(hdr.stamps.next);
        stamps_left = stamps_left - 1;
        transition parse_shim_stamps;
    }
    state parse_shimmed {
        transition select(hdr.shim.next_ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ack_stamps {
        transition select(stamps_left) {
            0: accept;
            default: parse_ack_stamp;
        }
    }
    state parse_ack_stamp {
        packet.extract(hdr.stamps.next);
        stamps_left = stamps_left - 1;
        transition parse_ack_stamps;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.BadIpv4);
        verify(hdr.ipv4.ihl == 5, error.Ipv4Options);
        meta.flow.src = hdr.ipv4.src;
        meta.flow.dst = hdr.ipv4.dst;
        meta.flow.protocol = hdr.ipv4.protocol;
        // Only the first fragment of a datagram has ports. All fragments must take one path, so the key has no ports.
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, 0, PROTOCOL_UDP): parse_udp;
            (0, 0, PROTOCOL_TCP): parse_tcp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.flow.sport = hdr.tcp.sport;
        meta.flow.dport = hdr.tcp.dport;
        transition accept;
    }
    state parse_udp {
        packet.extract(hdr.udp);
        meta.flow.sport = hdr.udp.sport;
        meta.flow.dport = hdr.udp.dport;
        transition select(hdr.udp.dport) {
            UDP_ROCE: parse_bth;
            UDP_NIC_DATA: parse_nic_shim;  // a Flowcut NIC sent it: the shim has the flow's ports
            default: accept;
        }
    }
    state parse_nic_shim {
        packet.extract(hdr.nic_shim);
        transition parse_bth;
    }
    state parse_bth {
        packet.extract(hdr.bth);
        transition accept;
    }
}

#endif
