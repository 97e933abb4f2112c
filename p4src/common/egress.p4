// SPDX-License-Identifier: Apache-2.0
// Egress of every program: queue accounts, counters, path tag.
#ifndef COMMON_EGRESS_P4
#define COMMON_EGRESS_P4
#include "common/port_counters.p4"
#include "common/queues.p4"

// Mixes the port of each hop between switches into six bits that the invariant CRC of RoCEv2 does not cover, so that
// a receiver can see when a flow changes its path. 13 is odd, so no information of earlier hops is lost. All paths over
// two switches have different tags if the first chooses among up to 4 adjoining ports, the second among up to 13. A
// change between two paths with the same tag is not seen; without a change of path, no change is seen.
control PathTag(in port_t port, inout bth_t bth) {
    apply {
        bth.path_tag = bth.path_tag * 13 + (bit<6>)(bit<9>)port;
    }
}

control CommonEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReleaseQueues() release_queues;
    CountOut() count_out;
    PathTag() path_tag;

    apply {
        release_queues.apply(meta.charge);
        count_out.apply(standard_metadata.egress_port);
        if (hdr.bth.isValid() && !meta.route.to_host) {
            path_tag.apply(standard_metadata.egress_port, hdr.bth);
        }
    }
}

#endif
