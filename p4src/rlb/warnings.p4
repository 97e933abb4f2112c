// SPDX-License-Identifier: Apache-2.0
// Warnings that this switch has received: PFC may soon pause these paths. A path is an uplink and a destination leaf.
#ifndef RLB_WARNINGS_P4
#define RLB_WARNINGS_P4
#include "common/metadata.p4"

// Cell: time at which the warning ends; 0: none, or withdrawn. Written and read in ingress only.
@name("warned_until_ticks") register<ticks_t>(PATHS) warned_until_ticks;                  // index: PATH_INDEX
@name("port_warned_until_ticks") register<ticks_t>(PATH_PORTS) port_warned_until_ticks;  // index: port; all leaves

// The time at which the warning for this port and leaf ends; 0: there is no warning.
control WarnedUntil(in port_t port, in bit<16> leaf, in ticks_t now_ticks, out ticks_t until_ticks) {
    apply {
        ticks_t port_until_ticks;
        until_ticks = 0;
        if ((bit<32>)leaf < LEAVES) {
            warned_until_ticks.read(until_ticks, PATH_INDEX(port, leaf));
        }
        port_warned_until_ticks.read(port_until_ticks, (bit<32>)port);
        if (port_until_ticks > until_ticks) {
            until_ticks = port_until_ticks;
        }
        if (until_ticks <= now_ticks) {
            until_ticks = 0;
        }
    }
}

// Stores the warning of a CNM (cnm.p4); valid_ticks 0 withdraws it. Port and leaf must be within the registers' sizes.
control NoteWarning(in port_t port, in bit<16> leaf, in bit<32> valid_ticks, in ticks_t now_ticks) {
    apply {
        ticks_t until_ticks = 0;
        if (valid_ticks != 0) {
            until_ticks = now_ticks + (ticks_t)valid_ticks;
        }
        if (leaf == LEAF_ALL) {
            port_warned_until_ticks.write((bit<32>)port, until_ticks);
        } else {
            warned_until_ticks.write(PATH_INDEX(port, leaf), until_ticks);
        }
    }
}

#endif
