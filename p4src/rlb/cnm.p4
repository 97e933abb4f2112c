// SPDX-License-Identifier: Apache-2.0
// Congestion notification messages (RLB §III-B.1): made of a clone of the packet at which the pause was predicted, sent
// back by the port that it came from, and passed on until the switches know it that have another way.
//
//   S predicts a pause of port P   -> CNM by P: leaf = S, where it is one (nothing else goes by P), else LEAF_ALL
//   U gets it by port E, for a leaf towards which E is a next hop:
//                                     (E, leaf) is warned; no next hop towards the leaf is left without a warning
//                                     -> by all other ports to switches. A withdrawal is always passed on.
//   a leaf                         -> warned only: behind it are hosts
//
// DEVIATION: the paper has the switch remember the source MAC of incoming packets to find the upstream switch; here it
// is at the other end of the port. A warning for LEAF_ALL is not passed on: the leaves behind are not told apart.
#ifndef RLB_CNM_P4
#define RLB_CNM_P4
#include "common/drops.p4"
#include "rlb/next_hops.p4"
#include "rlb/predictor.p4"
#include "rlb/warnings.p4"

const mac_t   MAC_NEIGHBOUR = 0x0180C2000001;  // no bridge forwards it; 802.3 PAUSE uses the same
const bit<32> CNM_BYTES     = 14 + 1 + 10;
const bit<8>  CNM_MOST_HOPS = 4;               // of an up/down path of five switches
const bit<8>  PFC_PRIORITY  = (bit<8>)PRIORITY_DATA;

@name("warnings_received") counter(1, CounterType.packets) warnings_received;
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
        hdr.ethernet.dst = MAC_NEIGHBOUR;
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

// Next hop number `slot`: is it the port, is it free of warnings?
control ConsiderHop(in bit<16> slot, in next_hops_t hops, in port_t port, in bit<16> leaf, in ticks_t now_ticks,
                    inout bool leads_there, inout bool all_warned) {
    PortOfSlot() port_of_slot;
    IsWarned() is_warned;
    apply {
        if (slot < hops.count) {
            port_t found;
            bool warned;
            port_of_slot.apply(slot, hops, found);
            is_warned.apply(found, leaf, now_ticks, warned);
            leads_there = leads_there || found == port;
            all_warned = all_warned && warned;
        }
    }
}

// `leads_there`: the port is a next hop. `all_warned`: no next hop is left. Of groups with more next hops than are
// looked at here, one is always taken to be left.
control ReviewHops(in next_hops_t hops, in port_t port, in bit<16> leaf, in ticks_t now_ticks, out bool leads_there,
                   out bool all_warned) {
    ConsiderHop() consider;
    apply {
        leads_there = false;
        all_warned = hops.count <= 8;
        consider.apply(0, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(1, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(2, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(3, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(4, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(5, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(6, hops, port, leaf, now_ticks, leads_there, all_warned);
        consider.apply(7, hops, port, leaf, now_ticks, leads_there, all_warned);
    }
}

// A CNM ends here, or leaves again as copies.
control ReceiveCnm(in next_hops_t hops, in warning_config_t config, inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    NoteWarning() note_warning;
    ReviewHops() review_hops;
    Drop() drop;

    apply {
        port_t port = standard_metadata.ingress_port;
        ticks_t now_ticks = standard_metadata.ingress_global_timestamp;
        bit<16> leaf = hdr.cnm.leaf;
        if ((leaf != LEAF_ALL && (bit<32>)leaf >= LEAVES) || (bit<32>)port >= PATH_PORTS) {
            drop.apply(DropReason_t.MALFORMED, meta, standard_metadata);
        } else {
            bit<32> valid_ticks = hdr.cnm.valid_ticks;
            bool leads_there;
            bool all_warned;
            if (valid_ticks > config.valid_ticks) {
                valid_ticks = config.valid_ticks;
            }
            warnings_received.count(0);
            note_warning.apply(port, leaf, valid_ticks, now_ticks);
            review_hops.apply(hops, port, leaf, now_ticks, leads_there, all_warned);
            mark_to_drop(standard_metadata);  // consumed, not lost
            meta.kind = PacketKind_t.NONE;
            if (leaf != LEAF_ALL && config.own_leaf == LEAF_ALL && leads_there
                && (all_warned || valid_ticks == 0) && hdr.cnm.hops < CNM_MOST_HOPS) {
                hdr.cnm.hops = hdr.cnm.hops + 1;
                standard_metadata.mcast_grp = config.upstream_group;
                warnings_passed_on.count(0);
            }
        }
    }
}

#endif
