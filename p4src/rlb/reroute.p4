// SPDX-License-Identifier: Apache-2.0
// Rerouting without packet reordering: RLB's Algorithm 1, whose line 3 is unrolled to LOOKS next hops.
//
//   p = best; p_s = second                                       l. 2, 4
//   p is not warned                      -> forward on p         l. 3, 10
//   RTT(p_s) - RTT(p) > t_rc             -> recirculate          l. 5-6
//   else                                    p = p_s, and so on   l. 8; p_s is then the next slot in turn that was not p yet
//   every p was warned                   -> forward on the last: a packet must not look for ever
//
// Differences count between measured RTTs only; where one is not known, the packet goes on to the next path. RTTs are
// known in the first leaf. Switches further on reroute, and never recirculate.
#ifndef RLB_REROUTE_P4
#define RLB_REROUTE_P4
#include "common/next_slot.p4"
#include "rlb/next_hops.p4"
#include "rlb/path_rtt.p4"
#include "rlb/warnings.p4"

// A slot as Algorithm 1 sees it.
struct path_t {
    bit<16> slot;
    bool    warned;
    bit<32> rtt_ticks;  // 0: not known
}

control LookAt(in bit<16> slot, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, out path_t path) {
    PortOfSlot() port_of_slot;
    IsWarned() is_warned;
    apply {
        port_t port;
        path = { slot, false, 0 };
        port_of_slot.apply(slot, hops, port);
        if ((bit<32>)port < PATH_PORTS) {
            is_warned.apply(port, leaf, now_ticks, path.warned);
            if ((bit<32>)leaf < LEAVES) {
                path_rtt_ticks.read(path.rtt_ticks, PATH_INDEX(port, leaf));
            }
        }
    }
}

struct search_t {
    bool    ended;
    bool    recirculates;
    path_t  path;        // p
    bit<16> next;        // p_s
    bit<32> won_ticks;   // RTT(p_s) - RTT(p), where it recirculates
    bit<16> left;        // slots that were not p or p_s yet
}

// Lines 3-8 for one p_s; then p_s is the next one.
control SearchStep(in bit<16> best, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, in bit<32> delay_ticks,
                   inout search_t search) {
    LookAt() look_at;
    NextSlot() next_slot;
    apply {
        if (!search.ended && search.path.warned && search.left != 0) {
            path_t other;
            look_at.apply(search.next, hops, leaf, now_ticks, other);
            if (search.path.rtt_ticks != 0 && other.rtt_ticks > search.path.rtt_ticks
                && other.rtt_ticks - search.path.rtt_ticks > delay_ticks) {
                search.ended = true;
                search.recirculates = true;
                search.won_ticks = other.rtt_ticks - search.path.rtt_ticks;
            } else {
                search.path = other;
                search.left = search.left - 1;
                bit<16> next;
                next_slot.apply(search.next, hops.count, next);
                if (next == best) {
                    next_slot.apply(best, hops.count, next);
                }
                search.next = next;
            }
        } else {
            search.ended = true;
        }
    }
}

// `best` and `second` are slots of the group; there is at least one.
control Reroute(in bit<16> best, in bit<16> second, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks,
                in bit<32> delay_ticks, out search_t search) {
    LookAt() look_at;
    SearchStep() search_step;
    apply {
        search.ended = false;
        search.recirculates = false;
        search.next = second;
        if (second >= hops.count) {
            search.next = 0;
        }
        search.won_ticks = 0;
        search.left = hops.count - 1;
        look_at.apply(best, hops, leaf, now_ticks, search.path);
        // LOOKS: eight next hops with the first one.
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
        search_step.apply(best, hops, leaf, now_ticks, delay_ticks, search);
    }
}

#endif
