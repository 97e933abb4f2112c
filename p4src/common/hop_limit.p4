// SPDX-License-Identifier: Apache-2.0
// Drops packets whose TTL does not allow a further hop.
#ifndef COMMON_HOP_LIMIT_P4
#define COMMON_HOP_LIMIT_P4
#include "common/drops.p4"

// A packet with a TTL of 1 or 0 is not forwarded (RFC 1812 §5.3.1).
control HopLimit(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Drop() drop;
    apply {
        if (hdr.ipv4.ttl <= 1) {
            drop.apply(DropReason_t.TTL_EXPIRED, meta, standard_metadata);
        }
    }
}

#endif
