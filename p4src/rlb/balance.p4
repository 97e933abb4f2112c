// SPDX-License-Identifier: Apache-2.0
// Chooses a packet's path: the selector's choice, changed by RLB's Algorithm 1 (reroute.p4) within §IV-B.1's limits.
#ifndef RLB_BALANCE_P4
#define RLB_BALANCE_P4
#include "common/drops.p4"
#include "common/ecmp.p4"
#include "rlb/failure.p4"
#include "rlb/recirculation.p4"
#include "rlb/reroute.p4"
#include "rlb/stay.p4"

// For data: Algorithm 1 within its limits. A packet that may not recirculate takes p, the algorithm's best path
// (§IV-B.1); with `last_open`, the search continues at line 8 until it finds a path without a warning. `slot`: p.
// `unfinished`: the search must continue in another pass through ingress.
control ChoosePath(in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, in bit<32> keep_ticks, in bit<32> bytes,
                   inout metadata_t meta, out bit<16> slot, out bool recirculates, out bool unfinished) {
    RecirculationConfig() recirculation_config;
    FailureConfig() failure_config;
    ExpectedDelay() expected_delay;
    Reroute() reroute;
    MayRecirculate() may_recirculate;
    PortOfSlot() port_of_slot;
    DetectFailure() detect_failure;
    NoteUnanswered() note_unanswered;

    apply {
        recirculation_config_t config;
        failure_config_t failures;
        search_t search;
        bit<32> delay_ticks;
        recirculation_config.apply(config);
        failure_config.apply(failures);
        expected_delay.apply(now_ticks, config, delay_ticks);
        reroute.apply(meta.rlb.preserved, hops, leaf, now_ticks, keep_ticks, delay_ticks, search, unfinished);
        slot = search.path.slot;
        recirculates = false;
        meta.rlb.preserved.continues_search = (bit<1>)unfinished;
        meta.rlb.preserved.search_slot = slot;
        meta.rlb.preserved.search_next = search.next;
        meta.rlb.preserved.unexamined = search.unexamined;
        if (search.recirculates) {
            may_recirculate.apply(meta.rlb.preserved, bytes, search.gain_ticks, delay_ticks, now_ticks,
                                  meta.rlb.warnings.pause_bytes, config, recirculates);
        }
        if (search.recirculates && !recirculates && config.last_open == 1) {
            meta.rlb.preserved.must_end = 1;
            meta.rlb.preserved.continues_search = 1;
            unfinished = true;
        }
        if (recirculates) {
            port_t port;
            port_of_slot.apply(slot, hops, port);
            meta.rlb.preserved.best = search.path.slot;
            meta.rlb.preserved.second = search.next;
            // The RTT is known, so port and leaf are within the registers' size.
            note_unanswered.apply(PATH_INDEX(port, leaf), now_ticks);
            if (failures.interval_ticks != 0) {
                detect_failure.apply(port, meta.rlb.preserved.count + 1, delay_ticks, now_ticks, failures, meta);
            }
        }
    }
}

// The distance between further slots, from the selector's number `order` (common/selector.p4): at least 1, less than
// the prime `around`. The shift by 8 bits makes it depend on other bits than the first slots.
control StrideOf(in bit<32> order, in next_hops_t hops, out bit<16> stride) {
    SlotOf() slot_of;
    apply {
        stride = 1;
        if (hops.around > 2) {
            slot_of.apply(order >> 8, hops.around - 1, stride);
            stride = stride + 1;
        }
    }
}

// For packets to another switch. `leaf`: the destination's leaf. If the table next_hops has no entry for the group,
// only the selector decides.
control Balance(in bit<32> flow_hash, in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, in bit<32> keep_ticks,
                in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                out bool recirculates, out bool unfinished) {
    SELECTOR() path_selector;
#ifdef SELECTOR_MEMORY
    SELECTOR_MEMORY() remember;
#endif
    StrideOf() stride_of;
    StayMoved() stay_moved;
    ChoosePath() choose_path;
    NoteMove() note_move;
    GroupMember() group_member;
    Drop() drop;

    apply {
        bit<16> slot;
        bool found;
        recirculates = false;
        unfinished = false;
        // The controller may have removed paths while the packet was recirculated.
        if (meta.rlb.preserved.seen_before == 0 || meta.rlb.preserved.best >= hops.count
            || meta.rlb.preserved.stride >= hops.around) {
            bit<16> best;
            bit<16> second;
            bit<32> order;
            path_selector.apply(flow_hash, hdr, meta, standard_metadata, best, second, order);
            stride_of.apply(order, hops, meta.rlb.preserved.stride);
            meta.rlb.preserved.best = best;
            meta.rlb.preserved.second = second;
            meta.rlb.preserved.chosen = best;
            meta.rlb.preserved.continues_search = 0;
            if (meta.kind == PacketKind_t.DATA && meta.rlb.warnings.stay_ticks != 0) {
                stay_moved.apply(flow_hash, hops.count, now_ticks, meta.rlb.warnings.stay_ticks, meta.rlb.preserved);
            }
        }
        meta.rlb.preserved.seen_before = 1;
        slot = meta.rlb.preserved.best;
        if (meta.kind == PacketKind_t.DATA && slot < hops.count) {
            choose_path.apply(hops, leaf, now_ticks, keep_ticks, standard_metadata.packet_length, meta, slot,
                              recirculates, unfinished);
            if (!recirculates && !unfinished && meta.rlb.warnings.stay_ticks != 0) {
                note_move.apply(flow_hash, slot, now_ticks, meta.rlb.preserved);
            }
        }
#ifdef SELECTOR_MEMORY
        if (meta.kind == PacketKind_t.DATA && !recirculates && !unfinished) {
            remember.apply(meta.route.group, slot);
        }
#endif
        if (!unfinished) {
            group_member.apply(meta.route.group, slot, standard_metadata.egress_spec, found);
            if (!found) {
                drop.apply(DropReason_t.NO_ROUTE, meta, standard_metadata);
            }
        }
    }
}

#endif
