// SPDX-License-Identifier: Apache-2.0
// Rerouting without packet reordering: RLB's Algorithm 1. The loop of line 3 is unrolled for eight next hops; if a
// group has more, the packet is resubmitted and the search continues. p: slot of the next hop to use; p_s: slot to try
// after p; warning: PFC is expected to pause the slot's path (warnings.p4); t_rc: expected delay of a recirculation.
//
//   p = best; p_s = second (slots of the selector)               line 2, 4
//   p has no warning                     -> forward on p         line 3, 10
//   RTT(p_s) - RTT(p) > t_rc             -> recirculate          line 5-6; unless p is overdue (path_rtt.p4)
//   else                                    p = p_s, and so on   line 8; the new p_s is a slot that was not examined yet
//   all slots have warnings              -> forward on the selector's p: no slot is better, and the selector's choice
//                                           may preserve the order of packets
//
// Further slots follow `second` at distances of `stride`, modulo a prime that is not below the number of slots: so every
// stride leads to all slots once. If the slots were tried in their order, the slot after one with a warning would get the
// traffic of both.
//
// Only measured RTTs are compared. If the RTT of p or p_s is not known or too old, the search continues with the next
// path. Only the first leaf measures RTTs; later switches reroute packets, but never recirculate them.
#ifndef RLB_REROUTE_P4
#define RLB_REROUTE_P4
#include "rlb/next_hops.p4"
#include "rlb/path_rtt.p4"
#include "rlb/warnings.p4"

// State of a slot's path for Algorithm 1.
struct path_t {
    bit<16> slot;
    bool    warned;
    bit<32> rtt_ticks;  // 0: not known
    bool    overdue;    // the real RTT may be longer by any amount (path_rtt.p4)
}

control ReadPath(in bit<16> slot, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, in bit<32> keep_ticks,
               out path_t path) {
    PortOfSlot() port_of_slot;
    WarnedUntil() warned_until;
    PathRtt() path_rtt;
    apply {
        port_t port;
        path = { slot, false, 0, false };
        port_of_slot.apply(slot, hops, port);
        if ((bit<32>)port < PATH_PORTS) {
            ticks_t until_ticks;
            warned_until.apply(port, leaf, now_ticks, until_ticks);
            path.warned = until_ticks != 0;
            if ((bit<32>)leaf < LEAVES) {
                path_rtt.apply(PATH_INDEX(port, leaf), now_ticks, keep_ticks, path.rtt_ticks, path.overdue);
            }
        }
    }
}

struct search_t {
    bool    ended;
    bool    recirculates;
    path_t  path;        // p
    bit<16> next;        // p_s
    bit<32> gain_ticks;  // RTT(p_s) - RTT(p), if it recirculates
    bit<16> unexamined;  // number of slots that were not examined yet
}

// Lines 3-8 for one p_s; then advances p_s.
control SearchStep(in preserved_t preserved, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks,
                   in bit<32> keep_ticks, in bit<32> delay_ticks, inout search_t search) {
    ReadPath() read_path;
    apply {
        if (!search.ended && search.path.warned && search.unexamined != 0) {
            // The prime may exceed the group's size: skip numbers that are no slots.
            if (search.next < hops.count && search.next != preserved.best) {
                path_t other;
                read_path.apply(search.next, hops, leaf, now_ticks, keep_ticks, other);
                if (preserved.must_end == 0 && search.path.rtt_ticks != 0 && !search.path.overdue
                    && other.rtt_ticks > search.path.rtt_ticks
                    && other.rtt_ticks - search.path.rtt_ticks > delay_ticks) {
                    search.ended = true;
                    search.recirculates = true;
                    search.gain_ticks = other.rtt_ticks - search.path.rtt_ticks;
                } else {
                    search.path = other;
                    search.unexamined = search.unexamined - 1;
                }
            }
            if (!search.recirculates) {
                search.next = search.next + preserved.stride;
                if (search.next >= hops.around) {
                    search.next = search.next - hops.around;
                }
            }
        } else {
            search.ended = true;
        }
    }
}

// `preserved` has p and p_s, and where a search continues. `unfinished`: some next hops were not examined yet, and all
// examined next hops have warnings.
control Reroute(in preserved_t preserved, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks,
                in bit<32> keep_ticks, in bit<32> delay_ticks, out search_t search, out bool unfinished) {
    ReadPath() read_path;
    SearchStep() search_step;
    apply {
        bit<16> slot = preserved.best;
        search.ended = false;
        search.recirculates = false;
        search.next = preserved.second;
        search.gain_ticks = 0;
        search.unexamined = hops.count - 1;
        if (preserved.continues_search == 1 && preserved.unexamined < hops.count
            && preserved.search_slot < hops.count) {
            slot = preserved.search_slot;
            search.next = preserved.search_next;
            search.unexamined = preserved.unexamined;
        }
        if (search.next >= hops.around) {
            search.next = 0;
        }
        read_path.apply(slot, hops, leaf, now_ticks, keep_ticks, search.path);
        // the first slot and seven steps: eight next hops, if the prime equals the number of slots
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        search_step.apply(preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search);
        unfinished = !search.ended && search.path.warned && search.unexamined != 0;
        if (search.path.warned && search.unexamined == 0 && !search.recirculates && preserved.chosen < hops.count) {
            search.path.slot = preserved.chosen;
        }
    }
}

#endif
