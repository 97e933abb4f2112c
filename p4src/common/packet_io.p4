// SPDX-License-Identifier: Apache-2.0
// Packet-outs of the controller: frames to send at a port, and requests that every program supports.
#ifndef COMMON_PACKET_IO_P4
#define COMMON_PACKET_IO_P4
#include "common/drops.p4"
#include "common/queues.p4"

// Prepares a response as packet-in to the controller; the caller makes its other headers valid.
control Respond(in PacketInReason_t reason, inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.packet_in.setValid();
        hdr.packet_in.reason = reason;
        hdr.packet_in.index = hdr.packet_out.index;
        hdr.packet_out.setInvalid();
        standard_metadata.egress_spec = (port_t)(bit<9>)SpecialPort_t.CPU;
        standard_metadata.priority = PRIORITY_CONTROL;
    }
}

// Handles SEND and READ_PORT. `handled` is false for other operations, which the program may handle.
control PacketOut(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                  out bool handled) {
    Respond() respond;
    Drop() drop;
    QueueLoad() queue_load;
    SourceLoad() source_load;

    apply {
        bit<16> index = hdr.packet_out.index;
        handled = true;
        if (hdr.packet_out.op == PacketOutOp_t.SEND) {
            if (index < (bit<16>)(bit<9>)SpecialPort_t.WAITING) {
                standard_metadata.egress_spec = (port_t)index;
                standard_metadata.priority = PRIORITY_CONTROL;
                hdr.packet_out.setInvalid();
            } else {
                drop.apply(DropReason_t.BAD_PORT, meta, standard_metadata);
            }
        } else if (hdr.packet_out.op == PacketOutOp_t.READ_PORT && index < (bit<16>)PORTS) {
            hdr.port_queues.setValid();
            queue_load.apply((port_t)index, hdr.port_queues.egress_queue_bytes);
            source_load.apply((port_t)index, hdr.port_queues.ingress_queue_bytes);
            respond.apply(PacketInReason_t.PORT, hdr, standard_metadata);
        } else {
            handled = false;
        }
    }
}

#endif
