// SPDX-License-Identifier: Apache-2.0
// Input for the choice of a new path.
#ifndef FLOWCUT_PREFERENCE_P4
#define FLOWCUT_PREFERENCE_P4
#include "flowcut/table.p4"

// A flow's preferences among its next hops.
struct preference_t {
    port_t      preferred;         // wins among equally good ports
    port_bits_t drained;           // ports that were congested for the flow, as in flow_history
    bool        avoids_last_port;  // the flow is leaving `last_port`
    port_t      last_port;
}

#endif
