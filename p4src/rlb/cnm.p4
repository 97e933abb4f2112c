// SPDX-License-Identifier: Apache-2.0
// Congestion notification messages (RLB §III-B.1): made of a clone of the packet at which the pause was predicted, sent
// back by the port that it came from, and passed on until the switches know it that have another way.
//
//   S predicts a pause of port P   -> CNM by P: leaf = S, where it is one (nothing else goes by P), else LEAF_ALL
//   U gets it by port E            -> (E, leaf), or E for all leaves, is warned
//     U is a leaf                     no more: behind it are hosts
//     for one leaf                    E is a next hop towards it, and none is left without a warning
//                                       -> by all other ports to switches, valid until the first is open again
//                                     a withdrawal, and one is open -> the same
//     for all leaves                  as for one, for each leaf towards which E is a next hop: copies go round
//
//   group upstream_group     (port, 0) for every port to a switch
//   group first_relay + E    (MIRROR, leaf + 1) for every leaf towards which E is a next hop
//
// DEVIATION: the paper has the switch remember the source MAC of incoming packets to find the upstream switch; here it
// is at the other end of the port.
#ifndef RLB_CNM_P4
#define RLB_CNM_P4
#include "common/drops.p4"
#include "rlb/next_hops.p4"
#include "rlb/predictor.p4"
#include "rlb/warnings.p4"

const bit<32> CNM_BYTES     = 14 + 1 + 10;
const bit<8>  CNM_MOST_HOPS = 4;  // of an up/down path of five switches
const bit<8>  PFC_PRIORITY  = (bit<8>)PRIORITY_DATA;
const bit<32> LONGEST_VALID_TICKS = 0xFFFFFFFF;

@name("warnings_received") counter(PATH_PORTS, CounterType.packets) warnings_received;  // index: port
@name("warnings_passed_on") counter(1, CounterType.packets) warnings_passed_on;

control SeedCnm(in port_t port, in bit<32> valid_ticks, in warning_config_t config, out cnm_seed_t seed) {
    apply {
        seed.port = (bit<16>)port;
        seed.leaf = config.own_leaf;
        seed.priority = PFC_PRIORITY;
        seed.valid_ticks = valid_ticks;
    }
}

// In egress, of a clone: nothing of the packet but its addresses is left.
control MakeCnm(in cnm_seed_t seed, inout headers_t hdr) {
    apply {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = MAC_TO_NEIGHBOUR;
        hdr.ethernet.ether_type = ETHERTYPE_TAILRACE;
        hdr.tailrace.setValid();
        hdr.tailrace.subtype = Subtype_t.CNM;
        hdr.cnm.setValid();
        hdr.cnm.port = seed.port;
        hdr.cnm.leaf = seed.leaf;
        hdr.cnm.priority = seed.priority;
        hdr.cnm.hops = 0;
        hdr.cnm.valid_ticks = seed.valid_ticks;
        hdr.probe.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.tcp.setInvalid();
        hdr.udp.setInvalid();
        hdr.nic_shim.setInvalid();
        hdr.bth.setInvalid();
        truncate(CNM_BYTES);
    }
}

// Next hop number review.slot: is it the port, is it free of warnings?
control ConsiderHop(in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, inout review_t review) {
    PortOfSlot() port_of_slot;
    WarnedUntil() warned_until;
    apply {
        if (review.slot < hops.count) {
            port_t found;
            ticks_t until_ticks;
            port_of_slot.apply(review.slot, hops, found);
            warned_until.apply(found, leaf, now_ticks, until_ticks);
            if (found == review.port) {
                review.leads_there = 1;
            }
            if (until_ticks == 0) {
                review.is_open = 1;
            } else if (until_ticks - now_ticks < (ticks_t)review.valid_ticks) {
                review.valid_ticks = (bit<32>)(until_ticks - now_ticks);
            }
            review.slot = review.slot + 1;
        }
    }
}

// A CNM for one leaf, in a switch that is none, once it was noted: is it passed on? `unfinished`: not all next hops were
// looked at yet.
control ReviewHops(in next_hops_t hops, in ticks_t now_ticks, inout cnm_t cnm, inout review_t review, out bool is_news,
                   out bool unfinished) {
    ConsiderHop() consider;
    apply {
        if (review.goes_on == 0) {
            review.slot = 0;
            review.leads_there = 0;
            review.is_open = 0;
            review.valid_ticks = LONGEST_VALID_TICKS;
        }
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        consider.apply(hops, cnm.leaf, now_ticks, review);
        unfinished = review.slot < hops.count;
        is_news = review.leads_there == 1 && (cnm.valid_ticks == 0) == (review.is_open == 1);
        if (cnm.valid_ticks != 0) {
            cnm.valid_ticks = review.valid_ticks;
        }
    }
}

// What another switch says is noted; a CNM ends here, or leaves again as copies, or goes through ingress once more.
control ReceiveCnm(in next_hops_t hops, in ticks_t now_ticks, in warning_config_t config, inout headers_t hdr,
                   inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    NoteWarning() note_warning;
    ReviewHops() review_hops;
    Drop() drop;

    apply {
        port_t port = standard_metadata.ingress_port;
        bit<16> leaf = hdr.cnm.leaf;
        bool is_new = meta.rlb.kept.again == 0;
        if (is_new && ((leaf != LEAF_ALL && (bit<32>)leaf >= LEAVES) || (bit<32>)port >= PATH_PORTS)) {
            drop.apply(DropReason_t.MALFORMED, meta, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);  // consumed, not lost
            meta.kind = PacketKind_t.NONE;
            if (is_new) {
                bit<32> valid_ticks = hdr.cnm.valid_ticks;
                if (valid_ticks > config.valid_ticks) {
                    valid_ticks = config.valid_ticks;
                }
                warnings_received.count((bit<32>)port);
                note_warning.apply(port, leaf, valid_ticks, now_ticks);
                meta.rlb.kept.again = 1;
                meta.rlb.review.port = port;
            }
            if (config.own_leaf == LEAF_ALL && hdr.cnm.hops < CNM_MOST_HOPS) {
                if (leaf == LEAF_ALL) {
                    standard_metadata.mcast_grp = config.first_relay + (bit<16>)port;
                } else {
                    bool is_news;
                    bool unfinished;
                    review_hops.apply(hops, now_ticks, hdr.cnm, meta.rlb.review, is_news, unfinished);
                    meta.rlb.review.goes_on = (bit<1>)unfinished;
                    if (unfinished) {
                        resubmit_preserving_field_list(KEEP_FOR_RECIRCULATION);
                    } else if (is_news) {
                        hdr.cnm.hops = hdr.cnm.hops + 1;
                        standard_metadata.mcast_grp = config.upstream_group;
                        warnings_passed_on.count(0);
                    }
                }
            }
        }
    }
}

// In egress, a copy. `leaves`: it goes on by this port.
control PassOnCnm(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                  out bool leaves) {
    apply {
        leaves = false;
        if (standard_metadata.egress_rid != 0) {
            hdr.cnm.leaf = standard_metadata.egress_rid - 1;
            meta.rlb.kept.left_ticks = standard_metadata.egress_global_timestamp;
            recirculate_preserving_field_list(KEEP_FOR_RECIRCULATION);
        } else if (standard_metadata.egress_port == meta.rlb.review.port) {
            mark_to_drop(standard_metadata);  // it does not go back
        } else {
            leaves = true;
        }
    }
}

#endif
