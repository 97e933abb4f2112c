// SPDX-License-Identifier: Apache-2.0
// DRILL(2,1) as a selector (common/selector.p4, also for `order`): `best` is the least loaded of two random slots and
// the slot used last in this group; `second` is the less loaded of the other two. In a tie the remembered slot wins,
// then the first random slot: the path changes only for a shorter queue. The slot by which a packet leaves is
// remembered: under RLB, which may reject `best`, a rejected slot would keep an empty queue, and always win.
#ifndef DRILL_SELECTOR_P4
#define DRILL_SELECTOR_P4
#include "common/next_slot.p4"
#include "common/selector.p4"
#include "drill/samples.p4"

const bit<32> DRILL_GROUPS = 65536;  // number of possible group ids

// Adds a slot to the ranking; `second` equals `best` as long as there is only one slot.
control Rank(in bit<16> slot, in bit<32> queue_bytes, inout bit<16> best, inout bit<32> best_bytes,
             inout bit<16> second, inout bit<32> second_bytes) {
    apply {
        if (slot != best) {
            if (queue_bytes < best_bytes) {
                second = best;
                second_bytes = best_bytes;
                best = slot;
                best_bytes = queue_bytes;
            } else if (second == best || queue_bytes < second_bytes) {
                second = slot;
                second_bytes = queue_bytes;
            }
        }
    }
}

// Index: group. The slot that was used last time, plus 1; 0: none yet. Written and read in ingress only.
@name("drill_memory") register<bit<16>>(DRILL_GROUPS) drill_memory;

// Notes the slot by which a data packet leaves.
control DrillMemory(in group_t group, in bit<16> slot) {
    apply {
        drill_memory.write((bit<32>)group, slot + 1);
    }
}

control DrillSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
                      out bit<32> order) {
    DrawSlots() draw_slots;
    MeasureLoads() measure_loads;
    Rank() rank;
    SlotOf() slot_of;
    NextSlot() next_slot;

    apply {
        bit<16> first;
        bit<16> other;
        bit<32> first_bytes;
        bit<32> other_bytes;
        bit<32> best_bytes;
        order = flow_hash;
        if (meta.kind == PacketKind_t.DATA) {
            draw_slots.apply(meta.route.group_size, first, other, order);
            drill_memory.read(best, (bit<32>)meta.route.group);
            best = best - 1;
            if (best >= meta.route.group_size) {
                best = first;  // no slot is remembered, or the group has become smaller
            }
            measure_loads.apply(meta.route.group, best, first, other, best_bytes, first_bytes, other_bytes);
            bit<32> second_bytes = best_bytes;
            second = best;
            rank.apply(first, first_bytes, best, best_bytes, second, second_bytes);
            rank.apply(other, other_bytes, best, best_bytes, second, second_bytes);
        } else {
            slot_of.apply(flow_hash, meta.route.group_size, best);
            next_slot.apply(best, meta.route.group_size, second);
        }
    }
}

#endif
