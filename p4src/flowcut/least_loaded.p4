// SPDX-License-Identifier: Apache-2.0
// The least loaded next hop of a group (Flowcut §II-A: in the up direction of a fat tree, the least loaded port).
//
//   candidates   group -> set_candidates(count, p0 .. p15)           each next hop once
//                      -> set_more_candidates(count, p0 .. p31)      if there are more than 16
//
// P4 has no loops: a macro contains the code for one port, and FIRST_16 and NEXT_16 expand it for all ports. Few groups
// have more than 16 next hops, and only their packets execute the second half.
#ifndef FLOWCUT_LEAST_LOADED_P4
#define FLOWCUT_LEAST_LOADED_P4
#include "common/ecmp.p4"
#include "common/queues.p4"
#include "flowcut/preference.p4"

#define FIRST_16(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define NEXT_16(DO) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) \
    DO(30) DO(31)
#define FIELD(i) port_t p##i;
#define PARAMETER(i) , NAMED_PORT(p##i)
#define NAMED_PORT(name) @name(#name) port_t name
#define SET(i) next_hops.p##i = p##i;
#define OR_IS(i) || (candidates.count > i && port == candidates.p##i)
#define CONSIDER(i) consider.apply(candidates.p##i, i, (bit<8>)start, candidates.count, preference, best);

struct candidates_t {
    bit<8> count;
    FIRST_16(FIELD)
    NEXT_16(FIELD)
}

control Candidates(in group_t group, out candidates_t next_hops) {
    action set_candidates(@name("count") bit<8> count FIRST_16(PARAMETER)) {
        next_hops.count = count;
        FIRST_16(SET)
    }
    action set_more_candidates(@name("count") bit<8> count FIRST_16(PARAMETER) NEXT_16(PARAMETER)) {
        next_hops.count = count;
        FIRST_16(SET)
        NEXT_16(SET)
    }
    action no_candidates() {
        next_hops.count = 0;
    }
    @name("candidates")
    table candidates {
        key = { group : exact @name("group"); }
        actions = { set_candidates; set_more_candidates; no_candidates; }
        const default_action = no_candidates();
        size = 4096;
    }
    apply {
        next_hops = { ... };
        candidates.apply();
    }
}

control IsCandidate(in port_t port, in candidates_t candidates, out bool is_candidate) {
    apply {
        is_candidate = false FIRST_16(OR_IS);
        if (candidates.count > 16) {
            is_candidate = is_candidate NEXT_16(OR_IS);
        }
    }
}

struct best_t {
    bool    found;
    port_t  port;
    bit<48> cost;
}

// Compares the candidate at `position` with the best one so far; the list is searched from `start`, cyclically. The
// criteria, in this order: not the port that the flow is just leaving; not a port on which the flow was drained before;
// the load; the preferred port; the position in the search.
control Consider(in port_t port, in bit<8> position, in bit<8> start, in bit<8> count, in preference_t preference,
                 inout best_t best) {
    QueueLoad() queue_load;
    apply {
        bit<32> queue_bytes;
        if (position < count) {
            bit<8> reluctance = 0;
            if (preference.avoids_last_port && port == preference.last_port) {
                reluctance = 2;
            } else if (preference.drained & PORT_BIT(port) != 0) {
                reluctance = 1;
            }
            bit<8> rank = position - start + 1;
            if (port == preference.preferred) {
                rank = 0;
            } else if (position < start) {
                rank = rank + count;
            }
            queue_load.apply(port, queue_bytes);
            bit<48> cost = reluctance ++ queue_bytes ++ rank;
            if (!best.found || cost < best.cost) {
                best = { true, port, cost };
            }
        }
    }
}

// `port`: in, the ECMP choice; out, the best next hop by the criteria of Consider (Flowcut §II-A: the least loaded port
// in the up direction; §II-B: after a drain a different and less congested path). Local queues do not show slow links
// further on, so the flow's drains count before the load. `varied_hash` differs between flows, so that they search the
// candidates in different orders.
control LeastLoaded(in candidates_t candidates, in preference_t preference, in bit<32> varied_hash, inout port_t port) {
    SlotOf() slot_of;
    Consider() consider;
    apply {
        bit<16> start;
        best_t best = { false, port, 0 };
        slot_of.apply(varied_hash, (bit<16>)candidates.count, start);
        FIRST_16(CONSIDER)
        if (candidates.count > 16) {
            NEXT_16(CONSIDER)
        }
        port = best.port;
    }
}

#endif
