// SPDX-License-Identifier: Apache-2.0
// DRILL(2,1): every packet takes the least loaded of three next hops: two random next hops and the one that the last
// packet took (RLB §VI-A, its reference [18]).
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "drill/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR DrillSelector
#define SELECTOR_MEMORY DrillMemory
#include "common/take_slot.p4"
#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
