/* The C functions of the benchmarks, which Python calls.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Python parses this file (cbuild/headers.py), so it may contain only
 * declarations and #define NAME NUMBER.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "tr_switch.h"

/* ---- loop.c ---- */

int64_t tr_bench_loop(tr_switch *s, uint32_t port, const uint8_t *frames,
                      const uint32_t *lens, uint32_t n_frames,
                      uint64_t packets, uint64_t *now_ps, uint64_t *n_out);

/* ---- reflect.c ---- */

typedef struct bench_reflector bench_reflector;

/* Starts a thread that sends on interface tx_name what rx_name receives.
 * Returns NULL on failure. */
bench_reflector *bench_reflect_start(const char *rx_name, const char *tx_name);
void bench_reflect_stop(bench_reflector *r);

/* ---- closed_loop.c ---- */

/* The load to generate. */
typedef struct bench_load {
    const char *tx_name, *rx_name;
    const uint8_t *headers;   /* Ethernet, IPv4, UDP: 42 bytes per flow */
    uint32_t flows;           /* number of flows, used in turn */
    uint32_t frame_bytes;     /* from 58 to 1514 */
    uint32_t window;          /* packets kept in flight */
    uint64_t warm_up_ns;      /* time before the measurement */
    uint64_t measure_ns;      /* duration of the measurement */
    uint64_t *bins;           /* result: packets by latency bin */
    uint32_t n_bins;          /* the last bin also counts longer latencies */
} bench_load;

/* The outcome; error is the errno of the call that failed, else 0. */
typedef struct bench_result {
    uint64_t packets;         /* packets received while measuring */
    uint64_t elapsed_ns;
    uint64_t lost;            /* packets that did not come back */
    uint64_t error;
} bench_result;

/* Returns 0, or -1 with out->error. */
int bench_closed_loop(const bench_load *load, bench_result *out);

#endif
