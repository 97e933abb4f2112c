// SPDX-License-Identifier: Apache-2.0
// Paths of Flowcut in a Dragonfly: the switch of the source chooses between a minimal path and a detour by UGAL-L
// (Flowcut §II-A), or by the rule that path_config says. See flowcut/pipeline.p4 for what the controls are for.
//
// DEVIATION: in the full variant the switches behind the first one keep their state as everywhere, but a new flowcut
// takes its ECMP choice of minimal next hops there: UGAL-L decides once, where the packet enters the network.
//
//   next_hop_ports   (toward, port) -> next_hop()     every port of every group of next hops
#ifndef DRAGONFLY_FLOWCUT_PATHS_P4
#define DRAGONFLY_FLOWCUT_PATHS_P4
#include "dragonfly/next_hop_group.p4"
#include "dragonfly/paths.p4"
#include "flowcut/probe.p4"
#include "flowcut/wish.p4"

// By entry index; written and read only here. What an entry's path is besides its port.
//   at the switch of the source     the detour that the flowcut is on, 0: none
//   at other switches               meta.origin of its packets
@name("flow_detour") register<group_t>(ENTRIES) flow_detour;

typedef far_t next_hops_t;

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

// A switch that gets a flow's packets in another way than before, while it counts some in flight: the switch of the
// source has moved the flow, which it does only when nothing of it is in flight, or its path was withdrawn. So what is
// counted here was lost, or acknowledged by other switches, or is to be forgotten as there (flowcut/moved.p4); and where
// the flow is untracked here, the port that was kept for it is of no use.
control SamePath(in metadata_t meta, inout probe_t probe) {
    apply {
        group_t earlier;
        if (!meta.from_host) {
            probe.fingerprint = probe.fingerprint ^ meta.origin;
            if (probe.found) {
                flow_detour.read(earlier, probe.index);
                probe.elsewhere = !probe.expired && earlier != meta.origin;
                probe.expired = probe.expired || probe.elsewhere;
            }
        }
    }
}

// Between a minimal path and a detour, drawn anew for each flowcut. What the flow has learnt of its ports comes before
// the rule, as local queues tell nothing of a link further on that is slow.
control NewPath(in next_hops_t next_hops, in wish_t wish, in bit<32> draw, inout metadata_t meta, inout port_t port) {
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
            remix.apply(draw, value);
            draw_paths.apply(meta.route.group, next_hops, config, value, path, detour, takes_detour, by_queues);
            if (by_queues) {
                port_bits_t drained_minimal = wish.drained & PORT_BIT(path.port);
                port_bits_t drained_detour = wish.drained & PORT_BIT(detour.port);
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
        group_t belongs = meta.origin;
        if (meta.from_host) {
            belongs = meta.detour;
        }
        flow_detour.write(index, belongs);
    }
}

control LeaveSwitch(in metadata_t meta, inout headers_t hdr) {
    DetourHeader() detour_header;
    apply {
        detour_header.apply(meta, hdr);
    }
}

#endif
