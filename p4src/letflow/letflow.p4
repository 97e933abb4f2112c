// SPDX-License-Identifier: Apache-2.0
// LetFlow: each flowlet takes a random next hop; a flow may change its path only if it was idle longer than the gap.
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "letflow/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR LetflowSelector
#include "common/take_slot.p4"
#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
