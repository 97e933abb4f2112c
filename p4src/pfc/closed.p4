// SPDX-License-Identifier: Apache-2.0
// Ports that a pause frame has closed for data. The frame ends here, whoever sent it: a switch or a host's NIC.
#ifndef PFC_CLOSED_P4
#define PFC_CLOSED_P4
#include "pfc/config.p4"

const bit<16> OPCODE_PFC     = 0x0101;          // IEEE 802.1Qbb
const bit<16> CLASS_OF_DATA  = 1 << PRIORITY_DATA;
const ticks_t ENDLESS_TICKS  = 1 << 46;         // until the sender says go on

// index: port; 0 at first; written in ingress only.
@name("pfc_closed_until_ticks") register<ticks_t>(PORTS) pfc_closed_until_ticks;  // read in egress, too
@name("pfc_closed_ticks") register<ticks_t>(PORTS) pfc_closed_ticks;              // all closed times up to then
@name("pfc_received") counter(PORTS, CounterType.packets) pfc_received;

control ReceivePause(in pfc_t pause, inout standard_metadata_t standard_metadata) {
    PauseUnit() pause_unit;
    apply {
        bit<32> port = (bit<32>)standard_metadata.ingress_port;
        ticks_t now_ticks = standard_metadata.ingress_global_timestamp;
        pfc_received.count(port);
        mark_to_drop(standard_metadata);  // consumed, not lost
        if (pause.classes & CLASS_OF_DATA != 0) {
            bit<32> quantum;
            ticks_t until_ticks;
            ticks_t total_ticks;
            ticks_t length_ticks;
            pause_unit.apply(standard_metadata.ingress_port, quantum);
            length_ticks = (ticks_t)(((bit<64>)pause.quanta_of_data * (bit<64>)quantum + 0xFFFF) >> 16);
            if (quantum == 0 && pause.quanta_of_data != 0) {
                length_ticks = ENDLESS_TICKS;
            }
            pfc_closed_until_ticks.read(until_ticks, port);
            pfc_closed_ticks.read(total_ticks, port);
            if (until_ticks > now_ticks) {
                total_ticks = total_ticks - (until_ticks - now_ticks);  // the rest of the pause before
            }
            pfc_closed_until_ticks.write(port, now_ticks + length_ticks);
            pfc_closed_ticks.write(port, total_ticks + length_ticks);
        }
    }
}

#endif
