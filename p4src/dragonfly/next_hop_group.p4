// SPDX-License-Identifier: Apache-2.0
// A path through a Dragonfly has at most one link within each group, between links to other groups. So that no packet
// is forwarded twice within a group, the set of next hops depends on where the packet came from:
//
//   a packet from a host or another group    the next-hop group of its route: links of this switch to the destination's
//                                            group, and switches of this group with such links
//   a packet from a switch of this group     links of this switch only:  onward_groups  toward -> onward(group, size)
//
// Next-hop groups that lead to a Dragonfly group have the same id in every switch; a detour header contains this id. A
// detour ends with the first link to another group, so a path has at most two such links and three within groups.
#ifndef DRAGONFLY_NEXT_HOP_GROUP_P4
#define DRAGONFLY_NEXT_HOP_GROUP_P4
#include "common/metadata.p4"

// meta.origin of a packet from a switch of the same group is the id of its detour (0: none) with this bit set. For
// other packets it is 0.
const group_t FROM_GROUP = 0x8000;

// Selects the next-hop group, after the route is known.
control NextHopGroup(inout metadata_t meta) {
    group_t toward = 0;

    action onward(@name("group") group_t group, @name("size") bit<16> size) {
        meta.route.group = group;
        meta.route.group_size = size;
    }
    // The destination is in this group, or this switch has no link for the detour: the packet follows its route.
    action by_route() {
        meta.detour = 0;
    }
    @name("onward_groups")
    table onward_groups {
        key = { toward : exact @name("toward"); }
        actions = { onward; by_route; }
        const default_action = by_route();
        size = 4096;
    }

    apply {
        if (meta.within_group) {
            meta.origin = FROM_GROUP | meta.detour;
            toward = meta.route.group;
            if (meta.detour != 0) {
                toward = meta.detour;
            }
            onward_groups.apply();
        } else {
            meta.detour = 0;
        }
    }
}

// In egress: adds, keeps or removes the detour header as meta.detour requires.
control DetourHeader(in metadata_t meta, inout headers_t hdr) {
    apply {
        bool on_detour = meta.detour != 0 && !meta.route.to_host;
        if (hdr.detour.isValid()) {
            if (!on_detour) {
                hdr.ethernet.ether_type = hdr.detour.next_ether_type;
                hdr.detour_tag.setInvalid();
                hdr.detour.setInvalid();
            }
        } else if (on_detour) {
            hdr.detour_tag.setValid();
            hdr.detour_tag.subtype = Subtype_t.DETOUR;
            hdr.detour.setValid();
            hdr.detour.group = meta.detour;
            hdr.detour.next_ether_type = hdr.ethernet.ether_type;
            hdr.ethernet.ether_type = ETHERTYPE_TAILRACE;
        }
    }
}

#endif
