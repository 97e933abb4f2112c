// SPDX-License-Identifier: Apache-2.0
// Ingress and egress of RLB over any path selector. The program includes rlb/metadata.p4 before all other files, and
// defines SELECTOR, the name of a selector control (common/selector.p4), KNOWS_DETOURS and KNOWS_CLASSES
// (common/admission.p4). CNM: congestion notification message, the warning that a path will be paused (cnm.p4). Queue
// accounts are counts of queued bytes by port (common/queues.p4); to charge a packet is to add its bytes to them.
//
//   time -> [after recirculation] -> packet-out | admission -> CNM: store the warning, forward
//                                         -> hop limit -> routes -> to a host: remove the probe
//                                                                -> selector (once) -> Algorithm 1 -> recirculate
//              -> queue limit -> PFC -> add a probe -> TTL, ECN, charge -> predict a pause: clone -> CNM
//   egress: queue accounts -> withdraw or renew a warning: clone -> CNM; counters, path tag
#ifndef RLB_PIPELINE_P4
#define RLB_PIPELINE_P4
#include "common/admission.p4"
#include "common/checksum.p4"
#include "common/deparser.p4"
#include "common/egress.p4"
#include "common/hop_limit.p4"
#include "common/instances.p4"
#include "common/packet_io.p4"
#include "common/parser.p4"
#include "common/queue_limit.p4"
#include "common/red.p4"
#include "common/routes.p4"
#include "pfc/pfc.p4"
#include "rlb/answers.p4"
#include "rlb/balance.p4"
#include "rlb/cnm.p4"
#include "rlb/path_rtt.p4"
#include "rlb/predictor.p4"
#include "rlb/recirculation.p4"

// For a packet that does not recirculate, when its egress port is known: queue limit, PFC, probe (path_rtt.p4), TTL,
// ECN, queue accounts. `period_ticks`: least time between stamps of a path; 0: no probes.
control Leave(in bit<16> leaf, in ticks_t now_ticks, in bit<32> period_ticks, inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    QueueLimit() queue_limit;
    PfcNumber() pfc_number;
    PushProbe() push_probe;
    Red() red;
    ChargeQueues() charge_queues;

    apply {
        bit<32> queue_bytes;
        queue_limit.apply(hdr, meta, standard_metadata, queue_bytes);
        if (meta.kind != PacketKind_t.NONE) {
            pfc_number.apply(now_ticks, meta, standard_metadata);
        }
        if (meta.kind != PacketKind_t.NONE) {
            if (period_ticks != 0 && meta.from_host && !meta.route.to_host && (bit<32>)leaf < LEAVES
                && (bit<32>)standard_metadata.egress_spec < PATH_PORTS) {
                push_probe.apply(standard_metadata.egress_spec, leaf, meta.rlb.warnings.own_leaf, period_ticks,
                                 now_ticks, meta.kind == PacketKind_t.DATA, hdr);
            }
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            red.apply(queue_bytes, hdr.ipv4);
            charge_queues.apply(standard_metadata.packet_length, meta.rlb.preserved.in_port,
                                standard_metadata.egress_spec, meta.charge);
        }
    }
}

control RlbIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcEnter() pfc_enter;
    PfcReceive() pfc_receive;
    PfcAsk() pfc_ask;
    CountIn() count_in;
    WarningConfig() warning_config;
    IngressTime() ingress_time;
    EndRecirculation() end_recirculation;
    PacketOut() controller_packet;
    RlbPacketOut() rlb_packet_out;
    Admission() admission;
    HopLimit() hop_limit;
    Routes() routes;
    LeafOf() leaf_of;
    LeafGroup() leaf_group;
    ProbeConfig() probe_config;
    NextHops() next_hops;
    FlowHash() flow_hash;
    EndProbe() end_probe;
    ReceiveCnm() receive_cnm;
    Balance() balance;
    Recirculate() begin_recirculation;
    Leave() leave;
    Predict() predict;
    SeedCnm() seed_cnm;
    Drop() drop;

    apply {
        ticks_t now_ticks;
        bool seen_before = meta.rlb.preserved.seen_before == 1;
        bool was_recirculated = meta.rlb.preserved.count != 0;
        bool recirculates = false;
        bool unfinished = false;
        bool warns = false;
        bool handled;
        bit<16> leaf = LEAF_ALL;
        bit<32> hash_value;
        next_hops_t hops;
        probe_config_t probes;
        bool clones_pause = false;  // the packet was cloned for a pause frame
        warning_config.apply(meta.rlb.warnings);
        probe_config.apply(probes);
        pfc_enter.apply(meta, standard_metadata);
        ingress_time.apply(seen_before, standard_metadata.ingress_global_timestamp, meta.rlb.preserved, now_ticks);
        if (meta.rlb.preserved.in_recirculation == 1) {
            end_recirculation.apply(now_ticks, meta.rlb.preserved);
        }
        if (!seen_before) {
            count_in.apply(standard_metadata.ingress_port);
            pfc_receive.apply(hdr, meta, standard_metadata);
        }
        if (hdr.packet_out.isValid()) {
            controller_packet.apply(hdr, meta, standard_metadata, handled);
            if (!handled) {
                rlb_packet_out.apply(now_ticks, probes.keep_ticks, hdr, standard_metadata, handled);
            }
            if (!handled) {
                drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
            }
            exit;
        }

        admission.apply(hdr, meta, standard_metadata);
        if (seen_before) {
            meta.from_host = meta.rlb.preserved.from_host == 1;
        } else {
            meta.rlb.preserved.in_port = standard_metadata.ingress_port;
            meta.rlb.preserved.from_host = (bit<1>)meta.from_host;
            meta.rlb.preserved.first_ticks = now_ticks;
        }
        if (meta.kind == PacketKind_t.CNM) {
            leaf_group.apply(hdr.cnm.leaf, meta.route.group);
        } else if (meta.kind != PacketKind_t.NONE && hdr.tailrace.isValid() && !hdr.probe.isValid()) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        } else if (meta.kind != PacketKind_t.NONE) {
            hop_limit.apply(hdr, meta, standard_metadata);
            if (meta.kind != PacketKind_t.NONE) {
                routes.apply(hdr.ipv4.dst, hdr, meta, standard_metadata);
            }
        }
        if (meta.kind == PacketKind_t.NONE) {
            exit;
        }

        next_hops.apply(meta.route.group, hops);
        if (meta.kind == PacketKind_t.CNM) {
            receive_cnm.apply(hops, now_ticks, meta.rlb.warnings, hdr, meta, standard_metadata);
            exit;
        }
        if (!meta.route.to_host) {
            leaf_of.apply(hdr.ipv4.dst, leaf);
            flow_hash.apply(meta.flow, hash_value);
            balance.apply(hash_value, hops, leaf, now_ticks, probes.keep_ticks, hdr, meta, standard_metadata,
                          recirculates, unfinished);
            if (unfinished) {
                resubmit_preserving_field_list(KEEP_FOR_RECIRCULATION);
                exit;
            }
        } else if (hdr.probe.isValid()) {
            end_probe.apply(now_ticks, hdr);
        }
        if (recirculates) {
            begin_recirculation.apply(standard_metadata.packet_length, now_ticks, meta, standard_metadata);
        } else if (meta.kind != PacketKind_t.NONE) {
            leave.apply(leaf, now_ticks, probes.period_ticks, hdr, meta, standard_metadata);
        }
        if (meta.kind != PacketKind_t.NONE) {
            pfc_ask.apply(meta, now_ticks, clones_pause);
        }
        // Hosts get no warning, only the pause. A packet can be cloned only once, and a pause frame takes precedence.
        if (!clones_pause && meta.kind != PacketKind_t.NONE && !was_recirculated && !meta.from_host
            && meta.rlb.warnings.dt_ticks != 0) {
            port_t port = meta.rlb.preserved.in_port;
            predict.apply(port, now_ticks, meta.rlb.warnings, warns);
            if (warns) {
                seed_cnm.apply(port, meta.rlb.warnings.valid_ticks, meta.rlb.warnings, meta.rlb.cnm);
                clone_preserving_field_list(CloneType.I2E,
                                            (bit<32>)(meta.rlb.warnings.first_session + (bit<16>)port), KEEP_FOR_CNM);
            }
        }
    }
}

// Renews or withdraws the warning for an ingress port when a packet from this port has left its egress queue.
control ReviewWarning(in bool charged, inout metadata_t meta, in ticks_t now_ticks) {
    Review() review;
    SeedCnm() seed_cnm;
    apply {
        if (charged && meta.rlb.warnings.dt_ticks != 0) {
            WarningChange_t change;
            port_t port = meta.charge.in_port;
            review.apply(port, now_ticks, meta.rlb.warnings, change);
            if (change != WarningChange_t.NONE) {
                bit<32> valid_ticks = 0;
                if (change == WarningChange_t.AGAIN) {
                    valid_ticks = meta.rlb.warnings.valid_ticks;
                }
                seed_cnm.apply(port, valid_ticks, meta.rlb.warnings, meta.rlb.cnm);
                clone_preserving_field_list(CloneType.E2E,
                                            (bit<32>)(meta.rlb.warnings.first_session + (bit<16>)port), KEEP_FOR_CNM);
            }
        }
    }
}

control RlbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CommonEgress() common_egress;
    CountOut() count_clone;
    MakeCnm() make_cnm;
    ForwardCnm() forward_cnm;
    ReviewWarning() review_warning;
    PfcGate() pfc_gate;
    PfcReview() pfc_review;  // ends or renews the pause of the sender at the ingress port (pfc/ask.p4)

    apply {
        bool not_sent;              // the packet waits, becomes a pause frame, or was dropped (pfc/pfc.p4)
        bool clones_pause = false;  // the packet was cloned for a pause frame
        bool charged = meta.charge.bytes != 0;  // the queue accounts contain its bytes
        pfc_gate.apply(hdr, meta, standard_metadata, not_sent);
        if (not_sent) {
            pfc_review.apply(charged, meta.charge.in_port, meta, standard_metadata.egress_global_timestamp,
                             clones_pause);
        } else if (standard_metadata.instance_type == INSTANCE_INGRESS_CLONE
            || standard_metadata.instance_type == INSTANCE_EGRESS_CLONE) {
            make_cnm.apply(meta.rlb.cnm, hdr);
            count_clone.apply(standard_metadata.egress_port);
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION) {
            bool is_sent;
            forward_cnm.apply(hdr, meta, standard_metadata, is_sent);
            if (is_sent) {
                count_clone.apply(standard_metadata.egress_port);
            }
        } else if (meta.rlb.preserved.in_recirculation == 1) {
            meta.rlb.preserved.left_ticks = standard_metadata.egress_global_timestamp;
            recirculate_preserving_field_list(KEEP_FOR_RECIRCULATION);
        } else {
            common_egress.apply(hdr, meta, standard_metadata);
            pfc_review.apply(charged, meta.charge.in_port, meta, standard_metadata.egress_global_timestamp,
                             clones_pause);
            if (!clones_pause) {
                review_warning.apply(charged, meta, standard_metadata.egress_global_timestamp);
            }
        }
    }
}

#endif
