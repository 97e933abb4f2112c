// SPDX-License-Identifier: Apache-2.0
// Routing of a Dragonfly: minimal, Valiant (a detour: a path through a random group), UGAL-L (Flowcut §III-C4), for
// each packet, each flow or each flowlet.
//
//   data from a host to another group     a minimal path and a detour are drawn; path_config's rule selects one of them
//   other data                            one of the minimal next hops is drawn
//   everything else                       ECMP on minimal paths
#define KNOWS_CHANNELS
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "common/select_ecmp.p4"
#include "dragonfly/next_hop_group.p4"
#include "dragonfly/paths.p4"
#include "letflow/flowlets.p4"

const bool KNOWS_DETOURS = true;
const bool KNOWS_CLASSES = false;

// `value`: the random number or hash that selects a path. `is_first`: false for later packets of a flowlet, else true.
control PathValue(in Grain_t grain, in bit<32> flow_hash, in ticks_t now_ticks, out bit<32> value, out bool is_first) {
    Flowlets() flowlets;

    apply {
        is_first = true;
        if (grain == Grain_t.FLOW) {
            value = flow_hash;
        } else if (grain == Grain_t.FLOWLET) {
            flowlets.apply(flow_hash, now_ticks, value, is_first);
        } else {
            random(value, 32w0, 32w0xFFFFFFFF);
        }
    }
}

// At the source's switch: selects the path by the configured rule. `is_first` as in PathValue.
control ChoosePath(in bit<32> flow_hash, in bit<32> value, in bool is_first, in group_t group,
                   in far_group_t destination, in path_config_t config, out first_link_t path) {
    // Index: as in the flowlet table. 1: the flowlet takes its detour. Written and read only here.
    @name("flowlet_detours") register<bit<1>>(FLOWLET_SLOTS) flowlet_detours;
    DrawPaths() draw_paths;
    UgalL() ugal_l;

    apply {
        first_link_t detour;
        bool takes_detour;
        bool by_queues;
        draw_paths.apply(group, destination, config, value, path, detour, takes_detour, by_queues);
        if (by_queues) {
            bit<1> choice = 0;
            if (is_first) {
                ugal_l.apply(path.port, path.links, detour.port, detour.links, takes_detour);
                if (takes_detour) {
                    choice = 1;
                }
                if (config.grain == Grain_t.FLOWLET) {
                    flowlet_detours.write(flow_hash >> 16, choice);
                }
            } else {
                flowlet_detours.read(choice, flow_hash >> 16);
                takes_detour = choice == 1;
            }
        }
        if (takes_detour) {
            path = detour;
        }
    }
}

control SelectPath(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    NextHopGroup() next_hop_group;
    PathConfig() path_config;
    PathValue() path_value;
    FarGroup() far_group;
    ChoosePath() choose_path;
    SelectEcmp() select_ecmp;

    apply {
        path_config_t config = { PathRule_t.MINIMAL, Grain_t.FLOW, 0 };
        far_group_t destination = { false, 0, 0, 0, 0, 0 };
        first_link_t path = { false, 0, 0, 0 };
        bit<32> value = flow_hash;
        bool is_first = true;
        next_hop_group.apply(meta);
        if (meta.kind == PacketKind_t.DATA) {
            path_config.apply(config);
            path_value.apply(config.grain, flow_hash, standard_metadata.ingress_global_timestamp, value, is_first);
            if (meta.from_host) {
                far_group.apply(meta.route.group, destination);
                if (destination.is_far) {
                    choose_path.apply(flow_hash, value, is_first, meta.route.group, destination, config, path);
                }
            }
        }
        // With grain FLOW, the minimal path is the ECMP path, so that a flow moves only when a link of its path fails.
        if (path.found && (config.grain != Grain_t.FLOW || path.group != 0)) {
            standard_metadata.egress_spec = path.port;
            meta.detour = path.group;
        } else {
            select_ecmp.apply(value, meta, standard_metadata);
        }
    }
}

#include "common/baseline.p4"

control DragonflyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    LosslessEgress() lossless_egress;
    DetourHeader() detour_header;

    apply {
        detour_header.apply(meta, hdr);
        lossless_egress.apply(hdr, meta, standard_metadata);
    }
}

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), DragonflyEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
