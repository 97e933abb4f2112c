// SPDX-License-Identifier: Apache-2.0
// Priority flow control for a traffic manager that has none, BMv2's: emulated in the pipeline, where the controller
// configures it (docs/rlb.md, "PFC on BMv2"). Of the priorities only that of data is lossless.
//
//   ingress   PfcEnter: came round, or is to become a pause frame -> its port | ReceivePause | ... limits -> PfcNumber
//             -> charge -> PfcAsk
//   egress    PfcGate: becomes a pause frame | not open, or not its turn -> round | a storm -> dropped | ... release
//             -> PfcReview
//
// The program calls all of them, in these places. What PFC keeps back stays charged (common/queues.p4) to its two ports.
#ifndef PFC_PFC_P4
#define PFC_PFC_P4
#include "pfc/ask.p4"
#include "pfc/order.p4"

// First thing in ingress. It is the last one for packets that have come round, and for clones that become pause frames.
control PfcEnter(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcConfig() pfc_config;
    PauseUnit() pause_unit;
    ComeRound() come_round;
    apply {
        pfc_config.apply(meta.pfc.config);
        if (meta.pfc.config.room != 0) {
            port_t port = standard_metadata.ingress_port;
            if (meta.pfc.wait.numbered == 1) {
                port = meta.pfc.wait.out_port;
            }
            pause_unit.apply(port, meta.pfc.limits);
        }
        if (meta.pfc.wait.numbered == 1) {
            come_round.apply(meta, standard_metadata);
            exit;
        } else if (meta.pfc.ask.wanted == 1) {
            meta.pfc.becomes_pause = true;
            standard_metadata.egress_spec = meta.pfc.ask.port;
            standard_metadata.priority = PRIORITY_CONTROL;
            exit;
        }
    }
}

// Behind the counter of what came in, before admission. The last thing for a pause frame.
control PfcReceive(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReceivePause() receive_pause;
    apply {
        // Whatever else MAC control may be is left to admission, which knows nothing of it.
        if (meta.pfc.config.room != 0 && hdr.pfc.isValid() && hdr.pfc.opcode == OPCODE_PFC
            && hdr.ethernet.dst == MAC_TO_NEIGHBOUR && standard_metadata.parser_error == error.NoError) {
            receive_pause.apply(hdr.pfc, meta.pfc.limits, standard_metadata);
            exit;
        }
    }
}

// When the egress port of a packet is known and all limits but this one are behind it; not for what recirculates on its own.
control PfcNumber(in ticks_t now_ticks, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    TakeNumber() take_number;
    apply {
        if (meta.pfc.config.room != 0) {
            take_number.apply(now_ticks, meta, standard_metadata);
        }
    }
}

// When the packet was charged. `asks`: the packet's one clone is taken.
control PfcAsk(inout metadata_t meta, in ticks_t now_ticks, out bool asks) {
    AskPause() ask_pause;
    apply {
        asks = false;
        if (meta.pfc.config.room != 0) {
            ask_pause.apply(meta, now_ticks, asks);
        }
    }
}

// First thing in egress. `stays`: the packet is not sent, and nothing else is to be done with it but the review.
control PfcGate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                out bool stays) {
    MakePause() make_pause;
    TakeTurn() take_turn;
    GoRound() go_round;
    DiscardInStorm() discard;
    apply {
        stays = false;
        if (meta.pfc.becomes_pause) {
            make_pause.apply(meta.pfc.ask, meta.pfc.config.station, hdr);
        } else if (standard_metadata.egress_port == (port_t)(bit<9>)SpecialPort_t.PAUSE) {
            stays = true;
            recirculate_preserving_field_list(KEEP_FOR_PAUSE);
        } else if (meta.pfc.wait.numbered == 1) {
            bool leaves = false;
            if (standard_metadata.egress_port != (port_t)(bit<9>)SpecialPort_t.WAITING) {
                take_turn.apply(standard_metadata.egress_port, standard_metadata.egress_global_timestamp,
                                meta.pfc.wait.number, meta.pfc.config.patience_ticks, leaves);
                if (!leaves) {
                    pfc_waits.count((bit<32>)standard_metadata.egress_port);
                }
            }
            if (leaves) {
                discard.apply(standard_metadata.egress_port, meta, standard_metadata, stays);
            } else {
                stays = true;
                go_round.apply(standard_metadata.egress_global_timestamp, meta);
            }
        }
    }
}

// Last thing in egress, when the packet was released or is sent round. `charged`: it was, and came in by `port`.
control PfcReview(in bool charged, in port_t port, inout metadata_t meta, in ticks_t now_ticks, out bool asks) {
    ReviewPause() review_pause;
    apply {
        asks = false;
        if (meta.pfc.config.room != 0 && charged) {
            review_pause.apply(port, meta, now_ticks, asks);
        }
    }
}

#endif
