// SPDX-License-Identifier: Apache-2.0
// Predicts from a port's ingress queue and its derivative that the port will be paused (RLB §III-B.1). q: bytes in this
// queue; Q_th: threshold of warnings (warn_bytes); Q_PFC: threshold of pauses (pause_bytes).
//
//   ingress end, a packet of port P   every dt_ticks: q > previous sample, q >= Q_th,
//                                     (Q_PFC - q) / (dq / elapsed) <= margin   -> sends a warning by P, again
//                                                                                every refresh_ticks
//                 or, if threshold_alone (§V): q > Q_th                        -> the same
//   egress start, a packet of port P  warned and q < Q_th                      -> withdraws the warning (eq. 2)
//                                     warned and q >= Q_PFC: P is paused       -> sends it again, as above
//
// With the derivative, no warning begins while the queue drains. A warning ends at Q_th, or if it is not renewed in time.
// v1model has no division, so products are compared.
#ifndef RLB_PREDICTOR_P4
#define RLB_PREDICTOR_P4
#include "common/queues.p4"
#include "rlb/config.p4"
#include "rlb/sizes.p4"

// Index: ingress port. The last sample; written and read in ingress only.
@name("sample_ticks") register<ticks_t>(PORTS) sample_ticks;
@name("sample_bytes") register<bit<32>>(PORTS) sample_bytes;
// When this switch last sent a warning for the port; 0: no warning. Written by ingress (new ones) and egress (renewal,
// withdrawal). On BMv2 these are different threads; if a write is lost, the next sample warns again, or the warning ends.
@name("own_warning_ticks") register<ticks_t>(PORTS) own_warning_ticks;
@name("warnings_sent") counter(PATH_PORTS, CounterType.packets) warnings_sent;            // index: port
@name("warnings_withdrawn") counter(PATH_PORTS, CounterType.packets) warnings_withdrawn;  // index: port

// Whether the queue will reach Q_PFC within the margin, at the rate of growth since the last sample.
control WillPause(in bit<32> bytes, in bit<32> bytes_before, in bit<32> elapsed_ticks, in warning_config_t config,
                  out bool will_pause) {
    apply {
        bit<64> missing = (bit<64>)(config.pause_bytes |-| bytes);
        will_pause = bytes >= config.warn_bytes && bytes > bytes_before
            && missing * (bit<64>)elapsed_ticks <= (bit<64>)config.margin_ticks * (bit<64>)(bytes - bytes_before);
    }
}

// Applied after the packet's bytes were added to the queue accounts (charged: common/queues.p4).
control Predict(in port_t port, in ticks_t now_ticks, in warning_config_t config, out bool warns) {
    SourceLoad() source_load;  // bytes that came in at a port and still wait
    WillPause() will_pause;

    apply {
        bit<32> bytes;
        ticks_t sampled_ticks;
        source_load.apply(port, bytes);
        warns = config.threshold_alone == 1 && bytes > config.warn_bytes;
        sample_ticks.read(sampled_ticks, (bit<32>)port);
        if (config.threshold_alone == 0 && LONG_AGO(now_ticks, sampled_ticks, (ticks_t)(config.dt_ticks - 1))) {
            bit<32> bytes_before;
            bit<32> elapsed_ticks = LONGEST_TICKS;
            if (now_ticks - sampled_ticks < (ticks_t)LONGEST_TICKS) {
                elapsed_ticks = (bit<32>)(now_ticks - sampled_ticks);
            }
            sample_bytes.read(bytes_before, (bit<32>)port);
            sample_bytes.write((bit<32>)port, bytes);
            sample_ticks.write((bit<32>)port, now_ticks);
            will_pause.apply(bytes, bytes_before, elapsed_ticks, config, warns);
        }
        if (warns) {
            ticks_t warned_ticks;
            own_warning_ticks.read(warned_ticks, (bit<32>)port);
            if (warned_ticks != 0 && !LONG_AGO(now_ticks, warned_ticks, (ticks_t)config.refresh_ticks)) {
                warns = false;  // the last warning is not older than refresh_ticks
            } else {
                own_warning_ticks.write((bit<32>)port, now_ticks);
                warnings_sent.count((bit<32>)port);
            }
        }
    }
}

// What the switch does about a warning that it has sent.
enum bit<2> WarningChange_t {
    NONE     = 0,
    AGAIN    = 1,
    WITHDRAW = 2
}

// Applied after the packet's bytes were subtracted from the queue accounts.
control Review(in port_t port, in ticks_t now_ticks, in warning_config_t config, out WarningChange_t change) {
    SourceLoad() source_load;

    apply {
        ticks_t warned_ticks;
        change = WarningChange_t.NONE;
        own_warning_ticks.read(warned_ticks, (bit<32>)port);
        if (warned_ticks != 0) {
            bit<32> bytes;
            source_load.apply(port, bytes);
            if (bytes < config.warn_bytes) {
                change = WarningChange_t.WITHDRAW;
                own_warning_ticks.write((bit<32>)port, 0);
                warnings_withdrawn.count((bit<32>)port);
            } else if (bytes >= config.pause_bytes
                       && LONG_AGO(now_ticks, warned_ticks, (ticks_t)config.refresh_ticks)) {
                change = WarningChange_t.AGAIN;
                own_warning_ticks.write((bit<32>)port, now_ticks);
                warnings_sent.count((bit<32>)port);
            }
        }
    }
}

#endif
