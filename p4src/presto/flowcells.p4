// SPDX-License-Identifier: Apache-2.0
// The flowcell table: bytes and slot of each flow's present cell, and the next slot of each group, round robin.
// 5-tuples with the same index share an entry: they are treated as one flow, which does not reorder packets.
//
//   flowcell_config -> set_flowcell(cell_bytes)
#ifndef PRESTO_FLOWCELLS_P4
#define PRESTO_FLOWCELLS_P4
#include "common/next_slot.p4"
#include "common/metadata.p4"

const bit<32> FLOWCELL_ENTRIES = 65536;
const bit<32> FLOWCELL_GROUPS  = 65536;  // number of possible group ids

// The slot of a packet. A packet that would exceed the cell begins a new one, even if it is larger than a cell.
control Flowcells(in bit<32> flow_hash, in bit<32> frame_bytes, in route_t route, out bit<16> slot) {
    // Index: 16 bits of the flow's hash. Written and read only here.
    @name("flowcell_bytes") register<bit<32>>(FLOWCELL_ENTRIES) cell_fill;  // bytes of the cell so far; 0: none yet
    @name("flowcell_slot") register<bit<16>>(FLOWCELL_ENTRIES) cell_slots;
    // Index: group. The slot of the next cell. Written and read only here.
    @name("flowcell_turn") register<bit<16>>(FLOWCELL_GROUPS) turns;
    @name("flowcells_created") counter(1, CounterType.packets) created;
    NextSlot() next_slot;
    bit<32> limit_bytes = 0;

    action set_flowcell(@name("cell_bytes") bit<32> cell_bytes) {
        limit_bytes = cell_bytes;
    }
    // With 0, each packet is a cell.
    @name("flowcell_config")
    table flowcell_config {
        actions = { set_flowcell; }
        default_action = set_flowcell(0);
        size = 1;
    }

    apply {
        bit<32> index = flow_hash >> 16;
        bit<32> fill_bytes;
        flowcell_config.apply();
        cell_fill.read(fill_bytes, index);
        cell_slots.read(slot, index);
        bool is_full = (bit<33>)fill_bytes + (bit<33>)frame_bytes > (bit<33>)limit_bytes;
        // The group may have become smaller.
        if (fill_bytes == 0 || is_full || slot >= route.group_size) {
            bit<16> turn;
            turns.read(slot, (bit<32>)route.group);
            if (slot >= route.group_size) {
                slot = 0;
            }
            next_slot.apply(slot, route.group_size, turn);
            turns.write((bit<32>)route.group, turn);
            cell_slots.write(index, slot);
            created.count(0);
            fill_bytes = 0;
        }
        cell_fill.write(index, fill_bytes + frame_bytes);
    }
}

#endif
