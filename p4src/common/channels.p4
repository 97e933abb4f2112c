// SPDX-License-Identifier: Apache-2.0
// Virtual channels: they prevent deadlocks of PFC where paths form cycles, as in a Dragonfly and a Slim Fly
// (Dally and Seitz 1987; Flowcut §III-C4 and Spritz §V-A have such networks).
//
//   channel_config   -> set_channels(first_ttl, last)      first_ttl 0: no virtual channels
//
// The priority of a data packet increases by one at each switch. So a packet only waits for packets that have passed
// more links, and no cycle of waiting can arise on any path. The TTL shows how many links between switches a packet
// has passed. The first switch sets it to first_ttl, since a host could choose another channel by its TTL.
//
//   links passed     0 (from a host)     1     2     ...    last
//   priority               0             1     2     ...    last: only to a host    (7: control packets)
//
// A packet that has passed more links is dropped with the reason TTL_EXPIRED. Programs with KNOWS_CHANNELS apply this
// block at the end of ingress, before the queue accounts, since all earlier blocks expect data at PRIORITY_DATA.
// DEVIATION: channels are PFC priorities, each with separate thresholds; the papers' simulators count credits.
#ifndef COMMON_CHANNELS_P4
#define COMMON_CHANNELS_P4
#include "common/drops.p4"

control Channel(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Drop() drop;
    bit<8> initial_ttl = 0;
    bit<8> last_channel = 0;

    action set_channels(@name("first_ttl") bit<8> first_ttl, @name("last") bit<8> last) {
        initial_ttl = first_ttl;
        last_channel = last;
    }
    @name("channel_config")
    table channel_config {
        actions = { set_channels; }
        default_action = set_channels(0, 0);
        size = 1;
    }
    apply {
        channel_config.apply();
        if (initial_ttl != 0 && hdr.ipv4.isValid()) {
            if (meta.from_host) {
                hdr.ipv4.ttl = initial_ttl;
            }
            bit<8> channel = initial_ttl |-| hdr.ipv4.ttl;
            if (standard_metadata.priority == PRIORITY_DATA) {
                standard_metadata.priority = (bit<3>)channel;
                if (channel > last_channel) {
                    drop.apply(DropReason_t.TTL_EXPIRED, meta, standard_metadata);
                }
            }
        }
    }
}

#endif
