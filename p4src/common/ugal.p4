// SPDX-License-Identifier: Apache-2.0
// UGAL-L (Kim et al. 2008; Spritz §V-A): takes the minimal path if q_min * h_min <= q_val * h_val. q: bytes in this
// switch's queue; h: the path's links; val: the detour (Valiant). 40 bits suffice for queues of 4 GiB and 255 links.
#ifndef COMMON_UGAL_P4
#define COMMON_UGAL_P4
#include "common/queues.p4"

control UgalL(in port_t minimal_port, in bit<8> minimal_links, in port_t detour_port, in bit<8> detour_links,
              out bool takes_detour) {
    QueueLoad() minimal_load;
    QueueLoad() detour_load;

    apply {
        bit<32> minimal_bytes;
        bit<32> detour_bytes;
        minimal_load.apply(minimal_port, minimal_bytes);
        detour_load.apply(detour_port, detour_bytes);
        takes_detour = (bit<40>)minimal_bytes * (bit<40>)minimal_links > (bit<40>)detour_bytes * (bit<40>)detour_links;
    }
}

#endif
