/* What Python calls of the benchmarks in C.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Python reads this file, too (toolchain/headers.py): nothing but declarations
 * and #define NAME NUMBER.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "tr_switch.h"

/* ---- loop.c ---- */

int64_t tr_bench_loop(tr_switch *s, uint32_t port, const uint8_t *frames,
                      const uint32_t *lens, uint32_t n_frames,
                      uint64_t packets, uint64_t *now_ps, uint64_t *sent);

/* ---- lookup.c ---- */

#define BENCH_KEY_BYTES 13u   /* of a table's entries; keys of packets have 16 */

typedef struct bench_table bench_table;

bench_table *bench_table_new(int ranges, uint32_t max_size);
void bench_table_free(bench_table *b);
int bench_table_add(bench_table *b, const uint8_t *key, const uint8_t *mask,
                    int32_t priority, uint64_t *ns);
int bench_table_remove(bench_table *b, int handle, uint64_t *ns);
uint64_t bench_table_look_up(const bench_table *b, const uint8_t *keys,
                             uint32_t n_keys, uint64_t lookups,
                             uint64_t *hits);
uint64_t bench_table_scan(const bench_table *b, const uint8_t *keys,
                          uint32_t n_keys, uint64_t lookups, uint64_t *hits);

/* ---- fabric.c ---- */

#define BENCH_ROOM 256u       /* longest frame that is carried on */
#define BENCH_NO_SWITCH 0xffffffffu  /* the far end of a link to a host */

typedef struct bench_end {
    uint32_t node, port;
} bench_end;

/* A host's port: its frames, sent in turn. */
typedef struct bench_source {
    uint32_t node, port;
    uint32_t first, count;    /* its templates */
    uint32_t at;              /* the one that is sent next */
    uint64_t next_ps, interval_ps;
} bench_source;

typedef struct bench_fabric bench_fabric;

bench_fabric *bench_fabric_new(tr_switch *const *cores, const bench_end *ends,
                               uint32_t n_nodes, bench_source *sources,
                               uint32_t n_sources, const uint8_t *frames,
                               const uint32_t *lens, const uint32_t *virts);
void bench_fabric_free(bench_fabric *f);
int64_t bench_fabric_run(bench_fabric *f, uint64_t until_ps,
                         uint64_t window_ps);
void bench_fabric_read(const bench_fabric *f, uint64_t *hops,
                       uint64_t *delivered);

/* ---- reflect.c ---- */

typedef struct bench_reflector bench_reflector;

/* A thread that sends on one interface what comes in by another; NULL. */
bench_reflector *bench_reflect_start(const char *rx_name, const char *tx_name);
void bench_reflect_stop(bench_reflector *r);

/* ---- closed_loop.c ---- */

/* What to do. */
typedef struct bench_load {
    const char *tx_name, *rx_name;
    const uint8_t *headers;   /* flows times HEADER_BYTES */
    uint32_t flows;           /* used in turn */
    uint32_t frame_bytes;     /* HEADER_BYTES + 16 at least, 1514 at most */
    uint32_t window;          /* packets in flight */
    uint64_t warm_up_ns;      /* not counted */
    uint64_t measure_ns;
} bench_load;

/* What came of it; errno of the call that failed in error, else 0. */
typedef struct bench_result {
    uint64_t packets;         /* received while measuring */
    uint64_t elapsed_ns;
    uint64_t lost;
    uint64_t p50_ns, p99_ns, max_ns;
    uint64_t error;
} bench_result;

/* Returns 0, or -1 with out->error. */
int bench_closed_loop(const bench_load *load, bench_result *out);

#endif
