// SPDX-License-Identifier: Apache-2.0
// What the choice of a new path is told of its flow.
#ifndef FLOWCUT_WISH_P4
#define FLOWCUT_WISH_P4
#include "flowcut/table.p4"

// What a flow knows of its next hops.
struct wish_t {
    port_t      preferred;  // wins among equals
    port_bits_t drained;    // ports that it found congested, as in flow_history
    bool        leaves;     // it was drained from `last_port` just now
    port_t      last_port;
}

#endif
