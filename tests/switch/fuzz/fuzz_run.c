/* A switch that is fed: settings, control calls, frames, accounts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const tr_program tr_program_entry;

/* One frame in so many is preceded by a control call. */
#define CONTROL_EVERY 16u
/* tr_run may stop early where packets go round without time passing; what it
 * leaves is picked up with a later frame. */
#define MAX_RUNS 4
#define ACCOUNT_EVERY 7

static void log_line(void *arg, int level, const char *text)
{
    uint64_t *characters = arg;
    *characters += strlen(text) + (uint64_t)level;
}

/* FNV-1a, 64 bits. */
static void mix(uint64_t *hash, const void *data, size_t n)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ bytes[i]) * 0x100000001b3ULL;
}

/* Takes out all that the switch wants to send, and its digests. */
static void drain(fuzz_run *r)
{
    tr_out out;
    uint64_t limbs[64], time_ps;
    while (tr_pop(r->s, &out)) {
        mix(&r->trace, &out.port, sizeof out.port);
        mix(&r->trace, &out.time_ps, sizeof out.time_ps);
        mix(&r->trace, out.data, out.len);
        if (fuzz_below(&r->rng, 16) == 0)
            fuzz_frame_learn(&r->frames, out.data, out.len);
        tr_release(r->s, out.slot);
        r->sent++;
    }
    tr_switch_unlock(r->s);
    while (tr_digest_pop(r->s, &time_ps, limbs, 64) >= 0)
        mix(&r->trace, &time_ps, sizeof time_ps);
    tr_switch_lock(r->s);
}

static void one_frame(fuzz_run *r)
{
    static fuzz_frame frame;
    uint32_t port = (uint32_t)fuzz_below(&r->rng, 16);
    fuzz_frame_make(&r->frames, &frame);
    if (fuzz_below(&r->rng, 256) == 0)
        port = (uint32_t)fuzz_below(&r->rng, 600);
    r->now_ps += fuzz_below(&r->rng, 3000000);
    /* a copy of its very length, so that a look behind its end is seen */
    uint8_t *data = malloc(frame.len ? frame.len : 1);
    if (!data)
        abort();
    memcpy(data, frame.data, frame.len);
    tr_switch_lock(r->s);
    if (fuzz_below(&r->rng, 32) == 0)
        tr_rx_virtual(r->s, port, data, frame.len,
                      (uint32_t)fuzz_below(&r->rng, 9000), r->now_ps);
    else
        tr_rx(r->s, port, data, frame.len, r->now_ps);
    free(data);
    for (int i = 0; i < MAX_RUNS; i++) {
        uint64_t next_ps = tr_run(r->s, r->now_ps);
        drain(r);
        if (next_ps > r->now_ps)
            break;
    }
    tr_switch_unlock(r->s);
}

static void fail(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* Every frame and every virtual byte must be somewhere. */
static void check_account(const fuzz_run *r)
{
    tr_account a;
    tr_account_read(r->s, &a);
    if (a.rx_frames + a.made_frames !=
            a.tx_frames + a.dropped_frames + a.held_frames ||
        a.rx_virt + a.made_virt !=
            a.tx_virt + a.dropped_virt + a.cut_virt + a.held_virt)
        fail("the account of the switch does not add up");
}

/* What is taken of the buffer belongs to packets that are there. */
static void check_buffer(const fuzz_run *r)
{
    tr_buffer_state_t b;
    tr_buffer_state(r->s, &b);
    if (b.shared_bytes + b.headroom_bytes + b.own_bytes != b.held_bytes)
        fail("the buffer of the switch does not add up");
}

void fuzz_run_end(fuzz_run *r)
{
    uint64_t drops[TR_DROP_COUNT];
    if (!r->s)
        return;
    check_account(r);
    check_buffer(r);
    tr_drops_read(r->s, drops);
    for (unsigned i = 0; i < TR_DROP_COUNT; i++)
        r->dropped += drops[i];
    tr_switch_free(r->s);
    r->s = NULL;
}

void fuzz_run_begin(fuzz_run *r)
{
    fuzz_run_end(r);
    const tr_switch_config cfg = {
        .drop_port = 511,
        .priorities = 1 + (uint32_t)fuzz_below(&r->rng, TR_MAX_PRIORITIES),
        .tick_ps = fuzz_below(&r->rng, 2) ? 1000000 : 1000,
        .queue_packets = 1 + (uint32_t)fuzz_below(&r->rng, 64),
        .queue_bytes = fuzz_below(&r->rng, 4) ? 0 : 20000,
        .port_rate_bps = fuzz_below(&r->rng, 2) ? 0 : 10000000000u,
        .port_delay_ps = fuzz_below(&r->rng, 2) ? 0 : 1000000,
        .recirc_rate_bps = fuzz_below(&r->rng, 2) ? 0 : 1000000000u,
        .seed = fuzz_next(&r->rng),
    };
    r->now_ps = 0;
    r->s = tr_switch_new(&tr_program_entry, &cfg);
    if (!r->s)
        fail("the program does not load");
    if (fuzz_below(&r->rng, 8))
        fuzz_story_control(&r->story, r->s);
}

void fuzz_run_step(fuzz_run *r)
{
    if (fuzz_below(&r->rng, CONTROL_EVERY) == 0) {
        fuzz_control(r->s, &r->rng, r->now_ps, 1);
        r->controls++;
    }
    tr_set_log(r->s, log_line, &r->logged);
    one_frame(r);
    if (r->steps++ % ACCOUNT_EVERY == 0) {
        check_account(r);
        check_buffer(r);
    }
}
