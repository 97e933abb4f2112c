// SPDX-License-Identifier: Apache-2.0
// Input for the choice of a new path.
#ifndef FLOWCUT_WISH_P4
#define FLOWCUT_WISH_P4
#include "flowcut/table.p4"

// A flow's preferences among its next hops.
struct wish_t {
    port_t      preferred;  // wins among equally good ports
    port_bits_t drained;    // ports that were congested for the flow, as in flow_history
    bool        leaves;     // the flow is leaving `last_port`, which is to be avoided
    port_t      last_port;
}

#endif
