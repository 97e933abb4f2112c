// SPDX-License-Identifier: Apache-2.0
// Congestion notification messages (CNM, RLB §III-B.1). A clone of the packet at which a pause is predicted becomes the
// CNM. It is sent back by the packet's ingress port, and forwarded to all switches that can use another path.
//
//   S predicts a pause of port P   -> sends a CNM by P; leaf: S itself if it is a leaf, else LEAF_ALL
//   U receives it by port E        -> stores a warning for (E, leaf), or for E and all leaves
//     U is a leaf                     not forwarded, as only hosts are upstream
//     CNM for one leaf                E is a next hop towards it, and all next hops towards it now have warnings
//                                       -> sent by all other ports to switches, valid until the first warning ends
//                                     it withdraws a warning, and a next hop now has none -> sent by the same ports
//     CNM for all leaves              becomes a CNM for each leaf towards which E is a next hop, by recirculated copies
//
//   multicast group upstream_group     (port, 0) for every port to a switch
//   multicast group first_relay + E    (MIRROR, leaf + 1) for every leaf towards which E is a next hop
//
// DEVIATION: in the paper, switches store the source MAC of incoming packets to find the upstream switch; here the
// upstream switch is the switch at the other end of the port.
#ifndef RLB_CNM_P4
#define RLB_CNM_P4
#include "common/drops.p4"
#include "rlb/next_hops.p4"
#include "rlb/predictor.p4"
#include "rlb/warnings.p4"

const bit<32> CNM_BYTES     = 14 + 1 + 10;
const bit<8>  MAX_CNM_HOPS = 4;  // links of an up/down path of five switches
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

// In egress: turns a clone into a CNM; of the packet's fields, only the MAC addresses are used.
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

// Examines the next hop of slot review.slot: whether it is the CNM's port, and whether it has a warning.
control ConsiderHop(in next_hops_t hops, in bit<16> leaf, in ticks_t now_ticks, inout review_t review) {
    PortOfSlot() port_of_slot;
    WarnedUntil() warned_until;
    apply {
        if (review.slot < hops.count) {
            port_t hop_port;
            ticks_t until_ticks;
            port_of_slot.apply(review.slot, hops, hop_port);
            warned_until.apply(hop_port, leaf, now_ticks, until_ticks);
            if (hop_port == review.port) {
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

// In a switch that is no leaf, after storing the warning: forwards a CNM for one leaf if all next hops have warnings,
// or if it withdraws a warning and a next hop has none. A pass examines eight next hops; `unfinished`: there are more.
control ReviewHops(in next_hops_t hops, in ticks_t now_ticks, inout cnm_t cnm, inout review_t review,
                   out bool is_forwarded, out bool unfinished) {
    ConsiderHop() consider;
    apply {
        if (review.unfinished == 0) {
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
        is_forwarded = review.leads_there == 1 && (cnm.valid_ticks == 0) == (review.is_open == 1);
        if (cnm.valid_ticks != 0) {
            cnm.valid_ticks = review.valid_ticks;
        }
    }
}

// Stores the warning of a CNM. The CNM then ends here, is forwarded as multicast copies, or is resubmitted to ingress.
control ReceiveCnm(in next_hops_t hops, in ticks_t now_ticks, in warning_config_t config, inout headers_t hdr,
                   inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    NoteWarning() note_warning;
    ReviewHops() review_hops;
    Drop() drop;

    apply {
        port_t port = standard_metadata.ingress_port;
        bit<16> leaf = hdr.cnm.leaf;
        bool is_new = meta.rlb.preserved.seen_before == 0;
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
                meta.rlb.preserved.seen_before = 1;
                meta.rlb.review.port = port;
            }
            if (config.own_leaf == LEAF_ALL && hdr.cnm.hops < MAX_CNM_HOPS) {
                if (leaf == LEAF_ALL) {
                    standard_metadata.mcast_grp = config.first_relay + (bit<16>)port;
                } else {
                    bool is_forwarded;
                    bool unfinished;
                    review_hops.apply(hops, now_ticks, hdr.cnm, meta.rlb.review, is_forwarded, unfinished);
                    meta.rlb.review.unfinished = (bit<1>)unfinished;
                    if (unfinished) {
                        resubmit_preserving_field_list(KEEP_FOR_RECIRCULATION);
                    } else if (is_forwarded) {
                        hdr.cnm.hops = hdr.cnm.hops + 1;
                        standard_metadata.mcast_grp = config.upstream_group;
                        warnings_passed_on.count(0);
                    }
                }
            }
        }
    }
}

// In egress, for a multicast copy of a CNM. `is_sent`: the copy leaves by this port.
control ForwardCnm(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                   out bool is_sent) {
    apply {
        is_sent = false;
        if (standard_metadata.egress_rid != 0) {  // copy of group first_relay + E: rid is leaf + 1
            hdr.cnm.leaf = standard_metadata.egress_rid - 1;
            meta.rlb.preserved.left_ticks = standard_metadata.egress_global_timestamp;
            recirculate_preserving_field_list(KEEP_FOR_RECIRCULATION);
        } else if (standard_metadata.egress_port == meta.rlb.review.port) {
            mark_to_drop(standard_metadata);  // the CNM came in by this port
        } else {
            is_sent = true;
        }
    }
}

#endif
