// SPDX-License-Identifier: Apache-2.0
// Flowcut's parameters, as action data of two keyless tables, so that no source holds a time or a threshold.
#ifndef FLOWCUT_CONFIG_P4
#define FLOWCUT_CONFIG_P4
#include "common/types.p4"

// Flowcut §II-C. NIC only is no mode of a switch: it runs over the ecmp program.
enum bit<8> FlowcutMode_t {
    OFF     = 0,
    INGRESS = 1,  // only the switch of the source keeps state
    FULL    = 2   // every switch before the egress switch does
}

// Where a flow goes before any of its packets was acknowledged (Flowcut §II-A).
enum bit<8> FirstPath_t {
    ECMP         = 0,
    LEAST_LOADED = 1
}

struct flowcut_config_t {
    FlowcutMode_t mode;
    FirstPath_t   first_path;
    bit<16>       bucket_mask;
    ticks_t       age_ticks;        // after so long without data nothing of a flow is in the network any more
    bit<16>       rtt_threshold;    // unsigned 8.8: drain when the averaged normalised RTT is above it
    bit<16>       growth_threshold; // signed 8.8: drain when the averaged growth is above it
    bit<9>        alpha;            // of 256: weight of the newest sample
    bit<32>       ticks_per_byte;   // unsigned 16.16: the `t` of §II-B
    bit<8>        min_left;         // §IV-C: packets that must be left for a drain to pay; 0 = any
    bit<32>       resume_bytes;     // §IV-C: resume when no more is in flight; 0 = when nothing is
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
    // Unless told otherwise, never drain.
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
