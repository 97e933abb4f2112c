// SPDX-License-Identifier: Apache-2.0
// Source-guided adaptive routing for Dragonfly and Slim Fly (Spritz §III), and the routing schemes that it is compared
// with: minimal, Valiant, UGAL-L. Senders: Scout, Spray, OPS, Flicr, ECMP in mode STEERED (docs/schemes/spritz.md).
//
//   packet-out | admission -> marks of hosts -> hop limit -> routes -> role -> steer -> tag -> queue limit: trim -> finish
//              egress: queue accounts, counters, path tag (a hash of the path in the BTH, common/egress.p4)
// KNOWS_CHANNELS: packets use virtual channels (common/channels.p4).
#define KNOWS_CHANNELS
#include <core.p4>
#include <v1model.p4>
#include "spritz/steer.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = true;

#include "common/admission.p4"
#include "common/checksum.p4"
#include "common/deparser.p4"
#include "common/egress.p4"
#include "common/packet_io.p4"
#include "common/parser.p4"
#include "common/routes.p4"
#include "common/transmit.p4"
#include "spritz/host_marks.p4"

// Admission, marks of hosts, hop limit and routes: drops what must not be forwarded.
control SpritzAdmission(in bool may_tag, in bool may_mark, inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Admission() admission;
    HostMarks() host_marks;
    PrioritiseTrimmed() prioritise_trimmed;
    HopLimit() hop_limit;
    Routes() routes;
    Drop() drop;

    apply {
        admission.apply(hdr, meta, standard_metadata);
        if (meta.kind != PacketKind_t.NONE && hdr.tailrace.isValid()) {
            drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
        }
        if (meta.kind != PacketKind_t.NONE && meta.from_host) {
            host_marks.apply(may_tag, may_mark, hdr);
        }
        if (meta.kind != PacketKind_t.NONE) {
            prioritise_trimmed.apply(hdr, meta, standard_metadata);
            hop_limit.apply(hdr, meta, standard_metadata);
        }
        if (meta.kind != PacketKind_t.NONE) {
            routes.apply(hdr.ipv4.dst, hdr, meta, standard_metadata);
        }
    }
}

// Applied when the egress port is known: tag, queue limit, last blocks of ingress.
control SpritzTransmit(in TagOp_t tag_op, inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    WriteTag() write_tag;
    TrimAtLimit() trim_at_limit;
    Finish() finish;

    apply {
        bit<32> wire_bytes = standard_metadata.packet_length;
        bit<32> queue_bytes = 0;
        write_tag.apply(tag_op, hdr, wire_bytes);
        trim_at_limit.apply(hdr, meta, standard_metadata, wire_bytes, queue_bytes);
        if (meta.kind != PacketKind_t.NONE) {
            finish.apply(wire_bytes, queue_bytes, hdr, meta, standard_metadata);
        }
    }
}

control SpritzIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CountIn() count_in;
    PacketOut() controller_packet;
    SpritzAdmission() admission;
    FlowHash() flow_hash;
    SwitchRole() switch_role;
    SpritzMode() spritz_mode;
    Steer() steer;
    SpritzTransmit() transmit;
    Drop() drop;

    apply {
        bool handled;
        count_in.apply(standard_metadata.ingress_port);
        if (hdr.packet_out.isValid()) {
            controller_packet.apply(hdr, meta, standard_metadata, handled);
            if (!handled) {
                drop.apply(DropReason_t.UNSUPPORTED, meta, standard_metadata);
            }
        } else {
            TagOp_t tag_op = TagOp_t.CLEAR;  // tags are not sent to hosts
            SpritzMode_t mode;
            bool may_mark;
            spritz_mode.apply(mode, may_mark);
            admission.apply(mode == SpritzMode_t.CLASS, may_mark, hdr, meta, standard_metadata);
            if (meta.kind != PacketKind_t.NONE && !meta.route.to_host) {
                bit<32> hash_value;
                Role_t role;
                flow_hash.apply(meta.flow, hash_value);
                switch_role.apply(standard_metadata.ingress_port, hdr.ipv4.src, meta.from_host, role);
                steer.apply(role, mode, hash_value, hdr, meta, standard_metadata, tag_op);
            }
            if (meta.kind != PacketKind_t.NONE) {
                transmit.apply(tag_op, hdr, meta, standard_metadata);
            }
        }
    }
}

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), SpritzIngress(), CommonEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
