// SPDX-License-Identifier: Apache-2.0
// The default table (Spritz §III-A): one static minimal next hop for each other switch that has hosts, and properties of
// the destination that the roles (role.p4) need.
//
//   destinations   10.0.2.0/24 -> destination(near, links, port)
//                  near: 1 if the destination is in this switch's Dragonfly group; links: number of links of the
//                  minimal path by this port
#ifndef SPRITZ_DESTINATIONS_P4
#define SPRITZ_DESTINATIONS_P4
#include "common/types.p4"

struct destination_t {
    bool   known;
    bit<1> near;
    bit<8> links;
    port_t port;
}

control Destinations(in ipv4_addr_t dst, out destination_t found) {
    action destination(@name("near") bit<1> near, @name("links") bit<8> links, @name("port") port_t port) {
        found = { true, near, links, port };
    }
    action unknown() {
        found = { false, 0, 0, 0 };
    }
    @name("destinations")
    table destinations {
        key = { dst : lpm @name("dst"); }
        actions = { destination; unknown; }
        const default_action = unknown();
        size = 4096;
    }
    apply {
        destinations.apply();
    }
}

#endif
