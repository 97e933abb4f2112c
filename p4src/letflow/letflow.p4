// SPDX-License-Identifier: Apache-2.0
// LetFlow: each flowlet takes a random next hop; a flow may change its path only after a pause longer than the gap.
#include <core.p4>
#include <v1model.p4>
#include "common/select_ecmp.p4"
#include "letflow/flowlets.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

control SelectPath(in bit<32> flow_hash, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Flowlets() flowlets;
    SelectEcmp() select_ecmp;

    apply {
        bit<32> value = flow_hash;
        bool begins;
        if (meta.kind == PacketKind_t.DATA) {
            flowlets.apply(flow_hash, standard_metadata.ingress_global_timestamp, value, begins);
        }
        select_ecmp.apply(value, meta, standard_metadata);
    }
}

#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), CommonEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
