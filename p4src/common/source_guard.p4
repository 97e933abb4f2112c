// SPDX-License-Identifier: Apache-2.0
// IP source guard: packets from a host's port must have a source address of this port's hosts, so that no host can
// slow, stop or resume another host's flow by a spoofed ACK, NAK or CNP. admission.p4 applies this block only to
// packets of guarded ports, which have the action guarded_port in the table port_role.
//   host_addresses   (ingress_port, src) -> own_address()          a miss: the address is spoofed
//
// DHCP requests (from 0.0.0.0 to 255.255.255.255) pass here, but are not routed. ARP and other EtherTypes are not
// checked here.
#ifndef COMMON_SOURCE_GUARD_P4
#define COMMON_SOURCE_GUARD_P4
#include "common/headers.p4"

control SourceGuard(in port_t ingress_port, in ipv4_header_t ipv4, out bool spoofed) {
    action own_address() {
        spoofed = false;
    }
    action foreign_address() {
        spoofed = true;
    }
    @name("host_addresses")
    table host_addresses {
        key = {
            ingress_port : exact @name("ingress_port");
            ipv4.src     : exact @name("src");
        }
        actions = { own_address; foreign_address; }
        const default_action = foreign_address();
        size = 4096;
    }
    apply {
        spoofed = false;
        if (ipv4.src != 0 || ipv4.dst != 0xFFFFFFFF) {
            host_addresses.apply();
        }
    }
}

#endif
