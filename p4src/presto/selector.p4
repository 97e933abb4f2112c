// SPDX-License-Identifier: Apache-2.0
// Presto as a selector (common/selector.p4, also for `order`): `best` is the slot of the flow's cell, `second` depends
// on the flow's hash. So under RLB, cells whose slot is rejected spread over all other slots; a cell stays together.
#ifndef PRESTO_SELECTOR_P4
#define PRESTO_SELECTOR_P4
#include "common/other_slot.p4"
#include "common/selector.p4"
#include "presto/flowcells.p4"

control PrestoSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
                       out bit<32> order) {
    Flowcells() flowcells;
    SlotOf() slot_of;
    OtherSlot() other_slot;

    apply {
        if (meta.kind == PacketKind_t.DATA) {
            flowcells.apply(flow_hash, meta.frame_bytes, meta.route, best);
        } else {
            slot_of.apply(flow_hash, meta.route.group_size, best);
        }
        other_slot.apply(flow_hash >> 16, best, meta.route.group_size, second);
        order = flow_hash;
    }
}

#endif
