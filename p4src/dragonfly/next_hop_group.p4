// SPDX-License-Identifier: Apache-2.0
// A path through a Dragonfly: at most one link within a group, then one to another group, and so on. Which
// next hops a packet has depends on where it came from, and so no packet is handed around within a group.
//
//   a packet from a host or another group    the group of its route: own links to the destination's group, and
//                                            switches of this group that have some
//   a packet from a switch of this group     own links only:  onward_groups  toward -> onward(group, size)
//
// Groups of next hops that lead to a Dragonfly group have the same number in every switch; a detour header names it. A
// detour is over with the first link to another group, so that two such links and three within groups are the most.
#ifndef DRAGONFLY_NEXT_HOP_GROUP_P4
#define DRAGONFLY_NEXT_HOP_GROUP_P4
#include "common/metadata.p4"

// meta.origin of a packet that a switch of the same group sent: the detour that it came on, 0 or not, and this bit. Of
// all others it is 0.
const group_t FROM_GROUP = 0x8000;

// After the route is known.
control NextHopGroup(inout metadata_t meta) {
    group_t toward = 0;

    action onward(@name("group") group_t group, @name("size") bit<16> size) {
        meta.route.group = group;
        meta.route.group_size = size;
    }
    // A destination in this group, or a detour that this switch knows no link for: it goes by its route.
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

// In egress: the header says what meta.detour does.
control DetourHeader(in metadata_t meta, inout headers_t hdr) {
    apply {
        bool goes_on = meta.detour != 0 && !meta.route.to_host;
        if (hdr.detour.isValid()) {
            if (!goes_on) {
                hdr.ethernet.ether_type = hdr.detour.next_ether_type;
                hdr.detour_tag.setInvalid();
                hdr.detour.setInvalid();
            }
        } else if (goes_on) {
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
