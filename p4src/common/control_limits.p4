// SPDX-License-Identifier: Apache-2.0
// Limits of control packets from hosts. ACK, NAK, CNP (RoCE) and a NIC's Flowcut ACK have priority over all data, since
// their loss or delay stops a sender. A host must not abuse this priority, so such packets must be short and few.
//
//   host_limits   ingress_port -> limit_host(reason)   the rate at which a host's port may send them
//   port_limits   egress_port  -> limit_port()         the rate at which a port sends them before its data
//
// Each entry of both tables has a meter of bytes; a port without an entry has no limit. Packets above the rate are
// demoted: they wait with data, here and at all later switches, which recognise them by DSCP. Blocks that track or
// balance data still treat them as control. They are dropped only if the queue is full.
#ifndef COMMON_CONTROL_LIMITS_P4
#define COMMON_CONTROL_LIMITS_P4
#include "common/metadata.p4"

@name("policed") counter(POLICED_KINDS, CounterType.packets_and_bytes) policed;

control Police(in Policed_t what) {
    apply {
        policed.count((bit<32>)(bit<8>)what);
    }
}

// Whether an IPv4 packet is control between hosts: it has the headers of a control packet, it is no longer than the
// longest control packet, and its lengths are consistent. `has_bad_length`: it has such headers, but fails a check of
// its lengths.
control IsControl(in headers_t hdr, in bit<32> frame_bytes, out bool is_control, out bool has_bad_length) {
    apply {
        bool has_control_headers =
            (hdr.bth.isValid() && (hdr.bth.opcode == BTH_ACKNOWLEDGE || hdr.bth.opcode == BTH_CNP))
            || (hdr.udp.isValid() && hdr.udp.dport == UDP_NIC_ACK);
        is_control = has_control_headers && frame_bytes <= MAX_CONTROL_BYTES
            && (bit<32>)hdr.ipv4.total_len + ETHERNET_BYTES <= frame_bytes
            && hdr.udp.length |+| IPV4_BYTES == hdr.ipv4.total_len;
        has_bad_length = has_control_headers && !is_control;
    }
}

// Demotes a control packet: here and at all later switches it waits with data.
control Demote(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.priority = PRIORITY_DATA;
        if (IS_STEERED(hdr.ipv4.dscp)) {
            hdr.ipv4.dscp = Dscp_t.DEMOTED_STEERED;
        } else {
            hdr.ipv4.dscp = Dscp_t.DEMOTED;
        }
    }
}

// Applies the rate limit of a host's port to a control packet, at the switch of this host.
control LimitHost(in port_t ingress_port, inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Demote() demote;
    Police() police;
    direct_meter<bit<2>>(MeterType.bytes) host_control;
    bit<2> colour = 0;
    Policed_t why = Policed_t.CONTROL_OVER_RATE;  // counted if the colour is not 0, green

    action limit_host(@name("reason") Policed_t reason) {
        host_control.read(colour);
        why = reason;
    }
    action no_host_limit() {
        host_control.read(colour);
    }
    @name("host_limits")
    table host_limits {
        key = { ingress_port : exact @name("ingress_port"); }
        actions = { limit_host; no_host_limit; }
        const default_action = no_host_limit();
        meters = host_control;
        size = 512;
    }
    apply {
        host_limits.apply();
        if (colour != 0) {
            police.apply(why);
            demote.apply(hdr, standard_metadata);
        }
    }
}

// Applies the rate limit of the egress port to a control packet, at every switch.
control LimitPort(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t standard_metadata) {
    Demote() demote;
    Police() police;
    direct_meter<bit<2>>(MeterType.bytes) port_control;
    bit<2> colour = 0;

    action limit_port() {
        port_control.read(colour);
    }
    action no_port_limit() {
        port_control.read(colour);
    }
    @name("port_limits")
    table port_limits {
        key = { standard_metadata.egress_spec : exact @name("egress_port"); }
        actions = { limit_port; no_port_limit; }
        const default_action = no_port_limit();
        meters = port_control;
        size = 512;
    }
    apply {
        if (meta.kind == PacketKind_t.CONTROL && standard_metadata.priority == PRIORITY_CONTROL) {
            port_limits.apply();
            if (colour != 0) {  // not green: above the rate
                police.apply(Policed_t.CONTROL_OVER_SHARE);
                demote.apply(hdr, standard_metadata);
            }
        }
    }
}

#endif
