// SPDX-License-Identifier: Apache-2.0
// Detection of failed switches: RLB's Algorithm 2, executed at every recirculation.
//
//   in an interval: measures Rc_avg, the average recirculation count of all recirculated packets;
//                   and the port for which most of them wait
//   at its end:     Rc_avg > N_rc -> this port gets a strike; at its second strike, digest to the controller (l. 3-8)
//                   else          -> the strikes of all ports are removed (l. 12-15)
//
// An interval lasts t_rc (the delay of a recirculation), at least interval_ticks, and ends at the first recirculation
// after that. After twice this time, an interval of average 0 is over, too. On a digest the controller removes a path.
#ifndef RLB_FAILURE_P4
#define RLB_FAILURE_P4
#include "common/metadata.p4"
#include "rlb/config.p4"

const bit<8> FAILURE_STRIKES = 2;

// Written and read in ingress only.
@name("failure_started_ticks") register<ticks_t>(1) failure_started_ticks;  // of this interval
@name("failure_interval") register<bit<32>>(1) failure_interval;            // number of this interval
@name("failure_sum") register<bit<32>>(1) failure_sum;                      // recirculation counts in this interval
@name("failure_packets") register<bit<32>>(1) failure_packets;              // recirculations in this interval
@name("failure_busiest") register<bit<16>>(1) failure_busiest;              // port with the most of them
@name("failure_most") register<bit<32>>(1) failure_most;                    // its recirculations
@name("failure_calms") register<bit<32>>(1) failure_calms;                  // number of removals of all strikes
// Index: port. Recirculations of an earlier interval, and strikes from before the last removal, count as 0.
@name("port_interval") register<bit<32>>(PORTS) port_interval;  // interval of port_recirculations
@name("port_recirculations") register<bit<32>>(PORTS) port_recirculations;
@name("port_calms") register<bit<32>>(PORTS) port_calms;  // failure_calms at the last strike
@name("port_strikes") register<bit<8>>(PORTS) port_strikes;
@name("failures_found") counter(1, CounterType.packets) failures_found;

// Digest to the controller: the switch or link at this port has failed.
struct failure_alert_t {
    bit<16> port;
    bit<32> sum;          // Rc_avg = sum / packets
    bit<32> packets;
    bit<32> delay_ticks;  // t_rc
}

// Lines 3-15, at the end of an interval.
control Judge(in bit<8> most, in bit<32> delay_ticks, inout metadata_t meta) {
    apply {
        bit<32> sum;
        bit<32> packets;
        bit<32> calms;
        failure_sum.read(sum, 0);
        failure_packets.read(packets, 0);
        failure_calms.read(calms, 0);
        if ((bit<64>)sum > (bit<64>)most * (bit<64>)packets) {
            bit<16> port;
            bit<32> noted;
            bit<8> strikes;
            failure_busiest.read(port, 0);
            port_calms.read(noted, (bit<32>)port);
            port_strikes.read(strikes, (bit<32>)port);
            if (noted != calms) {
                strikes = 0;
            }
            strikes = strikes |+| 1;
            port_calms.write((bit<32>)port, calms);
            port_strikes.write((bit<32>)port, strikes);
            if (strikes == FAILURE_STRIKES) {
                failures_found.count(0);
                digest<failure_alert_t>(1, { port, sum, packets, delay_ticks });
            }
        } else {
            failure_calms.write(0, calms + 1);
        }
    }
}

// Line 2: a packet that waits for `port` is recirculated for the `count`-th time.
control NoteRecirculation(in port_t port, in bit<8> count) {
    apply {
        bit<32> interval;
        bit<32> noted;
        bit<32> waiting;
        bit<32> highest;
        bit<32> total;
        failure_sum.read(total, 0);
        failure_sum.write(0, total + (bit<32>)count);
        failure_packets.read(total, 0);
        failure_packets.write(0, total + 1);
        failure_interval.read(interval, 0);
        port_interval.read(noted, (bit<32>)port);
        port_recirculations.read(waiting, (bit<32>)port);
        if (noted != interval) {
            waiting = 0;
        }
        waiting = waiting + 1;
        port_interval.write((bit<32>)port, interval);
        port_recirculations.write((bit<32>)port, waiting);
        failure_most.read(highest, 0);
        if (waiting > highest) {
            failure_most.write(0, waiting);
            failure_busiest.write(0, (bit<16>)port);
        }
    }
}

control DetectFailure(in port_t port, in bit<8> count, in bit<32> delay_ticks, in ticks_t now_ticks,
                      in failure_config_t config, inout metadata_t meta) {
    Judge() judge;
    NoteRecirculation() note;

    apply {
        ticks_t started_ticks;
        bit<32> length_ticks = config.interval_ticks;
        if (delay_ticks > length_ticks) {
            length_ticks = delay_ticks;
        }
        failure_started_ticks.read(started_ticks, 0);
        if (started_ticks == 0 || LONG_AGO(now_ticks, started_ticks, (ticks_t)length_ticks)) {
            bit<32> interval;
            if (started_ticks != 0) {
                judge.apply(config.most, delay_ticks, meta);
            }
            if (LONG_AGO(now_ticks, started_ticks, 2 * (ticks_t)length_ticks)) {
                bit<32> calms;
                failure_calms.read(calms, 0);
                failure_calms.write(0, calms + 1);
            }
            failure_interval.read(interval, 0);
            failure_interval.write(0, interval + 1);
            failure_started_ticks.write(0, now_ticks);
            failure_sum.write(0, 0);
            failure_packets.write(0, 0);
            failure_most.write(0, 0);
        }
        note.apply(port, count);
    }
}

#endif
