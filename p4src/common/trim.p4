// SPDX-License-Identifier: Apache-2.0
// Packet trimming (Spritz §II-B, §IV-C): where the egress queue has no room for RoCE data, only its headers travel on,
// before all data, and their receiver asks for the packet again at once.
//
//   +----------+--------+------+-----+-----+- - - - - - -+
//   | Ethernet | [VLAN] | IPv4 | UDP | BTH | payload, ICRC        54 bytes are left, 58 with a tag
//   +----------+--------+------+-----+-----+- - - - - - -+
//        IPv4: DSCP TRIMMED, total length 40; UDP: length 20, checksum 0
//
//   queue_config  -> set_queue_limit(limit_bytes) | set_queue_trim(limit_bytes)      0: no limit
// For programs that trim; the others have QueueLimit (common/queue_limit.p4).
#ifndef COMMON_TRIM_P4
#define COMMON_TRIM_P4
#include "common/drops.p4"
#include "common/queues.p4"

const bit<16> TRIMMED_UDP_BYTES  = 8 + 12;  // UDP and BTH
const bit<16> TRIMMED_IPV4_BYTES = 20 + TRIMMED_UDP_BYTES;
const bit<32> TRIMMED_BYTES      = 14 + (bit<32>)TRIMMED_IPV4_BYTES;
const bit<32> VLAN_BYTES         = 4;

@name("trims") counter(1, CounterType.packets_and_bytes) trims;

// A trimmed packet must not wait behind data. The length keeps a host from sending all its data so.
control TrimmedGoFirst(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.bth.isValid() && hdr.ipv4.total_len == TRIMMED_IPV4_BYTES
            && (hdr.ipv4.dscp == Dscp_t.TRIMMED || hdr.ipv4.dscp == Dscp_t.TRIMMED_STEERED)) {
            meta.kind = PacketKind_t.CONTROL;
            standard_metadata.priority = PRIORITY_CONTROL;
        }
    }
}

// Cuts a RoCE packet off behind its BTH. `wire_bytes`: what it is long in the end.
control Trim(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
             inout bit<32> wire_bytes) {
    apply {
        trims.count(0);
        wire_bytes = TRIMMED_BYTES;
        if (hdr.vlan.isValid()) {
            wire_bytes = TRIMMED_BYTES + VLAN_BYTES;
        }
        truncate(wire_bytes);
        if (hdr.ipv4.dscp == Dscp_t.STEERED || hdr.ipv4.dscp == Dscp_t.TRIMMED_STEERED) {
            hdr.ipv4.dscp = Dscp_t.TRIMMED_STEERED;
        } else {
            hdr.ipv4.dscp = Dscp_t.TRIMMED;
        }
        hdr.ipv4.total_len = TRIMMED_IPV4_BYTES;
        hdr.udp.length = TRIMMED_UDP_BYTES;
        hdr.udp.checksum = 0;  // it covered what is gone (RFC 768: 0 is none)
        meta.kind = PacketKind_t.CONTROL;
        standard_metadata.priority = PRIORITY_CONTROL;
    }
}

// The egress queue's limit, for data. Headers of what is trimmed here may fill it to twice the limit, and what finds no
// room is dropped; so the traffic manager, whose drops the accounts cannot see, needs room for that. (In htsim, by
// which the paper measures, the headers' queue alone holds so much.) Other control packets pass.
// DEVIATION: the accounts are of ports, not of queues: control packets that wait take room from data.
// `wire_bytes`: as in Finish.
control TrimAtLimit(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                    inout bit<32> wire_bytes, out bit<32> load_bytes) {
    Trim() trim;
    Drop() drop;
    QueueLoad() queue_load;
    bit<32> limit_bytes = 0;
    bool trims_payload = false;

    action set_queue_limit(@name("limit_bytes") bit<32> limit) {
        limit_bytes = limit;
    }
    action set_queue_trim(@name("limit_bytes") bit<32> limit) {
        limit_bytes = limit;
        trims_payload = true;
    }
    @name("queue_config")
    table queue_config {
        actions = { set_queue_limit; set_queue_trim; }
        default_action = set_queue_limit(0);
        size = 1;
    }

    apply {
        queue_config.apply();
        queue_load.apply(standard_metadata.egress_spec, load_bytes);
        if (limit_bytes != 0 && standard_metadata.priority == PRIORITY_DATA
            && (bit<33>)load_bytes + (bit<33>)wire_bytes > (bit<33>)limit_bytes) {
            bool has_room = (bit<34>)load_bytes + (bit<34>)TRIMMED_BYTES <= 2 * (bit<34>)limit_bytes;
            // A Flowcut NIC's shim comes before the BTH, and its receiver needs the payload's length.
            if (trims_payload && has_room && hdr.bth.isValid() && !hdr.nic_shim.isValid()) {
                trim.apply(hdr, meta, standard_metadata, wire_bytes);
            } else {
                drop.apply(DropReason_t.QUEUE_LIMIT, meta, standard_metadata);
            }
        }
    }
}

#endif
