// SPDX-License-Identifier: Apache-2.0
// ECMP: a hash of the 5-tuple selects the path, so all packets of a flow take the same path. ECMP is the baseline of
// all four papers. Flowcut's NIC-only variant uses this program, too (Flowcut §II-D).
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "common/select_ecmp.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

control SelectPath(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    SelectEcmp() select_ecmp;
    apply {
        select_ecmp.apply(flow_hash, meta, standard_metadata);
    }
}

#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
