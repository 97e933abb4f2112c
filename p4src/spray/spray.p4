// SPDX-License-Identifier: Apache-2.0
// Packet spraying: every data packet takes a random next hop with uniform probability. In symmetric fabrics the load
// is nearly ideal, but packets are reordered (Flowcut §III-C2 and the paper's reference [75]).
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
        bit<32> value = flow_hash;
        if (meta.kind == PacketKind_t.DATA) {
            random(value, 32w0, 32w0xFFFFFFFF);
        }
        select_ecmp.apply(value, meta, standard_metadata);
    }
}

#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
