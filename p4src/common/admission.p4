// SPDX-License-Identifier: Apache-2.0
// First block of every ingress: what the packet is, and whether it may come in at all.
//
//   port_role     ingress_port -> host_port | fabric_port | group_port
//                 one entry a fabric port; a port that nobody configured is a host's, and trusted with nothing. A
//                 group port leads to a switch of the same Dragonfly group; only the Dragonfly programs ask
// The top program defines KNOWS_DETOURS, whether it is one of a Dragonfly, and KNOWS_CLASSES, whether VLAN tags mean
// anything to it.
// Decides: malformed and unsupported packets, control frames of the fabric from hosts, LLDP to the controller.
// Sets meta.kind, meta.from_host, meta.within_group and the queue's priority.
#ifndef COMMON_ADMISSION_P4
#define COMMON_ADMISSION_P4
#include "common/drops.p4"
#include "common/instances.p4"

// Whether the program is one of RLB, to which warnings of pauses and path probes mean something.
#ifndef KNOWS_RLB
#define KNOWS_RLB false
#endif

control PortRole(in port_t ingress_port, out bool from_host, out bool within_group) {
    action host_port() {
        from_host = true;
    }
    action fabric_port() {
        from_host = false;
    }
    action group_port() {
        from_host = false;
        within_group = true;
    }
    @name("port_role")
    table port_role {
        key = { ingress_port : exact @name("ingress_port"); }
        actions = { host_port; fabric_port; group_port; }
        const default_action = host_port();
        size = 512;
    }
    apply {
        from_host = true;
        within_group = false;
        port_role.apply();
    }
}

// IPv4 that must not wait behind data: its loss or delay stops a sender (Flowcut §II-B, RoCE).
control IsControl(in headers_t hdr, out bool urgent) {
    apply {
        urgent = (hdr.bth.isValid() && (hdr.bth.opcode == BTH_ACKNOWLEDGE || hdr.bth.opcode == BTH_CNP))
            || (hdr.udp.isValid() && hdr.udp.dport == UDP_NIC_ACK);
    }
}

control Admission(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PortRole() port_role;
    IsControl() is_control;
    Drop() drop;

    apply {
        bool urgent = false;
        meta.kind = PacketKind_t.NONE;
        port_role.apply(standard_metadata.ingress_port, meta.from_host, meta.within_group);
        if (standard_metadata.instance_type == INSTANCE_RECIRCULATED
            || standard_metadata.instance_type == INSTANCE_RESUBMITTED) {
            meta.from_host = false;  // sent by this switch to itself; its ingress port says nothing
        }
        if (hdr.vlan.isValid() && !KNOWS_CLASSES) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            drop.apply(DropReason_t.MALFORMED, meta, standard_metadata);
        } else if (meta.from_host && (hdr.tailrace.isValid() || hdr.detour.isValid()
                                      || hdr.ethernet.ether_type == ETHERTYPE_LLDP)) {
            drop.apply(DropReason_t.CONTROL_FROM_HOST, meta, standard_metadata);
        } else if (hdr.detour.isValid() && !KNOWS_DETOURS) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        } else if ((hdr.probe.isValid() || hdr.cnm.isValid()) && !KNOWS_RLB) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        } else if (hdr.cnm.isValid()) {
            meta.kind = PacketKind_t.CNM;
            standard_metadata.priority = PRIORITY_CONTROL;
        } else if (hdr.ack.isValid()) {
            meta.kind = PacketKind_t.FLOWCUT_ACK;
            standard_metadata.priority = PRIORITY_CONTROL;
        } else if (hdr.ipv4.isValid()) {
            is_control.apply(hdr, urgent);
            if (urgent) {
                meta.kind = PacketKind_t.CONTROL;
                standard_metadata.priority = PRIORITY_CONTROL;
            } else if (hdr.udp.isValid() || hdr.tcp.isValid()) {
                meta.kind = PacketKind_t.DATA;
            } else {
                meta.kind = PacketKind_t.OTHER;
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
            hdr.packet_in.setValid();
            hdr.packet_in.reason = PacketInReason_t.LLDP;
            hdr.packet_in.index = (bit<16>)standard_metadata.ingress_port;
            standard_metadata.egress_spec = (port_t)(bit<9>)SpecialPort_t.CPU;
        } else {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        }
    }
}

#endif
