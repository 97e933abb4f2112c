/* Two's complement integers of n 64-bit limbs, for expressions above 128 bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limb 0 is the least significant. The compiler makes n large enough for all
 * intermediate values of an expression; where only low bits matter, values are
 * modulo 2^(64 n). dst may be one of the operands unless a comment says
 * otherwise.
 */
#ifndef TR_WIDE_H
#define TR_WIDE_H

#include "tr_bits.h"

#define TRW_FN static inline __attribute__((unused))

/* dst[n] = src[m], zero-extended, sign-extended or truncated. */
TRW_FN void trw_copy(uint64_t *dst, unsigned n, const uint64_t *src,
                     unsigned m, int is_signed)
{
    uint64_t fill = is_signed && src[m - 1] >> 63 ? ~0ULL : 0;
    for (unsigned i = 0; i < n; i++)
        dst[i] = i < m ? src[i] : fill;
}

TRW_FN void trw_from_u128(uint64_t *dst, unsigned n, tr_u128 v)
{
    dst[0] = (uint64_t)v;
    for (unsigned i = 1; i < n; i++)
        dst[i] = i == 1 ? (uint64_t)(v >> 64) : 0;
}

TRW_FN void trw_from_s128(uint64_t *dst, unsigned n, tr_s128 v)
{
    trw_from_u128(dst, n, (tr_u128)v);
    for (unsigned i = 2; i < n; i++)
        dst[i] = v < 0 ? ~0ULL : 0;
}

TRW_FN tr_u128 trw_low128(const uint64_t *a, unsigned n)
{
    return (n > 1 ? (tr_u128)a[1] << 64 : 0) | a[0];
}

TRW_FN int trw_negative(const uint64_t *a, unsigned n)
{
    return (int)(a[n - 1] >> 63);
}

TRW_FN int trw_is_zero(const uint64_t *a, unsigned n)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < n; i++)
        all |= a[i];
    return all == 0;
}

TRW_FN void trw_add(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                    unsigned n)
{
    unsigned carry = 0;
    for (unsigned i = 0; i < n; i++) {
        tr_u128 t = (tr_u128)a[i] + b[i] + carry;
        dst[i] = (uint64_t)t;
        carry = (unsigned)(t >> 64);
    }
}

TRW_FN void trw_sub(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                    unsigned n)
{
    unsigned borrow = 0;
    for (unsigned i = 0; i < n; i++) {
        tr_u128 t = (tr_u128)a[i] - b[i] - borrow;
        dst[i] = (uint64_t)t;
        borrow = (unsigned)(t >> 64) & 1;
    }
}

/* Product modulo 2^(64 n), also correct for signed operands. dst must not be an
 * operand. */
TRW_FN void trw_mul(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                    unsigned n)
{
    memset(dst, 0, n * sizeof *dst);
    for (unsigned i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (unsigned j = 0; i + j < n; j++) {
            tr_u128 t = (tr_u128)a[i] * b[j] + dst[i + j] + carry;
            dst[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
    }
}

TRW_FN void trw_and(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                    unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        dst[i] = a[i] & b[i];
}

TRW_FN void trw_or(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                   unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        dst[i] = a[i] | b[i];
}

TRW_FN void trw_xor(uint64_t *dst, const uint64_t *a, const uint64_t *b,
                    unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        dst[i] = a[i] ^ b[i];
}

TRW_FN void trw_not(uint64_t *dst, const uint64_t *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        dst[i] = ~a[i];
}

/* Left shift by any amount; dst must not be a. */
TRW_FN void trw_shl(uint64_t *dst, const uint64_t *a, unsigned n,
                    uint64_t amount)
{
    uint64_t limbs = amount / 64;
    unsigned bits = (unsigned)(amount % 64);
    for (unsigned i = n; i-- > 0;) {
        uint64_t v = 0;
        if (i >= limbs) {
            v = a[i - limbs] << bits;
            if (bits && i > limbs)
                v |= a[i - limbs - 1] >> (64 - bits);
        }
        dst[i] = v;
    }
}

/* Arithmetic right shift by any amount; dst must not be a. */
TRW_FN void trw_shr(uint64_t *dst, const uint64_t *a, unsigned n,
                    uint64_t amount)
{
    uint64_t fill = trw_negative(a, n) ? ~0ULL : 0;
    uint64_t limbs = amount / 64;
    unsigned bits = (unsigned)(amount % 64);
    for (unsigned i = 0; i < n; i++) {
        uint64_t low = limbs < n - i ? a[i + limbs] : fill;
        uint64_t high = limbs + 1 < n - i ? a[i + limbs + 1] : fill;
        dst[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
}

/* Clears all bits from `bits` upwards. */
TRW_FN void trw_mask(uint64_t *a, unsigned n, unsigned bits)
{
    for (unsigned i = 0; i < n; i++) {
        if (i * 64 >= bits)
            a[i] = 0;
        else if (bits - i * 64 < 64)
            a[i] &= tr_mask64(bits - i * 64);
    }
}

/* Sign-extends the low `bits` (>= 1) bits to all limbs. */
TRW_FN void trw_sext(uint64_t *a, unsigned n, unsigned bits)
{
    unsigned top = (bits - 1) / 64;
    if (top >= n)
        return;
    uint64_t fill = a[top] >> ((bits - 1) % 64) & 1 ? ~0ULL : 0;
    a[top] = (uint64_t)tr_sext64(a[top], (bits - 1) % 64 + 1);
    for (unsigned i = top + 1; i < n; i++)
        a[i] = fill;
}

/* Signed comparison: -1, 0 or 1. */
TRW_FN int trw_cmp(const uint64_t *a, const uint64_t *b, unsigned n)
{
    int64_t x = (int64_t)a[n - 1], y = (int64_t)b[n - 1];
    if (x != y)
        return x < y ? -1 : 1;
    for (unsigned i = n - 1; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Quotient and remainder of non-negative a and b by shift and subtract; 0 and 0
 * if b is 0. quot and rem must differ from a and b. */
TRW_FN void trw_divmod(uint64_t *quot, uint64_t *rem, const uint64_t *a,
                       const uint64_t *b, unsigned n)
{
    memset(quot, 0, n * sizeof *quot);
    memset(rem, 0, n * sizeof *rem);
    if (trw_is_zero(b, n))
        return;
    for (unsigned i = n * 64; i-- > 0;) {
        for (unsigned k = n; k-- > 1;)
            rem[k] = rem[k] << 1 | rem[k - 1] >> 63;
        rem[0] = rem[0] << 1 | (a[i / 64] >> (i % 64) & 1);
        if (trw_cmp(rem, b, n) >= 0) {
            trw_sub(rem, rem, b, n);
            quot[i / 64] |= 1ULL << (i % 64);
        }
    }
}

#endif
