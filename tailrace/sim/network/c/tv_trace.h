/* The trace hash of a wire (one direction of a link): a running 128-bit mix of
 * all frames that the wire delivers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The hash is equal for two runs if the same frames arrived at the same times
 * in the same order. It is not cryptographic: it only detects differences.
 * Loads are little-endian by shifts, so that every machine, compiler and
 * optimisation gives the same numbers.
 */
#ifndef TV_TRACE_H
#define TV_TRACE_H

#include <stdint.h>

typedef struct tv_mix {
    uint64_t a, b;
} tv_mix;

/* Arbitrary odd constants: the fractional parts of the square roots of
 * 2, 3, 5 and 7, the lowest bit set. */
#define TV_MIX_1 UINT64_C(0x6a09e667f3bcc909)
#define TV_MIX_2 UINT64_C(0xbb67ae8584caa73b)
#define TV_MIX_3 UINT64_C(0x3c6ef372fe94f82b)
#define TV_MIX_4 UINT64_C(0xa54ff53a5f1d36f1)

static inline uint64_t tv_load_le(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* The same for fewer than 8 bytes, padded with zeros. The bytes are not copied
 * to a buffer first: a load that needs the bytes of several recent stores would
 * wait until these stores have reached the cache (no store forwarding). */
static inline uint64_t tv_load_few(const uint8_t *p, uint32_t len)
{
    uint64_t x = 0;
    for (uint32_t i = 0; i < len; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* The XOR of both halves of the product. */
static inline uint64_t tv_fold(uint64_t x, uint64_t y)
{
    unsigned __int128 product = (unsigned __int128)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void tv_mix_words(tv_mix *m, uint64_t x, uint64_t y)
{
    uint64_t a = m->a, b = m->b;
    m->a = tv_fold(a ^ x, y ^ TV_MIX_1) + b;
    m->b = tv_fold(b ^ y, x ^ TV_MIX_2) ^ (a << 23 | a >> 41);
}

/* Mixes in a frame of len bytes and virt virtual payload bytes (not stored). */
static inline void tv_mix_frame(tv_mix *m, uint64_t time_ps, uint32_t len,
                                uint32_t virt, const uint8_t *data)
{
    tv_mix_words(m, time_ps ^ TV_MIX_3,
                 ((uint64_t)virt << 32 | len) ^ TV_MIX_4);
    for (; len >= 16; len -= 16, data += 16)
        tv_mix_words(m, tv_load_le(data), tv_load_le(data + 8));
    if (len >= 8)
        tv_mix_words(m, tv_load_le(data), tv_load_few(data + 8, len - 8));
    else if (len)
        tv_mix_words(m, tv_load_few(data, len), 0);
}

#endif
