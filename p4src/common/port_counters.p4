// SPDX-License-Identifier: Apache-2.0
// Counts received and sent packets and bytes of each port.
#ifndef COMMON_PORT_COUNTERS_P4
#define COMMON_PORT_COUNTERS_P4
#include "common/types.p4"

control CountIn(in port_t port) {
    @name("port_rx") counter(PORTS, CounterType.packets_and_bytes) port_rx;
    apply {
        port_rx.count((bit<32>)port);
    }
}

control CountOut(in port_t port) {
    @name("port_tx") counter(PORTS, CounterType.packets_and_bytes) port_tx;
    apply {
        port_tx.count((bit<32>)port);
    }
}

#endif
