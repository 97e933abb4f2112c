// SPDX-License-Identifier: Apache-2.0
// ECN marking by RED on the length of the egress queue: never below Kmin, always above Kmax, in between with a
// probability that increases linearly from 0 to pmax.
#ifndef COMMON_RED_P4
#define COMMON_RED_P4
#include "common/headers.p4"

control Red(in bit<32> queue_bytes, inout ipv4_header_t ipv4) {
    bit<32> kmin_bytes = 0;
    bit<32> kmax_bytes = 0;
    bit<16> pmax_permille = 0;

    action set_red(@name("kmin_bytes") bit<32> kmin, @name("kmax_bytes") bit<32> kmax,
                   @name("pmax_permille") bit<16> pmax) {
        kmin_bytes = kmin;
        kmax_bytes = kmax;
        pmax_permille = pmax;
    }
    // kmax 0: no marking.
    @name("red_config")
    table red_config {
        actions = { set_red; }
        default_action = set_red(0, 0, 0);
        size = 1;
    }

    apply {
        red_config.apply();
        if (kmax_bytes != 0 && ipv4.ecn != 0 && queue_bytes > kmin_bytes) {
            if (queue_bytes >= kmax_bytes) {
                ipv4.ecn = 3;
            } else {
                // P(mark) = pmax * (load - kmin) / (kmax - kmin). Without a division: a random number from 0 to
                // 1000 * (kmax - kmin) - 1 is less than pmax (in permille) * (load - kmin) with this probability.
                bit<64> point;
                random(point, 64w0, 1000 * (bit<64>)(kmax_bytes - kmin_bytes) - 1);
                if (point < (bit<64>)pmax_permille * (bit<64>)(queue_bytes - kmin_bytes)) {
                    ipv4.ecn = 3;
                }
            }
        }
    }
}

#endif
