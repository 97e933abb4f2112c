// SPDX-License-Identifier: Apache-2.0
// VLAN tags that select a class of paths (Spritz §III-D). A host sets the tag; with UGAL-L, the source's switch sets it
// to signal to the next switch that the packet is not on a minimal path. The switch that makes the last choice clears it.
//
//   vlan_classes   vid -> vlan_class(class)           a miss: the tag has no meaning
#ifndef SPRITZ_TAGS_P4
#define SPRITZ_TAGS_P4
#include "common/trim.p4"
#include "spritz/path_lists.p4"

control VlanClass(in vlan_t vlan, out bool known, out PathClass_t path_class) {
    action vlan_class(@name("class") PathClass_t class_of_tag) {
        known = true;
        path_class = class_of_tag;
    }
    action no_class() {
        known = false;
        path_class = PathClass_t.ALL;
    }
    @name("vlan_classes")
    table vlan_classes {
        key = { vlan.vid : exact @name("vid"); }
        actions = { vlan_class; no_class; }
        const default_action = no_class();
        size = 16;
    }
    apply {
        vlan_classes.apply();
    }
}

// What to do with a packet's VLAN tag.
enum bit<8> TagOp_t {
    CLEAR = 0,
    KEEP  = 1,
    SET   = 2  // sets the tag NONMINIMAL, or replaces another tag by it
}

// Applies `op`; updates `wire_bytes`, the packet's length.
control WriteTag(in TagOp_t op, inout headers_t hdr, inout bit<32> wire_bytes) {
    apply {
        if (op == TagOp_t.SET) {
            if (!hdr.vlan.isValid()) {
                hdr.vlan.setValid();
                hdr.vlan.next_ether_type = hdr.ethernet.ether_type;
                hdr.ethernet.ether_type = ETHERTYPE_VLAN;
                wire_bytes = wire_bytes + VLAN_BYTES;
            }
            hdr.vlan.pcp = 0;
            hdr.vlan.dei = 0;
            hdr.vlan.vid = VlanId_t.NONMINIMAL;
        } else if (op == TagOp_t.CLEAR && hdr.vlan.isValid()) {
            hdr.ethernet.ether_type = hdr.vlan.next_ether_type;
            hdr.vlan.setInvalid();
            wire_bytes = wire_bytes - VLAN_BYTES;
        }
    }
}

#endif
