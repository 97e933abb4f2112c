// SPDX-License-Identifier: Apache-2.0
// Packet trimming (Spritz §II-B, §IV-C): if the egress queue has no room for a RoCE data packet, only its headers are
// forwarded, with priority over data, and the receiver requests a retransmission at once.
//
//   +----------+--------+------+-----+-----+- - - - - - -+
//   | Ethernet | [VLAN] | IPv4 | UDP | BTH | payload, ICRC        54 bytes remain, 58 with a tag
//   +----------+--------+------+-----+-----+- - - - - - -+
//        IPv4: DSCP TRIMMED, total length 40; UDP: length 20, checksum 0
//
//   queue_config  -> set_queue_limit(limit_bytes) | set_queue_trim(limit_bytes)      0: no limit
//   trim_limits   egress_port -> limit_trims()      limits the rate of trimmed short packets; each entry has a meter
// For programs that trim; the others use QueueLimit (common/queue_limit.p4).
#ifndef COMMON_TRIM_P4
#define COMMON_TRIM_P4
#include "common/control_limits.p4"
#include "common/drops.p4"
#include "common/queues.p4"

const bit<16> TRIMMED_UDP_BYTES  = 8 + 12;  // UDP and BTH
const bit<16> TRIMMED_IPV4_BYTES = IPV4_BYTES + TRIMMED_UDP_BYTES;
const bit<32> TRIMMED_BYTES      = ETHERNET_BYTES + (bit<32>)TRIMMED_IPV4_BYTES;
const bit<32> VLAN_BYTES         = 4;

// Trimming leaves at most a tenth of a packet of this length or longer. Trimming of shorter packets is limited in rate:
// headers have priority over data, so a host with only short packets would get priority for most of its bytes.
const bit<32> TRIM_FREE_BYTES    = 10 * TRIMMED_BYTES;

@name("trims") counter(1, CounterType.packets_and_bytes) trims;

// A trimmed packet must not wait behind data. Only switches set its DSCP: spritz/host_marks.p4 removes hosts' marks.
control PrioritiseTrimmed(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.bth.isValid() && hdr.ipv4.total_len == TRIMMED_IPV4_BYTES
            && (hdr.ipv4.dscp == Dscp_t.TRIMMED || hdr.ipv4.dscp == Dscp_t.TRIMMED_STEERED)) {
            meta.kind = PacketKind_t.TRIMMED;
            standard_metadata.priority = PRIORITY_CONTROL;
        }
    }
}

// Whether a data packet for which the queue has no room may be trimmed.
control MayTrim(in port_t egress_port, in headers_t hdr, in metadata_t meta, in bit<32> wire_bytes, out bool may_trim) {
    direct_meter<bit<2>>(MeterType.bytes) short_trims;
    bit<2> colour = 0;

    action limit_trims() {
        short_trims.read(colour);
    }
    action no_trim_limit() {
        short_trims.read(colour);
    }
    @name("trim_limits")
    table trim_limits {
        key = { egress_port : exact @name("egress_port"); }
        actions = { limit_trims; no_trim_limit; }
        const default_action = no_trim_limit();
        meters = short_trims;
        size = 512;
    }
    apply {
        // Packets with a Flowcut NIC's shim are not trimmed: the receiving NIC needs the payload's length.
        may_trim = meta.kind == PacketKind_t.DATA && hdr.bth.isValid() && !hdr.nic_shim.isValid();
        if (may_trim && wire_bytes < TRIM_FREE_BYTES) {
            trim_limits.apply();
            may_trim = colour == 0;  // green: within the rate
        }
    }
}

// Truncates a RoCE packet after its BTH. `wire_bytes`: its new length.
control Trim(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
             inout bit<32> wire_bytes) {
    apply {
        trims.count(0);
        wire_bytes = TRIMMED_BYTES;
        if (hdr.vlan.isValid()) {
            wire_bytes = TRIMMED_BYTES + VLAN_BYTES;
        }
        truncate(wire_bytes);
        if (IS_STEERED(hdr.ipv4.dscp)) {
            hdr.ipv4.dscp = Dscp_t.TRIMMED_STEERED;
        } else {
            hdr.ipv4.dscp = Dscp_t.TRIMMED;
        }
        hdr.ipv4.total_len = TRIMMED_IPV4_BYTES;
        hdr.udp.length = TRIMMED_UDP_BYTES;
        hdr.udp.checksum = 0;  // it covered the payload (RFC 768: 0 means no checksum)
        meta.kind = PacketKind_t.TRIMMED;
        standard_metadata.priority = PRIORITY_CONTROL;
    }
}

// The egress queue's limit for data. Packets trimmed here may fill the queue up to twice the limit; above that, data is
// dropped. The traffic manager needs space for twice the limit, as the queue accounts do not see its drops. (In htsim,
// the paper's simulator, the queue of headers alone may have twice the limit.) Other control packets are not limited.
// DEVIATION: the accounts are for ports, not for queues, so waiting control packets take space from data.
// `wire_bytes`: see Finish (common/transmit.p4). `queue_bytes`: bytes that wait for the port, without this packet.
control TrimAtLimit(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                    inout bit<32> wire_bytes, out bit<32> queue_bytes) {
    LimitPort() limit_port;
    MayTrim() may_trim;
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
        limit_port.apply(hdr, meta, standard_metadata);
        queue_config.apply();
        queue_load.apply(standard_metadata.egress_spec, queue_bytes);
        if (limit_bytes != 0 && standard_metadata.priority == PRIORITY_DATA
            && (bit<33>)queue_bytes + (bit<33>)wire_bytes > (bit<33>)limit_bytes) {
            bool is_trimmed = false;
            if (trims_payload && (bit<34>)queue_bytes + (bit<34>)TRIMMED_BYTES <= 2 * (bit<34>)limit_bytes) {
                may_trim.apply(standard_metadata.egress_spec, hdr, meta, wire_bytes, is_trimmed);
            }
            if (is_trimmed) {
                trim.apply(hdr, meta, standard_metadata, wire_bytes);
            } else {
                drop.apply(DropReason_t.QUEUE_LIMIT, meta, standard_metadata);
            }
        }
    }
}

#endif
