/* Fuzz target of libFuzzer: an input is the choices of one run of a switch,
 * which goes on for a while by a generator that the input seeds: to make a
 * switch costs as much as a hundred frames, and much is reached after many.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Built as fuzz_main.c is, but with clang and -fsanitize=fuzzer. FUZZ_STORY
 * names the file of a story (fuzz.h). At the end of the process a line goes to
 * the file that FUZZ_COUNTS names:
 *
 *   frames=N controls=N
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Frames behind those of the input. */
#define TAIL 500u

static fuzz_run run;

static void tell(void)
{
    const char *path = getenv("FUZZ_COUNTS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "frames=%" PRIu64 " controls=%" PRIu64 "\n", run.steps,
            run.controls);
    fclose(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    run.story = fuzz_story_read(getenv("FUZZ_STORY"));
    atexit(tell);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run.rng.at = data;
    run.rng.end = data + size;
    fuzz_frames_init(&run.frames, &run.rng, &run.story);
    fuzz_run_begin(&run);
    while (run.rng.at < run.rng.end)
        fuzz_run_step(&run);
    run.rng.at = NULL;
    run.rng.state = 1ULL << 63;
    for (size_t i = 0; i < size; i++) /* FNV-1a */
        run.rng.state = (run.rng.state ^ data[i]) * 0x100000001b3ULL;
    run.rng.state |= 1ULL << 63;
    for (unsigned i = 0; i < TAIL; i++)
        fuzz_run_step(&run);
    fuzz_run_end(&run);
    return 0;
}
