// SPDX-License-Identifier: Apache-2.0
// The ECMP tables of both roles (Spritz §III-A), as lists of ports.
//
//   path_lists   (role, near, class) -> path_list(list, size)           a miss: this role has no choice here
//   path_slots   (list, slot) -> path_slot(port, goes_on, links)        slots 0 .. size-1, all with an entry
//
//   Dragonfly    role     destination     ports
//                FIRST    other group     all within the group, then all to other groups
//                FIRST    this group      all within the group
//                SECOND   other group     all to other groups
//                SECOND   this group      no list: packets stay in the group of their destination
//   Slim Fly     both     (near is 0)     all ports to switches
//
// goes_on: the switch at the other end has role SECOND. links: number of links of the longest path by this port, for
// UGAL-L.
// DEVIATION: not the hop count of the path itself, as the source's switch chooses only the first link.
#ifndef SPRITZ_PATH_LISTS_P4
#define SPRITZ_PATH_LISTS_P4
#include "common/ecmp.p4"
#include "spritz/role.p4"

// The set of paths that a packet may take.
enum bit<8> PathClass_t {
    ALL        = 0,  // for fine-grained steering and the routing baselines
    MINIMAL    = 1,  // no list: the next hops of the route are used
    NONMINIMAL = 2
}

struct path_list_t {
    bit<16> list_id;
    bit<16> size;     // 0: no list
}

control PathList(in Role_t role, in bit<1> near, in PathClass_t path_class, out path_list_t found) {
    action path_list(@name("list") bit<16> list_id, @name("size") bit<16> size) {
        found = { list_id, size };
    }
    action no_list() {
        found = { 0, 0 };
    }
    @name("path_lists")
    table path_lists {
        key = {
            role       : exact @name("role");
            near       : exact @name("near");
            path_class : exact @name("class");
        }
        actions = { path_list; no_list; }
        const default_action = no_list();
        size = 32;
    }
    apply {
        path_lists.apply();
    }
}

struct choice_t {
    bool   found;
    bool   goes_on;  // the switch at the other end has role SECOND
    port_t port;
    bit<8> links;    // number of links of the longest path by this port
}

// Selects a link of a list: value modulo the list's size.
control PathSlot(in path_list_t list_info, in bit<32> value, out choice_t link) {
    SlotOf() slot_of;
    bit<16> slot = 0;

    action path_slot(@name("port") port_t port, @name("goes_on") bit<1> goes_on, @name("links") bit<8> links) {
        link = { true, goes_on == 1, port, links };
    }
    action no_slot() {
        link = { false, false, 0, 0 };
    }
    @name("path_slots")
    table path_slots {
        key = {
            list_info.list_id : exact @name("list");
            slot              : exact @name("slot");
        }
        actions = { path_slot; no_slot; }
        const default_action = no_slot();
        size = 4096;
    }
    apply {
        slot_of.apply(value, list_info.size, slot);
        path_slots.apply();
    }
}

#endif
