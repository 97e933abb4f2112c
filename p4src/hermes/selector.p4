// SPDX-License-Identifier: Apache-2.0
// Hermes as a selector (common/selector.p4): the sender's path tag, the UDP source port, modulo the group's size. What
// has no tag takes its ECMP path. The other slot follows from the flow's hash, so that flows of one path spread where it
// is closed.
// The switch of the sender follows the tag. Further on ECMP does, whose hash the tag is part of: were it the tag again,
// the tags that come to a switch of the next tier would all leave it on the same few next hops.
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
