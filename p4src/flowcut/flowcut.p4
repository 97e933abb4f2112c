// SPDX-License-Identifier: Apache-2.0
// Flowcut switching, variants full switch and ingress only (Flowcut §II-A to §II-C), by the mode in flowcut_config.
// The NIC-only variant (§II-D) runs on the ecmp program. New flowcuts take the least loaded next hop.
#include <core.p4>
#include <v1model.p4>
#include "flowcut/next_hops.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#include "flowcut/pipeline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), FlowcutIngress(), FlowcutEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
