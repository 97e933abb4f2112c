/* The inner loop of the pipeline benchmark: frames in, frames out, no I/O.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <time.h>

#include "bench.h"

/* Frames passed to the core before it runs, as in the switch's I/O loop. */
#define BATCH 32u
/* Virtual time between two frames: 10 million frames a second. */
#define GAP_PS 100000u

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Takes all output packets from s and frees them; returns their number. */
static uint64_t drain(tr_switch *s)
{
    uint64_t n = 0;
    tr_out out;
    while (tr_pop(s, &out)) {
        tr_release(s, out.slot);
        n++;
    }
    return n;
}

/* Sends `packets` frames into a port of s, round robin from the n_frames
 * frames that lie back to back at `frames` and are lens[] bytes long. Each
 * batch takes the switch's lock once, as in the I/O loop.
 *
 * *now_ps: the switch's time, read and advanced; *n_out: number of frames that
 * came out. Returns the thread's CPU time in nanoseconds, or the negative error
 * of tr_rx. */
int64_t tr_bench_loop(tr_switch *s, uint32_t port, const uint8_t *frames,
                      const uint32_t *lens, uint32_t n_frames,
                      uint64_t packets, uint64_t *now_ps, uint64_t *n_out)
{
    uint64_t begin_ns = cpu_ns(), now = *now_ps, out = 0;
    const uint8_t *frame = frames;
    uint32_t next = 0;
    while (packets > 0) {
        uint64_t batch = packets < BATCH ? packets : BATCH;
        tr_switch_lock(s);
        for (uint64_t i = 0; i < batch; i++) {
            int error = tr_rx(s, port, frame, lens[next], now);
            if (error != TR_OK) {
                tr_switch_unlock(s);
                return error;
            }
            now += GAP_PS;
            frame += lens[next];
            if (++next == n_frames) {
                next = 0;
                frame = frames;
            }
        }
        tr_run(s, now);
        out += drain(s);
        tr_switch_unlock(s);
        packets -= batch;
    }
    *now_ps = now;
    *n_out = out;
    return (int64_t)(cpu_ns() - begin_ns);
}
