// SPDX-License-Identifier: Apache-2.0
// Minimal paths of a Dragonfly, and detours (through a third group). The source's switch stores only their first links.
// `toward` is the id of the route's next-hop group:
//   far_groups      toward -> far(paths, list, first, count, detours)   destinations in other groups
//   minimal_paths   (toward, slot) -> minimal(port, links)    slots 0 .. paths-1, one for each link between the groups
//   detours         (list, slot) -> detour(port, group, links)          one for each link to another group, by group
//
// Unless links have failed, all destinations share one list of detours. `count` slots from `first` lead to the
// destination's group and are skipped, so `detours` slots remain. All pairs of groups have equally many links, so all
// intermediate groups have the same probability (Flowcut §III-C4); after failures, all remaining links have the same.
// `links`: length of the longest path with this first link. DEVIATION: not the length of the packet's path, since the
// source's switch chooses only the first link of a path, and later switches choose the others.
#ifndef DRAGONFLY_PATHS_P4
#define DRAGONFLY_PATHS_P4
#include "common/ecmp.p4"
#include "common/ugal.p4"

// How a path is chosen.
enum bit<8> PathRule_t {
    MINIMAL = 0,
    VALIANT = 1,
    UGAL_L  = 2,
    MIXED   = 3   // minimal with probability minimal_share
}

// Unit of path selection: all packets of a unit take the same path.
enum bit<8> Grain_t {
    PACKET  = 0,
    FLOW    = 1,  // by hash; UGAL_L decides for each packet, so a flow may change between its two paths
    FLOWLET = 2
}

struct path_config_t {
    PathRule_t rule;
    Grain_t    grain;
    bit<16>    minimal_share;  // in 1/256
}

control PathConfig(out path_config_t config) {
    action set_paths(@name("rule") PathRule_t rule, @name("grain") Grain_t grain,
                     @name("minimal_share") bit<16> minimal_share) {
        config = { rule, grain, minimal_share };
    }
    @name("path_config")
    table path_config {
        actions = { set_paths; }
        default_action = set_paths(PathRule_t.MINIMAL, Grain_t.FLOW, 0);
        size = 1;
    }
    apply {
        path_config.apply();
    }
}

struct far_group_t {
    bool    is_far;         // the destination is in another group, and there is a minimal path
    bit<16> minimal_count;  // number of minimal paths
    bit<16> list_id;        // list of the detours
    bit<16> skip_first;     // first slot of the list that leads to the destination's group
    bit<16> skip_count;     // number of such slots
    bit<16> detour_count;   // number of all other slots
}

control FarGroup(in group_t group, out far_group_t destination) {
    action far(@name("paths") bit<16> paths, @name("list") bit<16> list_id, @name("first") bit<16> first,
               @name("count") bit<16> count, @name("detours") bit<16> detours) {
        destination = { true, paths, list_id, first, count, detours };
    }
    action near() {
        destination = { false, 0, 0, 0, 0, 0 };
    }
    @name("far_groups")
    table far_groups {
        key = { group : exact @name("toward"); }
        actions = { far; near; }
        const default_action = near();
        size = 4096;
    }
    apply {
        far_groups.apply();
    }
}

struct first_link_t {
    bool    found;
    port_t  port;
    group_t group;  // next-hop group of the detour; 0: minimal path
    bit<8>  links;
}

control MinimalPath(in group_t group, in bit<16> paths, in bit<32> value, out first_link_t path) {
    SlotOf() slot_of;
    bit<16> slot = 0;

    action minimal(@name("port") port_t port, @name("links") bit<8> links) {
        path = { true, port, 0, links };
    }
    action no_minimal() {
        path = { false, 0, 0, 0 };
    }
    @name("minimal_paths")
    table minimal_paths {
        key = {
            group : exact @name("toward");
            slot  : exact @name("slot");
        }
        actions = { minimal; no_minimal; }
        const default_action = no_minimal();
        size = 16384;
    }
    apply {
        slot_of.apply(value, paths, slot);
        minimal_paths.apply();
    }
}

control DetourPath(in far_group_t destination, in bit<32> value, out first_link_t path) {
    SlotOf() slot_of;
    bit<16> slot = 0;

    action detour(@name("port") port_t port, @name("group") group_t group, @name("links") bit<8> links) {
        path = { true, port, group, links };
    }
    action no_detour() {
        path = { false, 0, 0, 0 };
    }
    @name("detours")
    table detours {
        key = {
            destination.list_id : exact @name("list");
            slot                : exact @name("slot");
        }
        actions = { detour; no_detour; }
        const default_action = no_detour();
        size = 16384;
    }
    apply {
        path = { false, 0, 0, 0 };
        if (destination.detour_count != 0) {
            slot_of.apply(value, destination.detour_count, slot);
            if (slot >= destination.skip_first) {
                slot = slot + destination.skip_count;
            }
            detours.apply();
        }
    }
}

// Derives a second number from a hash or random number, so that their remainders are not correlated. The constant is
// odd and has well spread bits, as in FlowHash.
control Remix(in bit<32> value, out bit<32> mixed) {
    apply {
        bit<32> spread = (value ^ (value >> 16)) * 0x7FEB352D;
        mixed = spread ^ (spread >> 15);
    }
}

// Selects one minimal path and one detour by `value`, a random number or hash. `takes_detour`: the rule's choice of the
// two, unless `by_queues`: then UgalL decides.
control DrawPaths(in group_t group, in far_group_t destination, in path_config_t config, in bit<32> value,
                  out first_link_t minimal, out first_link_t detour, out bool takes_detour, out bool by_queues) {
    MinimalPath() minimal_path;
    DetourPath() detour_path;
    Remix() remix_detour;
    Remix() remix_coin;

    apply {
        bit<32> detour_value;
        bit<32> coin;
        remix_detour.apply(value, detour_value);
        remix_coin.apply(detour_value, coin);
        minimal_path.apply(group, destination.minimal_count, value, minimal);
        detour_path.apply(destination, detour_value, detour);
        takes_detour = config.rule == PathRule_t.VALIANT
            || (config.rule == PathRule_t.MIXED && (bit<16>)coin[31:24] >= config.minimal_share);
        by_queues = config.rule == PathRule_t.UGAL_L && minimal.found && detour.found;
        takes_detour = detour.found && (takes_detour || !minimal.found);
    }
}

#endif
