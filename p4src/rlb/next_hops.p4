// SPDX-License-Identifier: Apache-2.0
// One table entry gives the ports of all slots of a group. A slot is a numbered member of a group (common/ecmp.p4).
// Algorithm 1 needs several ports, and a table can be applied only once in a pass through ingress.
//
//   next_hops    group -> set_next_hops(count, around, ports0 .. ports3)    the ports of group_members: slot s is in
//                                                          ports(s / 16), from bit 16 * (s % 16) on
//   leaves       dst   -> leaf(leaf)                      the number of a host's leaf; a miss: LEAF_ALL, no leaf's number
//   leaf_groups  leaf  -> leaf_group(group)               group of the next hops towards a leaf, for CNMs (cnm.p4)
// In RLB, each live next hop has exactly one slot of its group.
#ifndef RLB_NEXT_HOPS_P4
#define RLB_NEXT_HOPS_P4
#include "common/metadata.p4"

struct next_hops_t {
    bit<16>  count;   // number of slots; 0: no entry
    bit<16>  around;  // the smallest prime that is at least count: modulus of the search (reroute.p4)
    bit<256> ports0;
    bit<256> ports1;
    bit<256> ports2;
    bit<256> ports3;
}

control NextHops(in group_t group, out next_hops_t hops) {
    action set_next_hops(@name("count") bit<16> count, @name("around") bit<16> around,
                         @name("ports0") bit<256> ports0, @name("ports1") bit<256> ports1,
                         @name("ports2") bit<256> ports2, @name("ports3") bit<256> ports3) {
        hops = { count, around, ports0, ports1, ports2, ports3 };
    }
    action no_next_hops() {
        hops.count = 0;
    }
    @name("next_hops")
    table next_hops {
        key = { group : exact @name("group"); }
        actions = { set_next_hops; no_next_hops; }
        const default_action = no_next_hops();
        size = 4096;
    }
    apply {
        hops = { 0, 0, 0, 0, 0, 0 };
        next_hops.apply();
    }
}

control PortOfSlot(in bit<16> slot, in next_hops_t hops, out port_t port) {
    apply {
        bit<256> part = hops.ports0;
        if (slot[5:4] == 1) {
            part = hops.ports1;
        } else if (slot[5:4] == 2) {
            part = hops.ports2;
        } else if (slot[5:4] == 3) {
            part = hops.ports3;
        }
        part = part >> (slot[3:0] ++ 4w0);  // by 16 bits per slot
        port = part[8:0];
    }
}

control LeafOf(in ipv4_addr_t address, out bit<16> number) {
    action leaf(@name("leaf") bit<16> leaf_number) {
        number = leaf_number;
    }
    action no_leaf() {
        number = LEAF_ALL;
    }
    @name("leaves")
    table leaves {
        key = { address : lpm @name("dst"); }
        actions = { leaf; no_leaf; }
        const default_action = no_leaf();
        size = 4096;
    }
    apply {
        number = LEAF_ALL;
        leaves.apply();
    }
}

control LeafGroup(in bit<16> leaf, out group_t group) {
    action leaf_group(@name("group") group_t group_of_leaf) {
        group = group_of_leaf;
    }
    action no_leaf_group() {
        group = 0;
    }
    @name("leaf_groups")
    table leaf_groups {
        key = { leaf : exact @name("leaf"); }
        actions = { leaf_group; no_leaf_group; }
        const default_action = no_leaf_group();
        size = 4096;
    }
    apply {
        group = 0;
        leaf_groups.apply();
    }
}

#endif
