// SPDX-License-Identifier: Apache-2.0
// Warnings that this switch has received: which paths, by uplink and destination leaf, may soon be paused.
#ifndef RLB_WARNINGS_P4
#define RLB_WARNINGS_P4
#include "common/metadata.p4"

// Cell: the warning holds before this time; 0 at first and after a withdrawal. Written and read in ingress only.
@name("warned_until_ticks") register<ticks_t>(PATHS) warned_until_ticks;                  // index: PATH_INDEX
@name("port_warned_until_ticks") register<ticks_t>(PATH_PORTS) port_warned_until_ticks;   // index: port; for all leaves

// Until when is what goes by this port to this leaf about to wait? 0: it is not.
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

// A CNM's contents; valid_ticks 0 withdraws. The port and the leaf must be ones that there is room for.
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
