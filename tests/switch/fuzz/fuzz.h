/* Parts of the fuzz drivers: choices, frames, control calls, a run of a switch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is drawn from one source of choices. It is a seeded generator
 * (fuzz_main.c), so that a seed names a run: the same program, seed and number
 * of frames give the same trace hash. Or it is an input (fuzz_cover.c), whose
 * bytes are the choices: what coverage guides is then the same generator.
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
    uint64_t state;           /* of the generator, never 0 */
    const uint8_t *at, *end;  /* the input, or NULL */
} fuzz_rng;

typedef struct fuzz_frame {
    uint32_t len;
    uint8_t data[FUZZ_MAX_FRAME];
} fuzz_frame;

typedef struct fuzz_frames {
    fuzz_rng *rng;
    uint32_t kept;            /* of the stock: these stay */
    fuzz_frame stock[FUZZ_STOCK];
} fuzz_frames;

/* What a controller and hosts did to a switch in a run, as stories.py wrote it:
 * records, each a kind, a length of two bytes, and so many bytes, which are a
 * frame, or numbers of four bytes and data (fuzz_story.c). Numbers stand in the
 * order of little-endian machines. */
enum fuzz_kind { FUZZ_FRAME, FUZZ_INSERT, FUZZ_DEFAULT, FUZZ_MEMBER, FUZZ_GROUP,
                 FUZZ_MULTICAST, FUZZ_CLONE };

typedef struct fuzz_story {
    const uint8_t *at, *end;
} fuzz_story;

typedef struct fuzz_record {
    uint32_t kind;            /* enum fuzz_kind */
    uint32_t len;
    const uint8_t *data;
} fuzz_record;

/* One switch, from its making on. */
typedef struct fuzz_run {
    tr_switch *s;
    fuzz_rng rng;
    fuzz_frames frames;
    fuzz_story story;
    uint64_t now_ps, steps, controls, sent, dropped, trace, logged;
} fuzz_run;

/* The next number: xorshift64* (Vigna 2016, "An experimental exploration of
 * Marsaglia's xorshift generators, scrambled"), or eight bytes of the input. */
uint64_t fuzz_next(fuzz_rng *rng);
/* Uniform enough in [0, n), n > 0; of an input as few bytes as will do. */
uint64_t fuzz_below(fuzz_rng *rng, uint64_t n);
/* Fills n bytes. Behind its end an input is zeros. */
void fuzz_bytes(fuzz_rng *rng, uint8_t *out, uint32_t n);

/* The file of a story, which stays in memory; NULL: an empty one. */
fuzz_story fuzz_story_read(const char *path);
/* Takes its next record; 0 behind the last. */
int fuzz_story_next(fuzz_story *story, fuzz_record *out);
/* Does with s what the controller did. */
void fuzz_story_control(const fuzz_story *story, tr_switch *s);

/* Fills the stock with well-formed frames of common protocols, and with those
 * of the story. */
void fuzz_frames_init(fuzz_frames *f, fuzz_rng *rng, const fuzz_story *story);
/* A random frame, or a mutant of the stock, into out. */
void fuzz_frame_make(fuzz_frames *f, fuzz_frame *out);
/* Adds a frame that the switch has sent to the stock: what it builds is what
 * it parses, so the mutants reach deeper into the program. */
void fuzz_frame_learn(fuzz_frames *f, const uint8_t *data, uint32_t len);

/* One random control call on s: tables, profiles, externs, replication,
 * and, if so wanted, ports. Arguments are often right, sometimes out of range;
 * the results are of no interest, only that nothing breaks. */
void fuzz_control(tr_switch *s, fuzz_rng *rng, uint64_t now_ps, int ports);

/* A switch with settings of its own, as the controller of the story left it or
 * empty; it aborts where there is none. The one before is gone. */
void fuzz_run_begin(fuzz_run *r);
/* Perhaps a control call; then a frame, and what it leads to. It aborts when
 * the switch's accounts do not add up. */
void fuzz_run_step(fuzz_run *r);
void fuzz_run_end(fuzz_run *r);

#endif
