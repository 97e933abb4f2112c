// SPDX-License-Identifier: Apache-2.0
// The least loaded next hop of a group (Flowcut §II-A: in the up direction of a fat tree, the least loaded port).
//
//   candidates   group -> set_candidates(count, p0 .. p15)       each next hop once
#ifndef FLOWCUT_LEAST_LOADED_P4
#define FLOWCUT_LEAST_LOADED_P4
#include "common/ecmp.p4"
#include "common/queues.p4"
#include "flowcut/wish.p4"

struct candidates_t {
    bit<8> count;
    port_t p0;
    port_t p1;
    port_t p2;
    port_t p3;
    port_t p4;
    port_t p5;
    port_t p6;
    port_t p7;
    port_t p8;
    port_t p9;
    port_t p10;
    port_t p11;
    port_t p12;
    port_t p13;
    port_t p14;
    port_t p15;
}

control Candidates(in group_t group, out candidates_t next_hops) {
    action set_candidates(@name("count") bit<8> count,
                          @name("p0") port_t p0, @name("p1") port_t p1, @name("p2") port_t p2,
                          @name("p3") port_t p3, @name("p4") port_t p4, @name("p5") port_t p5,
                          @name("p6") port_t p6, @name("p7") port_t p7, @name("p8") port_t p8,
                          @name("p9") port_t p9, @name("p10") port_t p10, @name("p11") port_t p11,
                          @name("p12") port_t p12, @name("p13") port_t p13, @name("p14") port_t p14,
                          @name("p15") port_t p15) {
        next_hops = { count, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15 };
    }
    action no_candidates() {
        next_hops.count = 0;
    }
    @name("candidates")
    table candidates {
        key = { group : exact @name("group"); }
        actions = { set_candidates; no_candidates; }
        const default_action = no_candidates();
        size = 4096;
    }
    apply {
        next_hops = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        candidates.apply();
    }
}

control IsCandidate(in port_t port, in candidates_t c, out bool is_candidate) {
    apply {
        is_candidate = (c.count > 0 && port == c.p0) || (c.count > 1 && port == c.p1)
            || (c.count > 2 && port == c.p2) || (c.count > 3 && port == c.p3)
            || (c.count > 4 && port == c.p4) || (c.count > 5 && port == c.p5)
            || (c.count > 6 && port == c.p6) || (c.count > 7 && port == c.p7)
            || (c.count > 8 && port == c.p8) || (c.count > 9 && port == c.p9)
            || (c.count > 10 && port == c.p10) || (c.count > 11 && port == c.p11)
            || (c.count > 12 && port == c.p12) || (c.count > 13 && port == c.p13)
            || (c.count > 14 && port == c.p14) || (c.count > 15 && port == c.p15);
    }
}

struct best_t {
    bool    found;
    port_t  port;
    bit<48> cost;
}

// Candidate number `position` of a list that is gone through from `start` on, around its end. What counts is, in this
// order: not to go back where the flow was drained just now; not to go where it was drained before; the load; the
// preferred port; the place in the list.
control Consider(in port_t port, in bit<8> position, in bit<8> start, in bit<8> count, in wish_t wish,
                 inout best_t best) {
    QueueLoad() queue_load;
    apply {
        bit<32> load_bytes;
        if (position < count) {
            bit<8> reluctance = 0;
            if (wish.leaves && port == wish.last_port) {
                reluctance = 2;
            } else if (wish.drained & PORT_BIT(port) != 0) {
                reluctance = 1;
            }
            bit<8> rank = position - start + 1;
            if (port == wish.preferred) {
                rank = 0;
            } else if (position < start) {
                rank = rank + count;
            }
            queue_load.apply(port, load_bytes);
            bit<48> cost = reluctance ++ load_bytes ++ rank;
            if (!best.found || cost < best.cost) {
                best = { true, port, cost };
            }
        }
    }
}

// `port`: in, the ECMP choice; out, the least loaded next hop as Consider weighs them (Flowcut §II-A: the least loaded
// port in the up direction; §II-B: after a drain a different and less congested path). Local queues tell nothing of a
// link further on that is slow, so what the flow has learnt of its ports comes first. `draw`: a number that changes
// from time to time, so that not all flows try the candidates in one order.
control LeastLoaded(in candidates_t c, in wish_t wish, in bit<32> draw, inout port_t port) {
    SlotOf() slot_of;
    Consider() consider;
    apply {
        bit<16> start;
        best_t best = { false, port, 0 };
        slot_of.apply(draw, (bit<16>)c.count, start);
        consider.apply(c.p0, 0, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p1, 1, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p2, 2, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p3, 3, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p4, 4, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p5, 5, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p6, 6, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p7, 7, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p8, 8, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p9, 9, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p10, 10, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p11, 11, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p12, 12, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p13, 13, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p14, 14, (bit<8>)start, c.count, wish, best);
        consider.apply(c.p15, 15, (bit<8>)start, c.count, wish, best);
        port = best.port;
    }
}

#endif
