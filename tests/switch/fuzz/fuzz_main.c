/* Fuzz driver: one compiled program, mutated and random frames, virtual time.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   fuzz FRAMES SEED [STORY]
 *
 * Built with the runtime's sources, one generated program and the address and
 * undefined-behaviour sanitizers, which end the run at the first report. On
 * success it prints one line, the last field a hash of all that was sent:
 *
 *   frames=N controls=N sent=N dropped=N trace=HEX
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

extern const tr_program tr_program_entry;

/* One frame in so many finds the program loaded afresh; meets a new switch, so
 * that ports which random settings have brought to a halt do not stay so. */
#define LOAD_EVERY 1500u
#define NEW_EVERY 4000u

int main(int argc, char **argv)
{
    static fuzz_run run;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: fuzz FRAMES SEED [STORY]\n");
        return 2;
    }
    uint64_t frames = strtoull(argv[1], NULL, 0);
    run.rng.state = strtoull(argv[2], NULL, 0) | 1ULL << 63;
    run.trace = 0xcbf29ce484222325ULL;
    run.story = fuzz_story_read(argc == 4 ? argv[3] : NULL);
    fuzz_frames_init(&run.frames, &run.rng, &run.story);
    for (uint64_t i = 0; i < frames; i++) {
        if (i % NEW_EVERY == 0)
            fuzz_run_begin(&run);
        else if (i % LOAD_EVERY == 0 &&
                 tr_switch_load(run.s, &tr_program_entry) != TR_OK)
            return 1;
        fuzz_run_step(&run);
    }
    fuzz_run_end(&run);
    printf("frames=%" PRIu64 " controls=%" PRIu64 " sent=%" PRIu64
           " dropped=%" PRIu64 " trace=%016" PRIx64 "\n",
           frames, run.controls, run.sent, run.dropped, run.trace);
    return 0;
}
