// SPDX-License-Identifier: Apache-2.0
// RLB over Presto: 64 KB flowcells take the next hops round robin, unless PFC is expected to pause one (RLB §III).
#include "rlb/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "presto/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR PrestoSelector
#include "rlb/pipeline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), RlbIngress(), RlbEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
