// SPDX-License-Identifier: Apache-2.0
// Last blocks of ingress, when the egress port is known: virtual channel, ECN, TTL, queue accounts. Programs that
// define KNOWS_CHANNELS have virtual channels (common/channels.p4).
#ifndef COMMON_TRANSMIT_P4
#define COMMON_TRANSMIT_P4
#include "common/hop_limit.p4"
#include "common/queues.p4"
#include "common/red.p4"
#ifdef KNOWS_CHANNELS
#include "common/channels.p4"
#endif

// `wire_bytes`: the length that is charged to the queues; the received length, unless the packet was truncated.
control Finish(in bit<32> wire_bytes, in bit<32> queue_bytes, inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Red() red;
    ChargeQueues() charge_queues;
#ifdef KNOWS_CHANNELS
    Channel() channel;
#endif

    apply {
#ifdef KNOWS_CHANNELS
        channel.apply(hdr, meta, standard_metadata);
        if (meta.kind == PacketKind_t.NONE) {
            return;
        }
#endif
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            red.apply(queue_bytes, hdr.ipv4);
        }
        port_t in_port = standard_metadata.ingress_port;
        if (standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
            in_port = (port_t)(bit<9>)SpecialPort_t.MIRROR;
        }
        charge_queues.apply(wire_bytes, in_port, standard_metadata.egress_spec, meta.charge);
    }
}

#endif
