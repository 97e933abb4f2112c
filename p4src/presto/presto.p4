// SPDX-License-Identifier: Apache-2.0
// Presto: a flow's bytes are divided into cells of equal size, which take the next hops round robin, independent of
// queues. Here the leaf divides flows; in the paper, the hosts' virtual switches do (RLB §II-A.3, its reference [15]).
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
