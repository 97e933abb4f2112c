// SPDX-License-Identifier: Apache-2.0
// Ingress of the schemes that only select paths. The top program defines, before it includes this file:
//
//   const bool KNOWS_DETOURS, KNOWS_CLASSES      common/admission.p4
//   control SelectPath(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
//                      inout standard_metadata_t standard_metadata)
//       sets egress_spec to one of the next hops of meta.route, or drops
//
//   [recirculated] | packet-out | pause | admission -> hop limit -> routes -> SelectPath -> queue limit -> PFC -> finish
//   egress: PFC -> queue accounts, counters, path tag (common/egress.p4)
// The top program includes pfc/metadata.p4 before all other files, and has LosslessEgress as egress.
#ifndef COMMON_BASELINE_P4
#define COMMON_BASELINE_P4
#include "common/admission.p4"
#include "common/checksum.p4"
#include "common/deparser.p4"
#include "common/packet_io.p4"
#include "common/parser.p4"
#include "common/queue_limit.p4"
#include "common/routes.p4"
#include "common/transmit.p4"
#include "pfc/egress.p4"

control BaselineIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PfcEnter() pfc_enter;
    PfcReceive() pfc_receive;
    PfcNumber() pfc_number;
    PfcAsk() pfc_ask;
    CountIn() count_in;
    PacketOut() controller_packet;
    Admission() admission;
    HopLimit() hop_limit;
    Routes() routes;
    FlowHash() flow_hash;
    SelectPath() select_path;
    QueueLimit() queue_limit;
    Finish() finish;  // virtual channel, TTL, ECN, charge (common/transmit.p4)
    Drop() drop;

    apply {
        bit<32> hash_value;
        bit<32> queue_bytes = 0;
        bool handled;
        bool clones_pause;  // output of pfc_ask, not used: this ingress makes no other clone
        pfc_enter.apply(meta, standard_metadata);
        count_in.apply(standard_metadata.ingress_port);
        pfc_receive.apply(hdr, meta, standard_metadata);
        if (hdr.packet_out.isValid()) {
            controller_packet.apply(hdr, meta, standard_metadata, handled);
            if (!handled) {
                drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
            }
        } else {
            admission.apply(hdr, meta, standard_metadata);
            if (meta.kind != PacketKind_t.NONE && hdr.tailrace.isValid()) {
                drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
            }
            if (meta.kind != PacketKind_t.NONE) {
                hop_limit.apply(hdr, meta, standard_metadata);
            }
            if (meta.kind != PacketKind_t.NONE) {
                routes.apply(hdr.ipv4.dst, hdr, meta, standard_metadata);
            }
            if (meta.kind != PacketKind_t.NONE && !meta.route.to_host) {
                flow_hash.apply(meta.flow, hash_value);
                select_path.apply(hash_value, hdr, meta, standard_metadata);
            }
            if (meta.kind != PacketKind_t.NONE) {
                queue_limit.apply(hdr, meta, standard_metadata, queue_bytes);
            }
            if (meta.kind != PacketKind_t.NONE) {
                pfc_number.apply(standard_metadata.ingress_global_timestamp, meta, standard_metadata);
            }
            if (meta.kind != PacketKind_t.NONE) {
                finish.apply(standard_metadata.packet_length, queue_bytes, hdr, meta, standard_metadata);
                pfc_ask.apply(meta, standard_metadata.ingress_global_timestamp, clones_pause);
            }
        }
    }
}

#endif
