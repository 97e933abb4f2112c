// SPDX-License-Identifier: Apache-2.0
// Egress of the programs that only select paths (common/baseline.p4): common egress and emulated PFC.
#ifndef PFC_EGRESS_P4
#define PFC_EGRESS_P4
#include "common/egress.p4"
#include "pfc/pfc.p4"

control LosslessEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcGate() pfc_gate;
    PfcReview() pfc_review;  // ends or renews the pause of the sender at the ingress port (pfc/ask.p4)
    CommonEgress() common_egress;

    apply {
        bool not_sent;      // the packet does not leave now: it waits, becomes a pause frame, or was dropped
        bool clones_pause;  // output of pfc_review, not used: this egress makes no other clone
        bool charged = meta.charge.bytes != 0;  // the queue accounts contain its bytes; common_egress subtracts them
        pfc_gate.apply(hdr, meta, standard_metadata, not_sent);
        if (!not_sent) {
            common_egress.apply(hdr, meta, standard_metadata);
        }
        pfc_review.apply(charged, meta.charge.in_port, meta, standard_metadata.egress_global_timestamp, clones_pause);
    }
}

#endif
