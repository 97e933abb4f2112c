// SPDX-License-Identifier: Apache-2.0
// A detour is a path through a Dragonfly group other than the source's and the destination's (Valiant). A path has at
// most one link within each Dragonfly group, so the next hops depend on where a packet came from:
//
//   a host or another Dragonfly group     the next-hop group of its route: links of this switch to the destination's
//                                         Dragonfly group, and switches of this Dragonfly group with such links
//   a switch of this Dragonfly group      links of this switch only: table onward_groups, by next-hop group (`toward`)
//
// A next-hop group towards a Dragonfly group has the same id in every switch. A detour header contains this id, until
// the first link to another Dragonfly group. So a path has at most two such links, and three within groups.
#ifndef DRAGONFLY_NEXT_HOP_GROUP_P4
#define DRAGONFLY_NEXT_HOP_GROUP_P4
#include "common/metadata.p4"

// meta.origin shows how a packet came to this switch: 0 from a host or another Dragonfly group; from a switch of this
// Dragonfly group it is this bit and, on a detour, the id of the next-hop group in the detour header.
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
