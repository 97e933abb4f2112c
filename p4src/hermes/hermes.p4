// SPDX-License-Identifier: Apache-2.0
// Hermes: the sender chooses the path and writes it into the UDP source port; the switch follows it (RLB §VI-A, its
// reference [17]).
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "hermes/selector.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

#define SELECTOR HermesSelector
#include "common/take_slot.p4"
#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
