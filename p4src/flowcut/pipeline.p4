// SPDX-License-Identifier: Apache-2.0
// Ingress and egress of Flowcut, for all kinds of paths. Before this file, the top program defines KNOWS_DETOURS and
// KNOWS_CLASSES (common/admission.p4) and includes flowcut/next_hops.p4 or dragonfly/flowcut_paths.p4. Both define what
// depends on the kind of paths:
//
//   SelectNextHopGroup              after the route: the next-hop group, by where the packet came from
//   next_hops_t, FindNextHops       the next hops to choose from
//   IsNextHop       whether a flow in flight can stay on a port
//   SamePath        whether the entry of a packet's flow belongs to the path that the packet is on
//   NewPath         the choice of a path for a new flowcut
//   RecallPath, RememberPath        state of a path besides its port
//   LeaveSwitch     in egress: headers that belong to the path
//
//   packet-out | admission -> hop limit -> routes -> ECMP choice -> role -> flow table lookup
//                                            TRACK:    decide -> queue limit -> commit, stamp
//                                            ACK_HERE: bytes in flight, RTT, drain -> upstream, or XOFF/XON to the source
//                                            EGRESS:   drop packets that are late after a move -> save data for the ACK
//              -> finish; egress: queue accounts, counters, path tag; EGRESS: strip the shim, clone -> ACK -> recirculate
#ifndef FLOWCUT_PIPELINE_P4
#define FLOWCUT_PIPELINE_P4
#include "common/admission.p4"
#include "common/checksum.p4"
#include "common/deparser.p4"
#include "common/egress.p4"
#include "common/packet_io.p4"
#include "common/parser.p4"
#include "common/queue_limit.p4"
#include "common/routes.p4"
#include "common/select_ecmp.p4"
#include "common/transmit.p4"
#include "flowcut/ack.p4"
#include "flowcut/ack_maker.p4"
#include "flowcut/data.p4"
#include "flowcut/inspect.p4"
#include "flowcut/moved.p4"
#include "flowcut/role.p4"
#include "flowcut/shim.p4"

// Handles the packet-outs that common/packet_io.p4 does not.
control FlowcutPacketOut(in flowcut_config_t config, inout headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    ShowBucket() show_bucket;
    Drop() drop;

    apply {
        bool about_flows = hdr.packet_out.op == PacketOutOp_t.READ_FLOWS || hdr.packet_out.op == PacketOutOp_t.SWEEP;
        if (about_flows && hdr.packet_out.index < (bit<16>)BUCKETS) {
            show_bucket.apply(standard_metadata.ingress_global_timestamp, config.age_ticks, hdr, standard_metadata);
        } else {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        }
    }
}

// Routes the packet. An ACK of the full-switch variant is not routed: its stamps contain the ports of its path.
control FlowcutRoute(in FlowcutMode_t mode, in bit<32> flow_hash, inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    HopLimit() hop_limit;
    Routes() routes;
    SelectNextHopGroup() select_next_hop_group;
    SelectEcmp() select_ecmp;
    Drop() drop;

    apply {
        bool is_ack = meta.kind == PacketKind_t.FLOWCUT_ACK;
        ipv4_addr_t address = hdr.ipv4.dst;
        if (is_ack) {
            address = hdr.ack.src;
        } else {
            hop_limit.apply(hdr, meta, standard_metadata);
        }
        bool by_stamps = is_ack && (mode == FlowcutMode_t.FULL
            || standard_metadata.instance_type == INSTANCE_RECIRCULATED);
        if (is_ack && !by_stamps && hdr.ack.hops_back == 15) {
            drop.apply(DropReason_t.TTL_EXPIRED, meta, standard_metadata);
        }
        if (meta.kind != PacketKind_t.NONE && !by_stamps) {
            routes.apply(address, hdr, meta, standard_metadata);
            if (meta.kind != PacketKind_t.NONE && !meta.route.to_host) {
                select_next_hop_group.apply(meta);
                select_ecmp.apply(flow_hash, meta, standard_metadata);
                if (is_ack) {
                    hdr.ack.hops_back = hdr.ack.hops_back + 1;
                }
            }
        }
    }
}

control FlowcutIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CountIn() count_in;
    FlowcutConfig() flowcut_config;
    PacketOut() controller_packet;
    FlowcutPacketOut() flowcut_packet_out;
    Admission() admission;
    FlowHash() flow_hash;
    FlowcutRoute() route;
    FindRole() find_role;
    LookUp() find_flow;
    SamePath() same_path;
    FindNextHops() find_next_hops;
    Decide() decide;
    AckHere() ack_here;
    KeepOrder() keep_order;
    QueueLimit() queue_limit;
    Commit() commit;
    PushShim() push_shim;
    PushStamp() push_stamp;
    SeedAck() seed_ack;
    SendNewAck() send_new_ack;
    Finish() finish;  // virtual channel, TTL, ECN, charge (common/transmit.p4)

    apply {
        ticks_t now_ticks = standard_metadata.ingress_global_timestamp;
        flowcut_config_t config;
        lookup_t lookup = { 0, 0, 0, 0, 0, false, false, false, 0, 0, false, false, 0 };
        decision_t decision = { Decision_t.NONE, 0, false, false, false, 0, false, 0 };
        next_hops_t next_hops;
        Role_t role = Role_t.PASS_BY;
        bit<32> hash_value = 0;
        bit<32> queue_bytes = 0;
        bit<32> wire_bytes = standard_metadata.packet_length;
        bool handled;

        if (standard_metadata.instance_type != INSTANCE_RECIRCULATED) {
            count_in.apply(standard_metadata.ingress_port);
        }
        flowcut_config.apply(config);
        if (hdr.packet_out.isValid()) {
            controller_packet.apply(hdr, meta, standard_metadata, handled);
            if (!handled) {
                flowcut_packet_out.apply(config, hdr, meta, standard_metadata);
            }
            exit;
        }

        admission.apply(hdr, meta, standard_metadata);
        if (meta.kind != PacketKind_t.NONE) {
            flow_hash.apply(meta.flow, hash_value);
            route.apply(config.mode, hash_value, hdr, meta, standard_metadata);
            find_role.apply(config.mode, hdr, meta, standard_metadata, role);
        }
        if (meta.kind == PacketKind_t.NONE) {
            exit;
        }

        if (role == Role_t.TRACK || role == Role_t.ACK_HERE) {
            bool at_source = meta.from_host;
            if (role == Role_t.ACK_HERE) {
                at_source = hdr.ack.stamps == 1;
            }
            find_flow.apply(meta.flow, at_source, hash_value, now_ticks, config, lookup);
        }
        if (role == Role_t.TRACK) {
            same_path.apply(meta, lookup);
            find_next_hops.apply(meta, next_hops);
            bit<1> after_drain = 0;
            if (hdr.shim.isValid() && hdr.shim.stamps != 0) {
                after_drain = hdr.stamps[0].drained;
            }
            decide.apply(lookup, hash_value, now_ticks, config, next_hops, after_drain, decision, meta,
                         standard_metadata);
        } else if (role == Role_t.ACK_HERE) {
            ack_here.apply(lookup, hash_value, now_ticks, config, hdr, meta, standard_metadata);
        } else if (role == Role_t.NEW_ACK) {
            send_new_ack.apply(hdr, meta.ack_seed, standard_metadata.egress_spec, wire_bytes);
        } else if (role == Role_t.EGRESS) {
            keep_order.apply(hash_value, now_ticks, config.age_ticks, hdr, meta, standard_metadata);
            seed_ack.apply(hdr, meta.frame_bytes, standard_metadata.ingress_port, meta.ack_seed);
        }
        if (meta.kind != PacketKind_t.NONE) {
            queue_limit.apply(hdr, meta, standard_metadata, queue_bytes);
        }
        if (meta.kind == PacketKind_t.NONE) {
            exit;
        }

        if (role == Role_t.TRACK) {
            bit<8> remaining_packets = 0;
            if (hdr.bth.isValid()) {
                remaining_packets = (bit<8>)hdr.bth.left;
            }
            commit.apply(decision, lookup, now_ticks, meta, remaining_packets, standard_metadata.ingress_port,
                         standard_metadata.egress_spec);
            if (!hdr.shim.isValid()) {
                push_shim.apply(hdr);
            }
            bit<1> untracked = 0;
            if (decision.what == Decision_t.UNTRACKED) {
                untracked = 1;
            }
            push_stamp.apply(now_ticks, standard_metadata.ingress_port, decision.moved, untracked, decision.drained,
                             hdr);
        }
        if (hdr.shim.isValid() && !meta.route.to_host) {
            hdr.shim.hops = hdr.shim.hops |+| 1;
        }
        finish.apply(wire_bytes, queue_bytes, hdr, meta, standard_metadata);
    }
}

control FlowcutEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CommonEgress() common_egress;
    StripShim() strip_shim;
    LeaveSwitch() leave_switch;
    MakeAck() make_ack;

    apply {
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE) {
            make_ack.apply(meta.ack_seed, hdr);
            recirculate_preserving_field_list(KEEP_FOR_ACK);
        } else {
            common_egress.apply(hdr, meta, standard_metadata);
            leave_switch.apply(meta, hdr);
            if (meta.ack_seed.wanted == 1) {
                strip_shim.apply(hdr);
                acks_made.count(0);
                clone_preserving_field_list(CloneType.E2E, ACK_SESSION, KEEP_FOR_ACK);
            }
        }
    }
}

#endif
