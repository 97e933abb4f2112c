// SPDX-License-Identifier: Apache-2.0
// LetFlow as a selector (common/selector.p4, also for `order`): a flowlet's `best` and `second` are two random slots.
#ifndef LETFLOW_SELECTOR_P4
#define LETFLOW_SELECTOR_P4
#include "common/other_slot.p4"
#include "common/selector.p4"
#include "letflow/flowlets.p4"

control LetflowSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
                        out bit<32> order) {
    Flowlets() flowlets;
    SlotOf() slot_of;
    OtherSlot() other_slot;

    apply {
        bit<32> value = flow_hash;
        bool is_first;
        if (meta.kind == PacketKind_t.DATA) {
            flowlets.apply(flow_hash, standard_metadata.ingress_global_timestamp, value, is_first);
        }
        slot_of.apply(value, meta.route.group_size, best);
        // The upper half of the value is nearly independent of the value modulo the size.
        other_slot.apply(value >> 16, best, meta.route.group_size, second);
        order = value;
    }
}

#endif
