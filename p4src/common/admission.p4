// SPDX-License-Identifier: Apache-2.0
// First block of every ingress: classifies the packet, and drops what must not enter the network.
//
//   port_role     ingress_port -> host_port | guarded_port | fabric_port | group_port
//                 a port without an entry is a host port, and untrusted; the port of a host whose addresses are known
//                 is guarded (common/source_guard.p4). A group port leads to a switch of the same Dragonfly group;
//                 only the Dragonfly programs use this role
// The top program (the file with `main`) defines two constants: KNOWS_DETOURS, true for a Dragonfly, accepts detour
// headers (common/headers.p4); KNOWS_CLASSES accepts VLAN tags.
// Drops malformed and unsupported packets, control frames of the fabric that come from hosts, and spoofed source
// addresses. Sends LLDP to the controller.
// Sets meta.kind, meta.from_host, meta.within_group and the queue's priority.
#ifndef COMMON_ADMISSION_P4
#define COMMON_ADMISSION_P4
#include "common/control_limits.p4"
#include "common/drops.p4"
#include "common/instances.p4"
#include "common/source_guard.p4"

// True in RLB's programs, which handle warnings of pauses (CNM) and path probes.
#ifndef KNOWS_RLB
#define KNOWS_RLB false
#endif

control PortRole(in port_t ingress_port, out bool from_host, out bool guarded, out bool within_group) {
    action host_port() {
        from_host = true;
    }
    action guarded_port() {
        from_host = true;
        guarded = true;
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
        actions = { host_port; guarded_port; fabric_port; group_port; }
        const default_action = host_port();
        size = 512;
    }
    apply {
        from_host = true;
        guarded = false;
        within_group = false;
        port_role.apply();
    }
}

// Classifies IPv4 packets as control (their loss or delay stops a sender: Flowcut §II-B, RoCE), data, or other.
control ClassifyIpv4(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IsControl() is_control;
    LimitHost() limit_host;
    Police() police;

    apply {
        bool control_packet;
        bool has_bad_length;
        is_control.apply(hdr, meta.frame_bytes, control_packet, has_bad_length);
        if (control_packet) {
            meta.kind = PacketKind_t.CONTROL;
            if (hdr.ipv4.dscp != Dscp_t.DEMOTED && hdr.ipv4.dscp != Dscp_t.DEMOTED_STEERED) {
                standard_metadata.priority = PRIORITY_CONTROL;
                if (meta.from_host) {
                    limit_host.apply(standard_metadata.ingress_port, hdr, standard_metadata);
                }
            }
        } else {
            meta.kind = PacketKind_t.OTHER;
            if (hdr.udp.isValid() || hdr.tcp.isValid()) {
                meta.kind = PacketKind_t.DATA;
            }
            if (has_bad_length && meta.from_host) {
                police.apply(Policed_t.CONTROL_TOO_LONG);
            }
        }
    }
}

control Admission(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PortRole() port_role;
    SourceGuard() source_guard;
    ClassifyIpv4() classify_ipv4;
    Drop() drop;

    apply {
        bool guarded;
        bool spoofed = false;
        meta.kind = PacketKind_t.NONE;
        port_role.apply(standard_metadata.ingress_port, meta.from_host, guarded, meta.within_group);
        if (standard_metadata.instance_type == INSTANCE_RECIRCULATED
            || standard_metadata.instance_type == INSTANCE_RESUBMITTED) {
            meta.from_host = false;  // sent by this switch to itself; its ingress port has no meaning
        } else if (guarded && hdr.ipv4.isValid()) {
            source_guard.apply(standard_metadata.ingress_port, hdr.ipv4, spoofed);
        }
        if (hdr.vlan.isValid() && !KNOWS_CLASSES) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            drop.apply(DropReason_t.MALFORMED, meta, standard_metadata);
        } else if (meta.from_host && (hdr.tailrace.isValid() || hdr.detour.isValid()
                                      || hdr.ethernet.ether_type == ETHERTYPE_LLDP)) {
            drop.apply(DropReason_t.CONTROL_FROM_HOST, meta, standard_metadata);
        } else if (spoofed) {
            drop.apply(DropReason_t.SPOOFED_SOURCE, meta, standard_metadata);
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
            classify_ipv4.apply(hdr, meta, standard_metadata);
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
