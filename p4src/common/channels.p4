// SPDX-License-Identifier: Apache-2.0
// Virtual channels: what PFC needs so that it cannot deadlock where paths make circles, as in a Dragonfly and a Slim Fly
// (Dally and Seitz 1987; Flowcut §III-C4 and Spritz §V-A have such networks).
//
//   channel_config   -> set_channels(first_ttl, last)      first_ttl 0: there are none
//
// A packet of data waits with a priority that is one higher at each switch, so it waits for what has come farther than
// itself, and nobody waits in a circle, whatever path it takes. How many links between switches it has passed is told by
// its TTL, which the switch of its source sets: a host that says another one would be in another channel.
//
//   links passed     0 (from a host)     1     2     ...    last
//   priority               0             1     2            last, to hosts only     7: control packets
//
// What has passed more links is dropped, as one whose TTL has run out. The last block of ingress but for the accounts,
// for until there all data have PRIORITY_DATA. Only for programs that define KNOWS_CHANNELS.
// DEVIATION: channels are priorities of PFC, each with thresholds of its own; the papers' simulators count credits.
#ifndef COMMON_CHANNELS_P4
#define COMMON_CHANNELS_P4
#include "common/drops.p4"

control Channel(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Drop() drop;
    bit<8> first = 0;
    bit<8> most = 0;

    action set_channels(@name("first_ttl") bit<8> first_ttl, @name("last") bit<8> last) {
        first = first_ttl;
        most = last;
    }
    @name("channel_config")
    table channel_config {
        actions = { set_channels; }
        default_action = set_channels(0, 0);
        size = 1;
    }
    apply {
        channel_config.apply();
        if (first != 0 && hdr.ipv4.isValid()) {
            if (meta.from_host) {
                hdr.ipv4.ttl = first;
            }
            bit<8> passed = first |-| hdr.ipv4.ttl;
            if (standard_metadata.priority == PRIORITY_DATA) {
                standard_metadata.priority = (bit<3>)passed;
                if (passed > most) {
                    drop.apply(DropReason_t.TTL_EXPIRED, meta, standard_metadata);
                }
            }
        }
    }
}

#endif
