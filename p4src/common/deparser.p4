// SPDX-License-Identifier: Apache-2.0
// Emits all valid headers.
#ifndef COMMON_DEPARSER_P4
#define COMMON_DEPARSER_P4
#include "common/headers.p4"

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.bucket);
        packet.emit(hdr.entries);
        packet.emit(hdr.port_queues);
        packet.emit(hdr.path_state);
        packet.emit(hdr.rlb_port);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.detour_tag);
        packet.emit(hdr.detour);
        packet.emit(hdr.tailrace);
        packet.emit(hdr.shim);
        packet.emit(hdr.ack);
        packet.emit(hdr.pause);
        packet.emit(hdr.cnm);
        packet.emit(hdr.pfc);
        packet.emit(hdr.pfc_padding);
        packet.emit(hdr.probe);
        packet.emit(hdr.stamps);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.nic_shim);
        packet.emit(hdr.bth);
    }
}

#endif
