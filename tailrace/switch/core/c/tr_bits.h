/* Bit fields of packet bytes and of 64/128-bit integers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The processor is little-endian. Packet bytes are big-endian, and fields are
 * packed from the most significant bit of the first byte:
 *
 *      byte 0          byte 1
 *      7 6 5 4 3 2 1 0 7 6 5 4 3 2 1 0
 *      |-- a:4 -|-- b:8 ------|-- c:4 -|
 *
 * In the PHV (headers and metadata of a packet) a field of up to 128 bits is an
 * unsigned C integer. A wider field is an array of 64-bit limbs, least
 * significant limb first.
 */
#ifndef TR_BITS_H
#define TR_BITS_H

#include <stdint.h>
#include <string.h>

typedef unsigned __int128 tr_u128;
typedef __int128 tr_s128;

#define TR_INLINE static inline __attribute__((always_inline, unused))

/* The low `bits` bits set; bits may be 0..64. */
TR_INLINE uint64_t tr_mask64(unsigned bits)
{
    return bits >= 64 ? ~0ULL : (1ULL << bits) - 1;
}

TR_INLINE tr_u128 tr_mask128(unsigned bits)
{
    return bits >= 128 ? ~(tr_u128)0 : (((tr_u128)1 << bits) - 1);
}

/* Sign extension of the low `bits` (1..64, 1..128) bits. */
TR_INLINE int64_t tr_sext64(uint64_t v, unsigned bits)
{
    return bits >= 64 ? (int64_t)v
                      : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

TR_INLINE tr_s128 tr_sext128(tr_u128 v, unsigned bits)
{
    return bits >= 128 ? (tr_s128)v
                       : (tr_s128)(v << (128 - bits)) >> (128 - bits);
}

/* Shifts by any amount; bits shifted out are lost. */
TR_INLINE uint64_t tr_shl64(uint64_t v, uint64_t n)
{
    return n >= 64 ? 0 : v << n;
}

TR_INLINE tr_u128 tr_shl128(tr_u128 v, uint64_t n)
{
    return n >= 128 ? 0 : v << n;
}

TR_INLINE uint64_t tr_shr_u64(uint64_t v, uint64_t n)
{
    return n >= 64 ? 0 : v >> n;
}

TR_INLINE int64_t tr_shr_s64(int64_t v, uint64_t n)
{
    return v >> (n >= 64 ? 63 : n);
}

TR_INLINE tr_u128 tr_shr_u128(tr_u128 v, uint64_t n)
{
    return n >= 128 ? 0 : v >> n;
}

TR_INLINE tr_s128 tr_shr_s128(tr_s128 v, uint64_t n)
{
    return v >> (n >= 128 ? 127 : n);
}

/* Indices and shift amounts: values outside uint64_t become UINT64_MAX. */
TR_INLINE uint64_t tr_index_s64(int64_t v)
{
    return v < 0 ? UINT64_MAX : (uint64_t)v;
}

TR_INLINE uint64_t tr_index_u128(tr_u128 v)
{
    return v >> 64 ? UINT64_MAX : (uint64_t)v;
}

TR_INLINE uint64_t tr_index_s128(tr_s128 v)
{
    return v < 0 || v >> 64 ? UINT64_MAX : (uint64_t)v;
}

TR_INLINE uint64_t tr_index_limbs(const uint64_t *v, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        if (v[i])
            return UINT64_MAX;
    return v[0];
}

/* Big-endian load of n (1..8) bytes. */
TR_INLINE uint64_t tr_load_be(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    if (n == 8) {
        memcpy(&v, p, 8);
        return __builtin_bswap64(v);
    }
    if (n == 4) {
        uint32_t w;
        memcpy(&w, p, 4);
        return __builtin_bswap32(w);
    }
    if (n == 2) {
        uint16_t w;
        memcpy(&w, p, 2);
        return __builtin_bswap16(w);
    }
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Little-endian load of 8 bytes. */
TR_INLINE uint64_t tr_load_le(const uint8_t *p)
{
    return __builtin_bswap64(tr_load_be(p, 8));
}

/* Big-endian store of the low n (1..8) bytes of v. */
TR_INLINE void tr_store_be(uint8_t *p, unsigned n, uint64_t v)
{
    if (n == 8) {
        v = __builtin_bswap64(v);
        memcpy(p, &v, 8);
        return;
    }
    if (n == 4) {
        uint32_t w = __builtin_bswap32((uint32_t)v);
        memcpy(p, &w, 4);
        return;
    }
    if (n == 2) {
        uint16_t w = __builtin_bswap16((uint16_t)v);
        memcpy(p, &w, 2);
        return;
    }
    for (unsigned i = n; i-- > 0; v >>= 8)
        p[i] = (uint8_t)v;
}

/* The `bits` (1..64) bits at bit offset `off` of p. Reads only bytes that
 * contain such bits. */
TR_INLINE uint64_t tr_get64(const uint8_t *p, unsigned off, unsigned bits)
{
    unsigned first = off / 8, shift = off % 8;
    unsigned span = (shift + bits + 7) / 8;
    if (span <= 8)
        return tr_load_be(p + first, span) >> (span * 8 - shift - bits) &
               tr_mask64(bits);
    /* nine bytes: the low 8 - shift bits of the first, then eight bytes */
    uint64_t high = p[first] & (0xffu >> shift);
    uint64_t low = tr_load_be(p + first + 1, 8);
    unsigned drop = span * 8 - shift - bits;
    return (drop == 0 ? low : (low >> drop | high << (64 - drop))) &
           tr_mask64(bits);
}

TR_INLINE tr_u128 tr_get128(const uint8_t *p, unsigned off, unsigned bits)
{
    if (bits <= 64)
        return tr_get64(p, off, bits);
    return (tr_u128)tr_get64(p, off, bits - 64) << 64 |
           tr_get64(p, off + bits - 64, 64);
}

/* Writes the low `bits` (1..64) bits of v at bit offset `off`. Other bits of
 * these bytes keep their values. */
TR_INLINE void tr_put64(uint8_t *p, unsigned off, unsigned bits, uint64_t v)
{
    if (off % 8 == 0 && bits % 8 == 0) {
        tr_store_be(p + off / 8, bits / 8, v);
        return;
    }
    while (bits > 0) {
        unsigned room = 8 - off % 8; /* number of bits from off to the end of
                                      * the byte */
        unsigned n = bits < room ? bits : room;
        unsigned shift = room - n;
        uint8_t m = (uint8_t)(((1u << n) - 1) << shift);
        uint8_t piece = (uint8_t)((v >> (bits - n)) << shift) & m;
        p[off / 8] = (uint8_t)((p[off / 8] & ~m) | piece);
        off += n;
        bits -= n;
    }
}

TR_INLINE void tr_put128(uint8_t *p, unsigned off, unsigned bits, tr_u128 v)
{
    if (bits > 64) {
        tr_put64(p, off, bits - 64, (uint64_t)(v >> 64));
        off += bits - 64;
        bits = 64;
    }
    tr_put64(p, off, bits, (uint64_t)v);
}

/* A field of any width as limbs, least significant first. */
TR_INLINE void tr_get_limbs(const uint8_t *p, unsigned off, unsigned bits,
                            uint64_t *limbs)
{
    unsigned n = 0;
    while (bits > 64) {
        limbs[n++] = tr_get64(p, off + bits - 64, 64);
        bits -= 64;
    }
    limbs[n] = tr_get64(p, off, bits);
}

TR_INLINE void tr_put_limbs(uint8_t *p, unsigned off, unsigned bits,
                            const uint64_t *limbs)
{
    unsigned n = 0;
    while (bits > 64) {
        tr_put64(p, off + bits - 64, 64, limbs[n++]);
        bits -= 64;
    }
    tr_put64(p, off, bits, limbs[n]);
}

/* Copies a variable-length field of whole bytes from or to any bit offset. */
TR_INLINE void tr_get_bytes(const uint8_t *p, unsigned off, unsigned bits,
                            uint8_t *dst)
{
    for (unsigned i = 0; i < bits / 8; i++)
        dst[i] = (uint8_t)tr_get64(p, off + 8 * i, 8);
}

TR_INLINE void tr_put_bytes(uint8_t *p, unsigned off, unsigned bits,
                            const uint8_t *src)
{
    for (unsigned i = 0; i < bits / 8; i++)
        tr_put64(p, off + 8 * i, 8, src[i]);
}

#endif
