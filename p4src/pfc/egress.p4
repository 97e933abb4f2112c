// SPDX-License-Identifier: Apache-2.0
// Egress of the programs that only select paths (common/baseline.p4): common egress and emulated PFC.
#ifndef PFC_EGRESS_P4
#define PFC_EGRESS_P4
#include "common/egress.p4"
#include "pfc/pfc.p4"

control LosslessEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcGate() pfc_gate;
    PfcReview() pfc_review;
    CommonEgress() common_egress;

    apply {
        bool not_sent;
        bool clones_pause;
        bool charged = meta.charge.bytes != 0;
        pfc_gate.apply(hdr, meta, standard_metadata, not_sent);
        if (!not_sent) {
            common_egress.apply(hdr, meta, standard_metadata);
        }
        pfc_review.apply(charged, meta.charge.in_port, meta, standard_metadata.egress_global_timestamp, clones_pause);
    }
}

#endif
