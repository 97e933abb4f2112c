// SPDX-License-Identifier: Apache-2.0
// Drops a packet, and counts it by reason. No other block may drop packets.
#ifndef COMMON_DROPS_P4
#define COMMON_DROPS_P4
#include "common/metadata.p4"

@name("drops") counter(DROP_REASONS, CounterType.packets_and_bytes) drops;

control Drop(in DropReason_t reason, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        drops.count((bit<32>)(bit<8>)reason);
        mark_to_drop(standard_metadata);
        meta.kind = PacketKind_t.NONE;
    }
}

#endif
