// SPDX-License-Identifier: Apache-2.0
// The flowlet table: time of a flow's last packet, and the random number that selected its path. 5-tuples with the same
// index share an entry, as in LetFlow. They are treated as one flow with fewer gaps, which does not reorder packets.
//
//   flowlet_config -> set_flowlet_gap(gap_ticks)
//                     no_flowlets()               a flow's hash selects its path; for tiers without flowlets
#ifndef LETFLOW_FLOWLETS_P4
#define LETFLOW_FLOWLETS_P4
#include "common/metadata.p4"

const bit<32> FLOWLET_SLOTS = 65536;

// `is_first`: this packet is the first of its flowlet, and path_value is new.
control Flowlets(in bit<32> flow_hash, in ticks_t now_ticks, out bit<32> path_value, out bool is_first) {
    // Index: 16 bits of the flow's hash. Written and read only here.
    @name("flowlet_last_ticks") register<ticks_t>(FLOWLET_SLOTS) last_ticks;    // last packet
    @name("flowlet_path_value") register<bit<32>>(FLOWLET_SLOTS) path_values;   // random, one for each flowlet; 0: none yet
    @name("flowlets_created") counter(1, CounterType.packets) created;
    ticks_t gap_ticks = 0;
    bool is_enabled = true;

    action set_flowlet_gap(@name("gap_ticks") ticks_t gap) {
        gap_ticks = gap;
    }
    action no_flowlets() {
        is_enabled = false;
    }
    // A packet that follows its predecessor by more than the gap starts a new flowlet.
    @name("flowlet_config")
    table flowlet_config {
        actions = { set_flowlet_gap; no_flowlets; }
        default_action = set_flowlet_gap(0);
        size = 1;
    }

    apply {
        bit<32> index = flow_hash >> 16;
        ticks_t last;
        flowlet_config.apply();
        path_value = flow_hash;
        is_first = false;
        if (is_enabled) {
            last_ticks.read(last, index);
            path_values.read(path_value, index);
            is_first = path_value == 0 || LONG_AGO(now_ticks, last, gap_ticks);
            if (is_first) {
                random(path_value, 32w0, 32w0xFFFFFFFF);
                path_values.write(index, path_value);
                created.count(0);
            }
            last_ticks.write(index, now_ticks);
        }
    }
}

#endif
