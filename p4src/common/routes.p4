// SPDX-License-Identifier: Apache-2.0
// IPv4 routing: a longest prefix match gives either a host of this switch or a group of next hops.
//
//   ipv4_routes   10.0.1.2/32 -> to_host(port, mac)              the hosts of this switch
//                 10.0.2.0/24 -> to_group(group, size)           the hosts of another switch
#ifndef COMMON_ROUTES_P4
#define COMMON_ROUTES_P4
#include "common/drops.p4"

control Routes(in ipv4_addr_t address, inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Drop() drop_unrouted;
    bool found = false;
    DropReason_t why = DropReason_t.NO_ROUTE;

    action to_host(@name("port") port_t port, @name("dst_mac") mac_t dst_mac) {
        found = true;
        meta.route.to_host = true;
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = dst_mac;
    }
    action to_group(@name("group") group_t group, @name("size") bit<16> size) {
        found = true;
        meta.route.to_host = false;
        meta.route.group = group;
        meta.route.group_size = size;
    }
    // An unknown reason has no counter cell, and release builds of BMv2 do not check the bounds of an index.
    action discard(@name("reason") DropReason_t reason) {
        why = (bit<8>)reason < (bit<8>)DROP_REASONS ? reason : DropReason_t.NO_ROUTE;
    }
    @name("ipv4_routes")
    table ipv4_routes {
        key = { address : lpm @name("dst"); }
        actions = { to_host; to_group; discard; }
        const default_action = discard(DropReason_t.NO_ROUTE);
        size = 4096;
    }

    apply {
        ipv4_routes.apply();
        if (!found || (!meta.route.to_host && meta.route.group_size == 0)) {
            drop_unrouted.apply(why, meta, standard_metadata);
        }
    }
}

#endif
