/* Choices; random frames: protocol templates, mutation, splicing, pure noise.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "fuzz.h"

/* Takes n bytes of the input, zeros behind its end. */
static void take(fuzz_rng *rng, void *out, uint32_t n)
{
    uint32_t left = (uint32_t)(rng->end - rng->at);
    uint32_t given = n < left ? n : left;
    memcpy(out, rng->at, given);
    memset((uint8_t *)out + given, 0, n - given);
    rng->at += given;
}

uint64_t fuzz_next(fuzz_rng *rng)
{
    uint64_t x = rng->state;
    if (rng->at) {
        take(rng, &x, sizeof x);
        return x;
    }
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

uint64_t fuzz_below(fuzz_rng *rng, uint64_t n)
{
    uint64_t x = 0;
    if (!rng->at)
        return (fuzz_next(rng) >> 16) % n;
    take(rng, &x, n <= 1u << 8 ? 1 : n <= 1u << 16 ? 2 : n >> 32 ? 8 : 4);
    return x % n;
}

void fuzz_bytes(fuzz_rng *rng, uint8_t *out, uint32_t n)
{
    if (rng->at) {
        take(rng, out, n);
        return;
    }
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t x = fuzz_next(rng);
        memcpy(out + i, &x, n - i < 8 ? n - i : 8);
    }
}

/* Ethernet, then what the name says; addresses and payload stay short. */
#define MACS 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2
static const uint8_t ipv4_udp[] = {
    MACS, 0x08, 0x00, 0x45, 0, 0, 0x20, 0, 1, 0, 0, 64, 17, 0x66, 0xca,
    10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0x12, 0xb7, 0, 12, 0, 0, 1, 2, 3, 4
};
static const uint8_t ipv4_options_tcp[] = {
    MACS, 0x08, 0x00, 0x47, 0, 0, 0x30, 0, 1, 0, 0, 64, 6, 0, 0,
    10, 0, 0, 1, 10, 0, 0, 2, 0x94, 4, 0, 0, 1, 1, 1, 0,
    0, 80, 4, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 4, 0, 0, 0, 0, 0
};
static const uint8_t vlan_ipv4[] = {
    MACS, 0x81, 0x00, 0x20, 0x0a, 0x08, 0x00, 0x45, 0, 0, 0x1c, 0, 1, 0, 0,
    64, 17, 0x66, 0xce, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0, 0
};
static const uint8_t ipv6_udp[] = {
    MACS, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64,
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0, 0
};
static const uint8_t mpls[] = {
    MACS, 0x88, 0x47, 0, 1, 0, 64, 0, 2, 0, 64, 0, 3, 1, 64, 0x45, 0, 0, 0x14
};
static const uint8_t arp[] = {
    MACS, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 10, 0, 0, 2
};
/* IEEE 802.1Qbb: a pause of all eight priorities */
static const uint8_t pfc[] = {
    1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x08, 1, 1, 0, 0xff,
    0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9
};

static const struct {
    const uint8_t *data;
    uint32_t len;
} templates[] = {
    {ipv4_udp, sizeof ipv4_udp},
    {ipv4_options_tcp, sizeof ipv4_options_tcp},
    {vlan_ipv4, sizeof vlan_ipv4},
    {ipv6_udp, sizeof ipv6_udp},
    {mpls, sizeof mpls},
    {arp, sizeof arp},
    {pfc, sizeof pfc},
};
#define N_TEMPLATES (sizeof templates / sizeof templates[0])

static void put(fuzz_frames *f, uint32_t place, const uint8_t *data, uint32_t len)
{
    f->stock[place].len = len < FUZZ_MAX_FRAME ? len : FUZZ_MAX_FRAME;
    memcpy(f->stock[place].data, data, f->stock[place].len);
}

void fuzz_frames_init(fuzz_frames *f, fuzz_rng *rng, const fuzz_story *story)
{
    fuzz_record record;
    fuzz_story rest = *story;
    uint32_t n = 0;
    f->rng = rng;
    for (; n < N_TEMPLATES; n++)
        put(f, n, templates[n].data, templates[n].len);
    while (n < FUZZ_STOCK / 2 && fuzz_story_next(&rest, &record))
        if (record.kind == FUZZ_FRAME)
            put(f, n++, record.data, record.len);
    /* without these the stock would drift into noise */
    f->kept = n;
    for (uint32_t i = n; i < FUZZ_STOCK; i++)
        put(f, i, f->stock[i % n].data, f->stock[i % n].len);
}

void fuzz_frame_learn(fuzz_frames *f, const uint8_t *data, uint32_t len)
{
    put(f, f->kept + (uint32_t)fuzz_below(f->rng, FUZZ_STOCK - f->kept), data,
        len);
}

/* Where mutations strike: mostly among the headers. */
static uint32_t position(fuzz_rng *rng, uint32_t len)
{
    uint32_t reach = len > 96 && fuzz_below(rng, 4) ? 96 : len;
    return (uint32_t)fuzz_below(rng, reach);
}

/* Sets the length; new bytes at the end are random. */
static void resize(fuzz_rng *rng, fuzz_frame *frame, uint32_t len)
{
    if (len > frame->len)
        fuzz_bytes(rng, frame->data + frame->len, len - frame->len);
    frame->len = len;
}

/* Takes out or puts in some bytes, so that the headers behind them shift. */
static void shift(fuzz_rng *rng, fuzz_frame *frame)
{
    uint32_t at = position(rng, frame->len);
    uint32_t n = 1 + (uint32_t)fuzz_below(rng, 24);
    if (fuzz_below(rng, 2) && frame->len + n <= FUZZ_MAX_FRAME) {
        memmove(frame->data + at + n, frame->data + at, frame->len - at);
        fuzz_bytes(rng, frame->data + at, n);
        frame->len += n;
    } else if (at + n <= frame->len) {
        memmove(frame->data + at, frame->data + at + n, frame->len - at - n);
        frame->len -= n;
    }
}

static void mutate(fuzz_frames *f, fuzz_frame *frame)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    fuzz_rng *rng = f->rng;
    if (frame->len == 0) {
        resize(rng, frame, 1 + (uint32_t)fuzz_below(rng, 64));
        return;
    }
    uint32_t at = position(rng, frame->len);
    switch (fuzz_below(rng, 6)) {
    case 0:
        frame->data[at] ^= (uint8_t)(1u << fuzz_below(rng, 8));
        break;
    case 1:
        frame->data[at] = edges[fuzz_below(rng, sizeof edges)];
        break;
    case 2:
        frame->data[at] = (uint8_t)fuzz_next(rng);
        break;
    case 3:
        resize(rng, frame, (uint32_t)fuzz_below(rng, frame->len + 1));
        break;
    case 4:
        shift(rng, frame);
        break;
    default: {
        /* the tail of another frame of the stock */
        const fuzz_frame *other = &f->stock[fuzz_below(rng, FUZZ_STOCK)];
        if (at < other->len) {
            memcpy(frame->data + at, other->data + at, other->len - at);
            frame->len = other->len;
        }
        break;
    }
    }
}

void fuzz_frame_make(fuzz_frames *f, fuzz_frame *out)
{
    fuzz_rng *rng = f->rng;
    if (fuzz_below(rng, 8) == 0) {
        /* noise, short far more often than long */
        uint64_t limit = fuzz_below(rng, 8) ? 128 : FUZZ_MAX_FRAME;
        out->len = (uint32_t)fuzz_below(rng, limit + 1);
        fuzz_bytes(rng, out->data, out->len);
        return;
    }
    const fuzz_frame *from = &f->stock[fuzz_below(rng, FUZZ_STOCK)];
    out->len = from->len;
    memcpy(out->data, from->data, from->len);
    for (uint64_t n = fuzz_below(rng, 6); n > 0; n--)
        mutate(f, out);
    if (fuzz_below(rng, 64) == 0)
        resize(rng, out, (uint32_t)fuzz_below(rng, FUZZ_MAX_FRAME + 1));
}
