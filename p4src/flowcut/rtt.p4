// SPDX-License-Identifier: Apache-2.0
// Normalised round-trip time (Flowcut §II-B): the measured RTT divided by the RTT of the same packet on an idle path
// with the same number h of hops: r / (r_min(h) + p*h*t). r_min: without transmission time; p: bytes; t: time per byte.
#ifndef FLOWCUT_RTT_P4
#define FLOWCUT_RTT_P4
#include "flowcut/table.p4"

control DivideStep(in bit<64> shifted, in bit<16> digit, inout bit<64> remainder, inout bit<16> quotient) {
    apply {
        if (remainder >= shifted) {
            remainder = remainder - shifted;
            quotient = quotient | digit;
        }
    }
}

// numerator / denominator as fixed-point 8.8, rounded down, at most 127.996, so that differences fit into 16 bits.
// v1model has no division at run time: this is long division, one step for each bit; the error is below 1/256.
control Ratio(in bit<32> numerator, in bit<32> denominator, out bit<16> ratio) {
    DivideStep() step;
    apply {
        bit<64> remainder = (bit<64>)numerator << 8;
        bit<64> divisor = (bit<64>)denominator;
        ratio = 0;
        if (remainder >= divisor << 15) {
            ratio = 0x7FFF;
        } else {
            step.apply(divisor << 14, 0x4000, remainder, ratio);
            step.apply(divisor << 13, 0x2000, remainder, ratio);
            step.apply(divisor << 12, 0x1000, remainder, ratio);
            step.apply(divisor << 11, 0x0800, remainder, ratio);
            step.apply(divisor << 10, 0x0400, remainder, ratio);
            step.apply(divisor << 9, 0x0200, remainder, ratio);
            step.apply(divisor << 8, 0x0100, remainder, ratio);
            step.apply(divisor << 7, 0x0080, remainder, ratio);
            step.apply(divisor << 6, 0x0040, remainder, ratio);
            step.apply(divisor << 5, 0x0020, remainder, ratio);
            step.apply(divisor << 4, 0x0010, remainder, ratio);
            step.apply(divisor << 3, 0x0008, remainder, ratio);
            step.apply(divisor << 2, 0x0004, remainder, ratio);
            step.apply(divisor << 1, 0x0002, remainder, ratio);
            step.apply(divisor, 0x0001, remainder, ratio);
        }
    }
}

// The RTT of an idle path for each number of links, if the controller gives it.
//
//   rtt_baseline   hops -> set_rtt_baseline(least, before)   least: RTT without transmission time, as r_min(h)
//                                                            before: time of the links of both hosts, which this
//                                                            switch does not measure; added to both RTTs
//
// DEVIATION: in §II-B, r_min(h) is always the smallest observed RTT; here only without such an entry.
control RttBaseline(in bit<4> hops, out bool known, out bit<32> least_ticks, out bit<32> before_ticks) {
    action set_rtt_baseline(@name("least_ticks") bit<32> least, @name("before_ticks") bit<32> before) {
        known = true;
        least_ticks = least;
        before_ticks = before;
    }
    action observe() {
        known = false;
        least_ticks = 0;
        before_ticks = 0;
    }
    @name("rtt_baseline")
    table rtt_baseline {
        key = { hops : exact @name("hops"); }
        actions = { set_rtt_baseline; observe; }
        const default_action = observe();
        size = HOP_COUNTS;
    }
    apply {
        rtt_baseline.apply();
    }
}

// Normalises an RTT, and updates r_min(h). `hops`: links between this switch and the egress switch. `net_ticks` and
// `min_ticks` are without transmission time. `ticks_per_byte`: unsigned 16.16.
control NormaliseRtt(in bit<32> rtt_ticks, in bit<4> hops, in bit<24> frame_bytes, in bit<32> ticks_per_byte,
                     out bit<16> normalised) {
    RttBaseline() rtt_baseline;
    Ratio() ratio;

    apply {
        bool known;
        bit<32> known_ticks;
        bit<32> before_ticks;
        bit<32> min_ticks;
        bit<64> wire = ((bit<64>)frame_bytes * (bit<64>)hops * (bit<64>)ticks_per_byte) >> 16;
        bit<32> transmission_ticks = wire[31:0];
        bit<32> net_ticks = 1;  // if links are faster than configured, the RTT may be below the transmission time
        if (rtt_ticks > transmission_ticks) {
            net_ticks = rtt_ticks - transmission_ticks;
        }
        rtt_min_ticks.read(min_ticks, (bit<32>)hops);
        if (min_ticks == 0 || net_ticks < min_ticks) {
            min_ticks = net_ticks;
            rtt_min_ticks.write((bit<32>)hops, min_ticks);
        }
        rtt_baseline.apply(hops, known, known_ticks, before_ticks);
        if (known) {
            min_ticks = known_ticks;
        }
        ratio.apply(net_ticks + transmission_ticks + before_ticks, min_ticks + transmission_ticks + before_ticks,
                    normalised);
    }
}

// Moving averages of the normalised RTT and of its growth: r = alpha*new + (1-alpha)*r (§III-C1); `alpha` in 1/256.
control AverageRtt(in bit<32> index, in bit<16> normalised, in bit<9> alpha,
                   out bit<16> average, out int<16> growth) {
    apply {
        bit<16> old_average;
        bit<16> last_rtt;
        bit<16> growth_bits;
        bit<8> samples;
        flow_rtt_avg.read(old_average, index);
        flow_rtt_last.read(last_rtt, index);
        flow_rtt_growth.read(growth_bits, index);
        flow_samples.read(samples, index);
        average = normalised;
        growth = 0;
        if (samples != 0) {
            // 128: half of the result's last bit, so that the shift rounds
            bit<32> mean = (bit<32>)alpha * (bit<32>)normalised + (bit<32>)(256 - alpha) * (bit<32>)old_average + 128;
            average = (mean >> 8)[15:0];
            int<32> old_growth = (int<32>)(int<16>)growth_bits;
            int<32> step = (int<32>)(bit<32>)normalised - (int<32>)(bit<32>)last_rtt;
            int<32> weight = (int<32>)(bit<32>)alpha;
            int<32> sum = weight * step + (256 - weight) * old_growth + 128;
            growth = (int<16>)(sum >> 8);
        }
        flow_rtt_avg.write(index, average);
        flow_rtt_last.write(index, normalised);
        flow_rtt_growth.write(index, (bit<16>)growth);
        flow_samples.write(index, samples |+| 1);
    }
}

#endif
