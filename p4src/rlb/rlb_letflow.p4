// SPDX-License-Identifier: Apache-2.0
// RLB over LetFlow: a random next hop for each flowlet, unless PFC is expected to pause it (RLB §III).
#include "rlb/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "letflow/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR LetflowSelector
#include "rlb/pipeline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), RlbIngress(), RlbEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
