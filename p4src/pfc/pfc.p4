// SPDX-License-Identifier: Apache-2.0
// Priority flow control (PFC), emulated in the pipeline for traffic managers without PFC, such as BMv2's. Table entries
// enable the emulation (docs/schemes/rlb-details.md). Only the priority of data is lossless. A program applies all six
// blocks, in this order. Packets that wait stay in the queue accounts of their two ports (common/queues.p4).
//   ingress   PfcEnter    forwards recirculated packets that waited, and clones that become pause frames
//             PfcReceive  consumes received pause frames
//             PfcNumber   numbers data of each egress port, after queue limits: numbered packets must not be dropped
//             PfcAsk      after the charge (bytes added to the queue accounts): clones the packet for a pause frame
//   egress    PfcGate     makes the pause frame; recirculates a packet if it must wait; drops it in a pause storm
//             PfcReview   after the release (bytes subtracted): clones the packet for a resume or a further pause frame
#ifndef PFC_PFC_P4
#define PFC_PFC_P4
#include "pfc/ask.p4"
#include "pfc/order.p4"

// Applied first in ingress; the only ingress block for packets that waited and for clones that become pause frames.
control PfcEnter(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcConfig() pfc_config;
    PauseUnit() pause_unit;
    AfterRecirculation() after_recirculation;
    apply {
        pfc_config.apply(meta.pfc.config);
        if (meta.pfc.config.room != 0) {  // room: maximum of data packets in the switch; 0: no emulation
            port_t port = standard_metadata.ingress_port;
            if (meta.pfc.wait.numbered == 1) {
                port = meta.pfc.wait.out_port;
            }
            pause_unit.apply(port, meta.pfc.limits);  // looks up the port's pause quantum and storm limits
        }
        if (meta.pfc.wait.numbered == 1) {
            after_recirculation.apply(meta, standard_metadata);
            exit;
        } else if (meta.pfc.ask.wanted == 1) {
            meta.pfc.becomes_pause = true;
            standard_metadata.egress_spec = meta.pfc.ask.port;
            standard_metadata.priority = PRIORITY_CONTROL;
            exit;
        }
    }
}

// Applied after the port counter, before admission. Consumes pause frames.
control PfcReceive(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReceivePause() receive_pause;
    apply {
        // Other MAC control frames are left to admission, which drops them as unsupported.
        if (meta.pfc.config.room != 0 && hdr.pfc.isValid() && hdr.pfc.opcode == OPCODE_PFC
            && hdr.ethernet.dst == MAC_TO_NEIGHBOUR && standard_metadata.parser_error == error.NoError) {
            receive_pause.apply(hdr.pfc, meta.pfc.limits, standard_metadata);
            exit;
        }
    }
}

// Applied when the egress port is known, after the queue limits; not to packets that recirculate for other reasons.
control PfcNumber(in ticks_t now_ticks, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    TakeNumber() take_number;
    apply {
        if (meta.pfc.config.room != 0) {
            take_number.apply(now_ticks, meta, standard_metadata);
        }
    }
}

// Applied after the charge. `clones_pause`: the packet was cloned for a pause frame, and cannot be cloned again.
control PfcAsk(inout metadata_t meta, in ticks_t now_ticks, out bool clones_pause) {
    AskPause() ask_pause;
    apply {
        clones_pause = false;
        if (meta.pfc.config.room != 0) {
            ask_pause.apply(meta, now_ticks, clones_pause);
        }
    }
}

// Applied first in egress. `not_sent`: the packet is not sent, and only PfcReview is still to be applied.
control PfcGate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                out bool not_sent) {
    MakePause() make_pause;
    TakeTurn() take_turn;
    RecirculateWaiting() recirculate_waiting;
    DiscardInStorm() discard;
    apply {
        not_sent = false;
        if (meta.pfc.becomes_pause) {
            make_pause.apply(meta.pfc.ask, meta.pfc.config.station, hdr);
        } else if (standard_metadata.egress_port == (port_t)(bit<9>)SpecialPort_t.PAUSE) {
            not_sent = true;
            recirculate_preserving_field_list(KEEP_FOR_PAUSE);
        } else if (meta.pfc.wait.numbered == 1) {  // a data packet; at port WAITING if ingress did not let it in
            bool has_turn = false;
            if (standard_metadata.egress_port != (port_t)(bit<9>)SpecialPort_t.WAITING) {  // has reached its port
                take_turn.apply(standard_metadata.egress_port, standard_metadata.egress_global_timestamp,
                                meta.pfc.wait.number, meta.pfc.config.patience_ticks, has_turn);
                if (!has_turn) {
                    pfc_waits.count((bit<32>)standard_metadata.egress_port);
                }
            }
            if (has_turn) {  // the packet is sent, or discarded if its port is in a pause storm
                discard.apply(standard_metadata.egress_port, meta, standard_metadata, not_sent);
            } else {
                not_sent = true;
                recirculate_waiting.apply(standard_metadata.egress_global_timestamp, meta);
            }
        }
    }
}

// Applied last in egress, after release or recirculation. `charged`: its bytes were in the accounts. `port`: ingress.
control PfcReview(in bool charged, in port_t port, inout metadata_t meta, in ticks_t now_ticks, out bool clones_pause) {
    ReviewPause() review_pause;
    apply {
        clones_pause = false;
        if (meta.pfc.config.room != 0 && charged) {
            review_pause.apply(port, meta, now_ticks, clones_pause);
        }
    }
}

#endif
