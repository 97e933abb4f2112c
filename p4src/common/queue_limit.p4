// SPDX-License-Identifier: Apache-2.0
// Tail drop of data by the program, so that the traffic manager never drops: packets dropped there would stay in the
// queue accounts (common/queues.p4) for ever. Limited: data, and control packets that LimitPort demotes to it.
#ifndef COMMON_QUEUE_LIMIT_P4
#define COMMON_QUEUE_LIMIT_P4
#include "common/control_limits.p4"
#include "common/drops.p4"
#include "common/queues.p4"

control QueueLimit(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                   out bit<32> queue_bytes) {
    LimitPort() limit_port;
    Drop() drop;
    QueueLoad() queue_load;
    bit<32> limit_bytes = 0;

    action set_queue_limit(@name("limit_bytes") bit<32> limit) {
        limit_bytes = limit;
    }
    // A limit of 0 means no limit.
    @name("queue_config")
    table queue_config {
        actions = { set_queue_limit; }
        default_action = set_queue_limit(0);
        size = 1;
    }

    apply {
        limit_port.apply(hdr, meta, standard_metadata);
        queue_config.apply();
        queue_load.apply(standard_metadata.egress_spec, queue_bytes);
        if (limit_bytes != 0 && standard_metadata.priority == PRIORITY_DATA
            && queue_bytes + standard_metadata.packet_length > limit_bytes) {
            drop.apply(DropReason_t.QUEUE_LIMIT, meta, standard_metadata);
        }
    }
}

#endif
