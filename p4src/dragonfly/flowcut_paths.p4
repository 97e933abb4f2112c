// SPDX-License-Identifier: Apache-2.0
// Paths of Flowcut in a Dragonfly: the source's switch chooses between a minimal path and a detour (a path through a
// third group) by UGAL-L (Flowcut §II-A), or by path_config's rule. flowcut/pipeline.p4 describes each control.
//
// DEVIATION: in the full variant, later switches also keep state, but there a new flowcut takes the next hop that ECMP
// selects among the minimal ones: UGAL-L decides only where the packet enters the network.
//
//   next_hop_ports   (toward, port) -> next_hop()     every port of every next-hop group
#ifndef DRAGONFLY_FLOWCUT_PATHS_P4
#define DRAGONFLY_FLOWCUT_PATHS_P4
#include "dragonfly/next_hop_group.p4"
#include "dragonfly/paths.p4"
#include "flowcut/lookup.p4"
#include "flowcut/preference.p4"

// The part of a flow table entry's path that its port does not determine. Index: entry; written and read only here.
//   at the source's switch          the flowcut's detour, 0: none
//   at other switches               meta.origin of its packets (dragonfly/next_hop_group.p4)
@name("flow_detour") register<group_t>(ENTRIES) flow_detour;

typedef far_group_t next_hops_t;

control SelectNextHopGroup(inout metadata_t meta) {
    NextHopGroup() next_hop_group;
    apply {
        next_hop_group.apply(meta);
    }
}

control FindNextHops(in metadata_t meta, out next_hops_t next_hops) {
    FarGroup() far_group;
    apply {
        next_hops = { false, 0, 0, 0, 0, 0 };
        if (meta.from_host) {
            far_group.apply(meta.route.group, next_hops);
        }
    }
}

control IsNextHop(in port_t port, in metadata_t meta, in next_hops_t next_hops, out bool is_next_hop) {
    group_t toward = 0;

    action next_hop() {
        is_next_hop = true;
    }
    action no_next_hop() {
        is_next_hop = false;
    }
    @name("next_hop_ports")
    table next_hop_ports {
        key = {
            toward : exact @name("toward");
            port   : exact @name("port");
        }
        actions = { next_hop; no_next_hop; }
        const default_action = no_next_hop();
        size = 16384;
    }
    apply {
        is_next_hop = false;
        toward = meta.route.group;
        if (meta.from_host && meta.detour != 0) {
            toward = meta.detour;
        }
        next_hop_ports.apply();
    }
}

// Detects that a flow's packets arrive from another switch or detour than before while bytes are counted as in flight.
// Then the source's switch has moved the flow, either with nothing in flight or from a withdrawn path. In the first
// case, the counted bytes were lost, or their ACKs passed other switches. In both cases they must no longer be counted
// (flowcut/moved.p4). The fingerprint contains the origin, so that an untracked flow's stored port no longer applies.
control SamePath(in metadata_t meta, inout lookup_t lookup) {
    apply {
        group_t stored_origin;
        if (!meta.from_host) {
            lookup.fingerprint = lookup.fingerprint ^ meta.origin;
            if (lookup.found) {
                flow_detour.read(stored_origin, lookup.index);
                lookup.of_other_path = !lookup.expired && stored_origin != meta.origin;
                lookup.expired = lookup.expired || lookup.of_other_path;
            }
        }
    }
}

// Chooses between a minimal path and a detour, which are drawn anew for each flowcut. First, a port on which the flow
// was drained is avoided, since local queues do not show slow links further on. Then UGAL-L decides.
control NewPath(in next_hops_t next_hops, in preference_t preference, in bit<32> varied_hash, inout metadata_t meta,
                inout port_t port) {
    PathConfig() path_config;
    Remix() remix;
    DrawPaths() draw_paths;
    UgalL() ugal_l;

    apply {
        if (next_hops.is_far) {
            path_config_t config;
            bit<32> value;
            first_link_t path;
            first_link_t detour;
            bool takes_detour;
            bool by_queues;
            path_config.apply(config);
            remix.apply(varied_hash, value);
            draw_paths.apply(meta.route.group, next_hops, config, value, path, detour, takes_detour, by_queues);
            if (by_queues) {
                port_bits_t drained_minimal = preference.drained & PORT_BIT(path.port);
                port_bits_t drained_detour = preference.drained & PORT_BIT(detour.port);
                if (drained_minimal != 0 && drained_detour == 0) {
                    takes_detour = true;
                } else if (drained_minimal != 0 || drained_detour == 0) {
                    ugal_l.apply(path.port, path.links, detour.port, detour.links, takes_detour);
                }
            }
            if (takes_detour) {
                path = detour;
            }
            if (path.found) {
                port = path.port;
                meta.detour = path.group;
            }
        }
    }
}

control RecallPath(in bit<32> index, inout metadata_t meta) {
    apply {
        if (meta.from_host) {
            flow_detour.read(meta.detour, index);
        }
    }
}

control RememberPath(in bit<32> index, in metadata_t meta) {
    apply {
        group_t detour_or_origin = meta.origin;
        if (meta.from_host) {
            detour_or_origin = meta.detour;
        }
        flow_detour.write(index, detour_or_origin);
    }
}

control LeaveSwitch(in metadata_t meta, inout headers_t hdr) {
    DetourHeader() detour_header;
    apply {
        detour_header.apply(meta, hdr);
    }
}

#endif
