// SPDX-License-Identifier: Apache-2.0
// DRILL(2,1) as a selector (common/selector.p4): of two random slots and the one that was best last time in this group
// the least loaded, and then the least loaded of the others. The remembered slot wins a draw, then the first sample: a
// packet leaves the path of the one before it only for a shorter queue. What is remembered is the slot that was used:
// one that was refused (RLB) stays empty, and would win for ever.
#ifndef DRILL_SELECTOR_P4
#define DRILL_SELECTOR_P4
#include "common/next_slot.p4"
#include "common/selector.p4"
#include "drill/samples.p4"

const bit<32> DRILL_GROUPS = 65536;  // every number that a group may have

// Ranks one more slot; `second` is `best` until there is another one.
control Rank(in bit<16> slot, in bit<32> load_bytes, inout bit<16> best, inout bit<32> best_bytes,
             inout bit<16> second, inout bit<32> second_bytes) {
    apply {
        if (slot != best) {
            if (load_bytes < best_bytes) {
                second = best;
                second_bytes = best_bytes;
                best = slot;
                best_bytes = load_bytes;
            } else if (second == best || load_bytes < second_bytes) {
                second = slot;
                second_bytes = load_bytes;
            }
        }
    }
}

// index: group. One more than the slot that was used last time; 0: none yet. Written and read in ingress only.
@name("drill_memory") register<bit<16>>(DRILL_GROUPS) drill_memory;

// A packet of data leaves by `slot`.
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
                best = first;  // nothing is remembered, or the group has become smaller
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
