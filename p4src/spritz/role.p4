// SPDX-License-Identifier: Apache-2.0
// Role of a switch for a packet (Spritz §III-A). It depends on the packet's ingress port (in the paper: the VRF) and
// source address.
//
//   from a host                                     ECMP 1: chooses the first link
//   directly from the source's switch               ECMP 2: chooses the second link
//     second_role   (ingress_port, src) -> second()          for each neighbour: port, and prefix of its hosts; in a
//                                                            Dragonfly only for neighbours of the same group
//   otherwise                                       no role: the default table
#ifndef SPRITZ_ROLE_P4
#define SPRITZ_ROLE_P4
#include "common/metadata.p4"

enum bit<2> Role_t {
    NONE   = 0,
    FIRST  = 1,
    SECOND = 2
}

control SwitchRole(in port_t ingress_port, in ipv4_addr_t src, in bool from_host, out Role_t role) {
    action second() {
        role = Role_t.SECOND;
    }
    action no_role() {
        role = Role_t.NONE;
    }
    @name("second_role")
    table second_role {
        key = {
            ingress_port : exact @name("ingress_port");
            src          : lpm   @name("src");
        }
        actions = { second; no_role; }
        const default_action = no_role();
        size = 1024;
    }
    apply {
        role = Role_t.FIRST;
        if (!from_host) {
            second_role.apply();
        }
    }
}

#endif
