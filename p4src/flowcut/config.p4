// SPDX-License-Identifier: Apache-2.0
// Flowcut's parameters: action data of two tables without keys, so that no P4 source contains a time or a threshold.
#ifndef FLOWCUT_CONFIG_P4
#define FLOWCUT_CONFIG_P4
#include "common/types.p4"

// Variants of Flowcut (§II-C). The NIC-only variant is no mode of this program: it uses the ecmp program.
enum bit<8> FlowcutMode_t {
    OFF     = 0,
    INGRESS = 1,  // only the source's switch keeps state
    FULL    = 2   // every switch before the egress switch keeps state
}

// The path of a flow before the first of its packets is acknowledged (Flowcut §II-A).
enum bit<8> FirstPath_t {
    ECMP         = 0,
    LEAST_LOADED = 1
}

struct flowcut_config_t {
    FlowcutMode_t mode;
    FirstPath_t   first_path;
    bit<16>       bucket_mask;
    ticks_t       age_ticks;        // after this time without data, no packet of a flow is in the network
    bit<16>       rtt_threshold;    // unsigned 8.8: drain when the averaged normalised RTT is above it
    bit<16>       growth_threshold; // signed 8.8: drain when the averaged growth is above it
    bit<9>        alpha;            // weight of the newest sample, in 1/256
    bit<32>       ticks_per_byte;   // unsigned 16.16: the `t` of §II-B
    bit<8>        min_left;         // §IV-C: drain only if more packets of the message remain; 0 = always
    bit<32>       resume_bytes;     // §IV-C: resume when this much or less is in flight; 0 = nothing
}

control FlowcutConfig(out flowcut_config_t config) {
    action set_flowcut(@name("mode") FlowcutMode_t mode, @name("first_path") FirstPath_t first_path,
                       @name("bucket_mask") bit<16> bucket_mask, @name("age_ticks") ticks_t age_ticks) {
        config.mode = mode;
        config.first_path = first_path;
        config.bucket_mask = bucket_mask;
        config.age_ticks = age_ticks;
    }
    @name("flowcut_config")
    table flowcut_config {
        actions = { set_flowcut; }
        default_action = set_flowcut(FlowcutMode_t.OFF, FirstPath_t.ECMP, 0, 0);
        size = 1;
    }

    action set_drain(@name("rtt_threshold") bit<16> rtt_threshold,
                     @name("growth_threshold") bit<16> growth_threshold, @name("alpha") bit<9> alpha,
                     @name("ticks_per_byte") bit<32> ticks_per_byte, @name("min_left") bit<8> min_left,
                     @name("resume_bytes") bit<32> resume_bytes) {
        config.rtt_threshold = rtt_threshold;
        config.growth_threshold = growth_threshold;
        config.alpha = alpha;
        config.ticks_per_byte = ticks_per_byte;
        config.min_left = min_left;
        config.resume_bytes = resume_bytes;
    }
    // The default action never drains.
    @name("drain_config")
    table drain_config {
        actions = { set_drain; }
        default_action = set_drain(0xFFFF, 0x7FFF, 0, 0, 0, 0);
        size = 1;
    }

    apply {
        flowcut_config.apply();
        drain_config.apply();
    }
}

#endif
