// SPDX-License-Identifier: Apache-2.0
// Presto: a flow's bytes are cut into cells of one size, and cells go to the next hops in turn, whatever waits there.
// At the leaf here, where the paper has it in the hosts' virtual switches (RLB §II-A.3, its reference [15]).
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "presto/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR PrestoSelector
#include "common/take_slot.p4"
#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
