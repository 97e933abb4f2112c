/* Parts of the fuzz driver: random numbers, frames, control calls.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is drawn from one seeded generator, so that a seed names a run:
 * the same program, seed and number of frames give the same trace hash, and a
 * report of the sanitizers can be repeated.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>

#include "tr_core.h"

/* Longest frame, jumbo frames as data centres use them. */
#define FUZZ_MAX_FRAME 9216u
/* Frames kept as the stock from which mutants are made. */
#define FUZZ_STOCK 64u

typedef struct fuzz_rng {
    uint64_t state;           /* never 0 */
} fuzz_rng;

typedef struct fuzz_frame {
    uint32_t len;
    uint8_t data[FUZZ_MAX_FRAME];
} fuzz_frame;

typedef struct fuzz_frames {
    fuzz_rng *rng;
    fuzz_frame stock[FUZZ_STOCK];
} fuzz_frames;

/* The next number of rng (xorshift64*, Vigna 2016, "An experimental
 * exploration of Marsaglia's xorshift generators, scrambled"). */
uint64_t fuzz_next(fuzz_rng *rng);
/* Uniform enough in [0, n), n > 0. */
uint64_t fuzz_below(fuzz_rng *rng, uint64_t n);
/* Fills n bytes. */
void fuzz_bytes(fuzz_rng *rng, uint8_t *out, uint32_t n);

/* Fills the stock with well-formed frames of common protocols. */
void fuzz_frames_init(fuzz_frames *f, fuzz_rng *rng);
/* A random frame, or a mutant of the stock, into out. */
void fuzz_frame_make(fuzz_frames *f, fuzz_frame *out);
/* Adds a frame that the switch has sent to the stock: what it builds is what
 * it parses, so the mutants reach deeper into the program. */
void fuzz_frame_learn(fuzz_frames *f, const uint8_t *data, uint32_t len);

/* One random control call on s: tables, profiles, externs, replication,
 * queues. Arguments are often right, sometimes out of range; the results are
 * of no interest, only that nothing breaks. */
void fuzz_control(tr_switch *s, fuzz_rng *rng, uint64_t now_ns);

#endif
