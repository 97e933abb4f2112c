// SPDX-License-Identifier: Apache-2.0
// Packet-outs by which the controller reads RLB's state: BMv2's P4Runtime server cannot read registers.
//
//   READ_PATH      index PATH_INDEX -> path_state_t    state of a path as Algorithm 1 would use it now
//   READ_RLB_PORT  index port       -> rlb_port_t      this switch's warning for a port; recirculation of all ports
#ifndef RLB_ANSWERS_P4
#define RLB_ANSWERS_P4
#include "common/packet_io.p4"
#include "rlb/path_rtt.p4"
#include "rlb/predictor.p4"
#include "rlb/recirculation.p4"
#include "rlb/warnings.p4"

control RlbPacketOut(in ticks_t now_ticks, in bit<32> keep_ticks, inout headers_t hdr,
                   inout standard_metadata_t standard_metadata, out bool handled) {
    Respond() respond;
    PathRtt() path_rtt;

    apply {
        bit<32> index = (bit<32>)hdr.packet_out.index;
        handled = true;
        if (hdr.packet_out.op == PacketOutOp_t.READ_PATH && index < PATHS) {
            hdr.path_state.setValid();
            hdr.path_state.now_ticks = now_ticks;
            warned_until_ticks.read(hdr.path_state.warned_until_ticks, index);
            port_warned_until_ticks.read(hdr.path_state.port_warned_until_ticks, index / LEAVES);
            bool overdue;
            path_rtt.apply(index, now_ticks, keep_ticks, hdr.path_state.rtt_ticks, overdue);
            path_rtt_seen_ticks.read(hdr.path_state.rtt_seen_ticks, index);
            respond.apply(PacketInReason_t.PATH, hdr, standard_metadata);
        } else if (hdr.packet_out.op == PacketOutOp_t.READ_RLB_PORT && index < PORTS) {
            hdr.rlb_port.setValid();
            hdr.rlb_port.now_ticks = now_ticks;
            own_warning_ticks.read(hdr.rlb_port.own_warning_ticks, index);
            recirculation_ticks.read(hdr.rlb_port.recirculation_ticks, 0);
            recirculation_seen_ticks.read(hdr.rlb_port.recirculation_seen_ticks, 0);
            recirculating.read(hdr.rlb_port.recirculating, 0);
            respond.apply(PacketInReason_t.RLB_PORT, hdr, standard_metadata);
        } else {
            handled = false;
        }
    }
}

#endif
