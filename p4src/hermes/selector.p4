// SPDX-License-Identifier: Apache-2.0
// Hermes as a selector (common/selector.p4, also for `order`): `best` is the sender's path tag (the UDP source port)
// modulo the group's size. Packets without a tag take their ECMP path. `second` and `order` come from the flow's hash:
// under RLB, which may reject `best`, the flows of a rejected path spread over the other paths.
// Only the sender's switch uses the tag. Later switches use ECMP, whose hash includes the tag: if they used the tag
// again, all packets that reach a switch of the next tier would leave by the same few next hops.
#ifndef HERMES_SELECTOR_P4
#define HERMES_SELECTOR_P4
#include "common/other_slot.p4"
#include "common/selector.p4"

control HermesSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
                       out bit<32> order) {
    SlotOf() slot_of;
    OtherSlot() other_slot;

    apply {
        bit<32> value = flow_hash;
        if (meta.kind == PacketKind_t.DATA && meta.from_host && hdr.udp.isValid()) {
            value = (bit<32>)hdr.udp.sport;
        }
        slot_of.apply(value, meta.route.group_size, best);
        other_slot.apply(flow_hash >> 16, best, meta.route.group_size, second);
        order = flow_hash;
    }
}

#endif
