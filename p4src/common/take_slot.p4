// SPDX-License-Identifier: Apache-2.0
// SelectPath (common/baseline.p4) of a scheme that consists of a selector only. The top program defines SELECTOR, the
// name of a selector control (common/selector.p4), and SELECTOR_MEMORY if any, before it includes this file.
#ifndef COMMON_TAKE_SLOT_P4
#define COMMON_TAKE_SLOT_P4
#include "common/ecmp.p4"

control SelectPath(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    SELECTOR() select_slot;
#ifdef SELECTOR_MEMORY
    SELECTOR_MEMORY() remember;
#endif
    GroupMember() group_member;
    Drop() drop;

    apply {
        bit<16> best;
        bit<16> second;
        bit<32> order;  // not used here: only RLB tries further slots
        bool found;
        select_slot.apply(flow_hash, hdr, meta, standard_metadata, best, second, order);
#ifdef SELECTOR_MEMORY
        if (meta.kind == PacketKind_t.DATA) {
            remember.apply(meta.route.group, best);
        }
#endif
        group_member.apply(meta.route.group, best, standard_metadata.egress_spec, found);
        if (!found) {
            drop.apply(DropReason_t.NO_ROUTE, meta, standard_metadata);
        }
    }
}

#endif
