// SPDX-License-Identifier: Apache-2.0
// RLB over DRILL: the least loaded of two random next hops and the previous best next hop,
// unless PFC is expected to pause it (RLB §III).
#include "rlb/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "drill/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR DrillSelector
#define SELECTOR_MEMORY DrillMemory
#include "rlb/pipeline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), RlbIngress(), RlbEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
