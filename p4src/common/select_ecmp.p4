// SPDX-License-Identifier: Apache-2.0
// Path selection by ECMP: the baseline, and what every other scheme does with packets that it does not balance.
#ifndef COMMON_SELECT_ECMP_P4
#define COMMON_SELECT_ECMP_P4
#include "common/ecmp.p4"

control SelectEcmp(in bit<32> flow_hash, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    SlotOf() slot_of;
    GroupMember() group_member;
    Drop() drop;

    apply {
        bit<16> slot;
        bool found;
        slot_of.apply(flow_hash, meta.route.group_size, slot);
        group_member.apply(meta.route.group, slot, standard_metadata.egress_spec, found);
        if (!found) {
            drop.apply(DropReason_t.NO_ROUTE, meta, standard_metadata);
        }
    }
}

#endif
