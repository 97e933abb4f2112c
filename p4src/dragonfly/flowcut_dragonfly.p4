// SPDX-License-Identifier: Apache-2.0
// Flowcut switching in a Dragonfly, variants full switch and ingress only: flowcut/flowcut.p4 with Dragonfly paths.
#define KNOWS_CHANNELS
#include <core.p4>
#include <v1model.p4>
#include "dragonfly/flowcut_paths.p4"

const bool KNOWS_DETOURS = true;
const bool KNOWS_CLASSES = false;

#include "flowcut/pipeline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), FlowcutIngress(), FlowcutEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
