// SPDX-License-Identifier: Apache-2.0
// RLB's parameters: action data of tables without keys, so that no P4 source contains a time, a rate or a threshold.
//
//   warning_config        set_warnings(...)        prediction of pauses, warnings by CNMs (§III-B.1); dt_ticks 0: none
//   recirculation_config  set_recirculation(...)   limits of recirculation in Algorithm 1 (§IV-B.1)
//   probe_config          set_probes(...)          RTTs of paths (§V); period_ticks 0: none
//   failure_config        set_failures(...)        Algorithm 2 (§IV-B.2); interval 0: off
#ifndef RLB_CONFIG_P4
#define RLB_CONFIG_P4
#include "common/metadata.p4"

control WarningConfig(out warning_config_t config) {
    // own_leaf        this switch's leaf number; LEAF_ALL: it is no leaf
    // threshold_alone 1: warn whenever a queue is above Q_th (§V); 0: also consider its growth (§III-B.1)
    // dt_ticks        shortest time between two samples of a queue
    // warn_bytes      Q_th: no warning while the queue is shorter
    // pause_bytes     Q_PFC: queue length at which PFC pauses
    // margin_ticks    warn if the queue is expected to reach Q_PFC within this time
    // valid_ticks     how long a warning is valid; also the limit for received ones
    // refresh_ticks   a warning that still applies is sent again after this time
    // first_session   clone session of port 0; the session of port p is first_session + p
    // upstream_group  multicast group of all ports to switches
    // first_relay     a warning for all leaves that comes in at port p is copied by the multicast group
    //                 first_relay + p (cnm.p4)
    // stay_ticks      a moved flow stays moved until it is idle for longer (stay.p4); 0: each packet is decided alone
    action set_warnings(@name("own_leaf") bit<16> own_leaf, @name("threshold_alone") bit<1> threshold_alone,
                        @name("dt_ticks") bit<32> dt_ticks,
                        @name("warn_bytes") bit<32> warn_bytes, @name("pause_bytes") bit<32> pause_bytes,
                        @name("margin_ticks") bit<32> margin_ticks, @name("valid_ticks") bit<32> valid_ticks,
                        @name("refresh_ticks") bit<32> refresh_ticks,
                        @name("first_session") bit<16> first_session,
                        @name("upstream_group") bit<16> upstream_group, @name("first_relay") bit<16> first_relay,
                        @name("stay_ticks") bit<32> stay_ticks) {
        config = { own_leaf, threshold_alone, dt_ticks, warn_bytes, pause_bytes, margin_ticks, valid_ticks,
                   refresh_ticks, first_session, upstream_group, first_relay, stay_ticks };
    }
    @name("warning_config")
    table warning_config {
        actions = { set_warnings; }
        default_action = set_warnings(LEAF_ALL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        size = 1;
    }
    apply {
        warning_config.apply();
    }
}

struct recirculation_config_t {
    bit<1>  dynamic;
    bit<1>  last_open;
    bit<8>  most;
    bit<16> room;
    bit<32> inflow;
    bit<32> usual_ticks;
    bit<32> trust_ticks;
}

control RecirculationConfig(out recirculation_config_t config) {
    // dynamic      1: only if the buffer has space (eq. 4, 5) and all delays do not exceed the gain (eq. 6); RLB*
    // last_open    path of a packet that may no longer recirculate; 0: p (§IV-B.1), 1: the next path without a warning
    // most         limit of recirculations for each packet; 0: no recirculation
    // room         limit of packets that recirculate at the same time, so that the target's queue does not overflow
    // inflow       (n - 1) * C of eq. 4 in bytes per tick, unsigned 16.16
    // usual_ticks  assumed delay of a recirculation if none was measured within trust_ticks
    action set_recirculation(@name("dynamic") bit<1> dynamic, @name("last_open") bit<1> last_open,
                             @name("most") bit<8> most, @name("room") bit<16> room, @name("inflow") bit<32> inflow,
                             @name("usual_ticks") bit<32> usual_ticks, @name("trust_ticks") bit<32> trust_ticks) {
        config = { dynamic, last_open, most, room, inflow, usual_ticks, trust_ticks };
    }
    @name("recirculation_config")
    table recirculation_config {
        actions = { set_recirculation; }
        default_action = set_recirculation(0, 0, 0, 0, 0, 0, 0);
        size = 1;
    }
    apply {
        recirculation_config.apply();
    }
}

struct probe_config_t {
    bit<32> period_ticks;
    bit<32> keep_ticks;
}

control ProbeConfig(out probe_config_t config) {
    // period_ticks  each path gets one stamp in this time
    // keep_ticks    an RTT that was measured longer ago counts as not known
    action set_probes(@name("period_ticks") bit<32> period_ticks, @name("keep_ticks") bit<32> keep_ticks) {
        config = { period_ticks, keep_ticks };
    }
    @name("probe_config")
    table probe_config {
        actions = { set_probes; }
        default_action = set_probes(0, 0);
        size = 1;
    }
    apply {
        probe_config.apply();
    }
}

struct failure_config_t {
    bit<32> interval_ticks;
    bit<8>  most;
}

control FailureConfig(out failure_config_t config) {
    // interval_ticks  averages are taken over t_rc (the delay of a recirculation), or over this time if it is longer
    // most            N_rc: the average number of recirculations above which a failure is assumed
    action set_failures(@name("interval_ticks") bit<32> interval_ticks, @name("most") bit<8> most) {
        config = { interval_ticks, most };
    }
    @name("failure_config")
    table failure_config {
        actions = { set_failures; }
        default_action = set_failures(0, 0);
        size = 1;
    }
    apply {
        failure_config.apply();
    }
}

#endif
