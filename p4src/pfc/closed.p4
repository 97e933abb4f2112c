// SPDX-License-Identifier: Apache-2.0
// Consumes pause frames from switches and hosts' NICs. A pause closes the port for data, which then waits for its end.
#ifndef PFC_CLOSED_P4
#define PFC_CLOSED_P4
#include "pfc/frame.p4"
#include "pfc/watch.p4"

@name("pfc_received") counter(PORTS, CounterType.packets) pfc_received;

// A pause is ignored if no quantum length is configured for the port: the length of the pause would be unknown.
control ReceivePause(in pfc_t pause, in pfc_port_t limits, inout standard_metadata_t standard_metadata) {
    UpdateHeldTime() update_held_time;
    apply {
        bit<32> port = (bit<32>)standard_metadata.ingress_port;
        ticks_t now_ticks = standard_metadata.ingress_global_timestamp;
        pfc_received.count(port);
        mark_to_drop(standard_metadata);  // consumed, not lost
        if (pause.classes & CLASS_OF_DATA != 0 && limits.quantum != 0) {
            ticks_t until_ticks;  // end of the pause; in a pause storm (pfc/watch.p4), end of the storm
            ticks_t held_ticks;   // not used here: only updates the held time, which falls by `leak` (pfc/watch.p4)
            bit<2> storm;         // a Storm_t. In the next line, limits.quantum is in ticks, unsigned 16.16; rounded up
            ticks_t length_ticks = (ticks_t)(((bit<64>)pause.quanta_of_data * (bit<64>)limits.quantum + 0xFFFF) >> 16);
            pfc_storm.read(storm, port);
            pfc_closed_until_ticks.read(until_ticks, port);
            update_held_time.apply(standard_metadata.ingress_port, now_ticks, until_ticks, limits.leak, held_ticks);
            if ((Storm_t)storm == Storm_t.NONE) {
                ticks_t total_ticks;
                pfc_closed_ticks.read(total_ticks, port);
                if (until_ticks > now_ticks) {
                    total_ticks = total_ticks - (until_ticks - now_ticks);  // the rest of the previous pause
                }
                pfc_closed_until_ticks.write(port, now_ticks + length_ticks);
                pfc_closed_ticks.write(port, total_ticks + length_ticks);
            } else {
                pfc_storm_until_ticks.read(until_ticks, port);
                ticks_t storm_end_ticks = now_ticks + length_ticks + limits.restore_ticks;
                if (length_ticks != 0 || storm_end_ticks < until_ticks) {  // a resume never extends a storm
                    pfc_storm_until_ticks.write(port, storm_end_ticks);
                }
            }
        }
    }
}

#endif
