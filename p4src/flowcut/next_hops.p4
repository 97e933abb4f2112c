// SPDX-License-Identifier: Apache-2.0
// Paths of Flowcut in networks where every next hop is nearer to the destination, as in fat trees: a new flowcut takes
// the least loaded next hop by the queues of this switch (Flowcut §II-A). Each switch chooses only its egress port.
#ifndef FLOWCUT_NEXT_HOPS_P4
#define FLOWCUT_NEXT_HOPS_P4
#include "flowcut/least_loaded.p4"
#include "flowcut/lookup.p4"

typedef candidates_t next_hops_t;

control SelectNextHopGroup(inout metadata_t meta) {
    apply {
    }
}

control FindNextHops(in metadata_t meta, out next_hops_t next_hops) {
    Candidates() candidates_of;
    apply {
        candidates_of.apply(meta.route.group, next_hops);
    }
}

control IsNextHop(in port_t port, in metadata_t meta, in next_hops_t next_hops, out bool is_next_hop) {
    IsCandidate() is_candidate;
    apply {
        is_candidate.apply(port, next_hops, is_next_hop);
    }
}

control SamePath(in metadata_t meta, inout lookup_t lookup) {
    apply {
    }
}

control NewPath(in next_hops_t next_hops, in preference_t preference, in bit<32> varied_hash, inout metadata_t meta,
                inout port_t port) {
    LeastLoaded() least_loaded;
    apply {
        least_loaded.apply(next_hops, preference, varied_hash, port);
    }
}

control RecallPath(in bit<32> index, inout metadata_t meta) {
    apply {
    }
}

control RememberPath(in bit<32> index, in metadata_t meta) {
    apply {
    }
}

control LeaveSwitch(in metadata_t meta, inout headers_t hdr) {
    apply {
    }
}

#endif
