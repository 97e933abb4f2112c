/* Hash and checksum algorithms of v1model and simple_switch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of simple_switch's "custom" CRCs can be set at run time. Here
 * these CRCs always have their default parameters.
 */
#include "tr_hash.h"

#include "tr_bits.h"

static uint8_t table8[256];
static uint16_t table16[256], table_ccitt[256];
/* table32[n]: contribution of a byte that is followed by n more bytes */
static uint32_t table32[8][256];
static uint64_t table64[256];

/* Table entry of a reflected CRC, after its eight bit steps; poly is
 * bit-reversed. */
static uint64_t reflected_entry(uint64_t v, uint64_t poly)
{
    for (int bit = 0; bit < 8; bit++)
        v = v & 1 ? v >> 1 ^ poly : v >> 1;
    return v;
}

/* Fills the tables once, when the library is loaded. */
__attribute__((constructor)) static void make_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint8_t v8 = (uint8_t)i;
        uint16_t vc = (uint16_t)(i << 8);
        for (int bit = 0; bit < 8; bit++) {
            v8 = (uint8_t)(v8 & 0x80 ? v8 << 1 ^ 0x07 : v8 << 1);
            vc = (uint16_t)(vc & 0x8000 ? vc << 1 ^ 0x1021 : vc << 1);
        }
        table8[i] = v8;
        table_ccitt[i] = vc;
        table16[i] = (uint16_t)reflected_entry(i, 0xa001);
        table32[0][i] = (uint32_t)reflected_entry(i, 0xedb88320u);
        table64[i] = reflected_entry(i, 0xd800000000000000ULL);
    }
    for (unsigned n = 1; n < 8; n++)
        for (unsigned i = 0; i < 256; i++)
            table32[n][i] = table32[n - 1][i] >> 8 ^
                            table32[0][table32[n - 1][i] & 0xff];
}

uint64_t tr_hash_crc8_custom(const uint8_t *buf, size_t len)
{
    uint8_t crc = 0;
    for (size_t i = 0; i < len; i++)
        crc = table8[crc ^ buf[i]];
    return crc;
}

uint64_t tr_hash_crc16(const uint8_t *buf, size_t len)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++)
        crc = (uint16_t)(crc >> 8 ^ table16[(crc ^ buf[i]) & 0xff]);
    return crc;
}

uint64_t tr_hash_crcCCITT(const uint8_t *buf, size_t len)
{
    uint16_t crc = 0xffff;
    for (size_t i = 0; i < len; i++)
        crc = (uint16_t)(crc << 8 ^ table_ccitt[(crc >> 8 ^ buf[i]) & 0xff]);
    return crc;
}

uint64_t tr_hash_crc32(const uint8_t *buf, size_t len)
{
    uint32_t crc = 0xffffffffu;
    for (; len >= 8; len -= 8, buf += 8) {
        uint64_t w = tr_load_le(buf) ^ crc;
        crc = 0;
        for (unsigned i = 0; i < 8; i++)
            crc ^= table32[7 - i][w >> 8 * i & 0xff];
    }
    for (size_t i = 0; i < len; i++)
        crc = crc >> 8 ^ table32[0][(crc ^ buf[i]) & 0xff];
    return crc ^ 0xffffffffu;
}

uint64_t tr_hash_crc64_custom(const uint8_t *buf, size_t len)
{
    uint64_t crc = 0;
    for (size_t i = 0; i < len; i++)
        crc = crc >> 8 ^ table64[(crc ^ buf[i]) & 0xff];
    return crc;
}

uint64_t tr_hash_csum16(const uint8_t *buf, size_t len)
{
    return tr_csum_end(tr_csum_add(0, buf, len));
}

/* Exclusive or of all words of n bytes; a shorter last word is left-aligned. */
static uint64_t xor_words(const uint8_t *buf, size_t len, unsigned n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++)
        v ^= (uint64_t)buf[i] << 8 * (n - 1 - i % n);
    return v;
}

uint64_t tr_hash_xor16(const uint8_t *buf, size_t len)
{
    return xor_words(buf, len, 2);
}

uint64_t tr_hash_xor32(const uint8_t *buf, size_t len)
{
    return xor_words(buf, len, 4);
}

uint64_t tr_hash_identity(const uint8_t *buf, size_t len)
{
    return len ? tr_load_be(buf, len < 8 ? (unsigned)len : 8) : 0;
}

/* ---- xxHash, 64 bit, seed 0 (public algorithm by Yann Collet) ---- */

#define P1 0x9e3779b185ebca87ULL
#define P2 0xc2b2ae3d27d4eb4fULL
#define P3 0x165667b19e3779f9ULL
#define P4 0x85ebca77c2b2ae63ULL
#define P5 0x27d4eb2f165667c5ULL

static uint64_t rotl(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

static uint64_t lane(uint64_t acc, uint64_t input)
{
    return rotl(acc + input * P2, 31) * P1;
}

static uint64_t merge(uint64_t h, uint64_t acc)
{
    return (h ^ lane(0, acc)) * P1 + P4;
}

uint64_t tr_hash_xxh64(const uint8_t *buf, size_t len)
{
    const uint8_t *p = buf, *end = buf + len;
    uint64_t h = P5;
    if (len >= 32) {
        uint64_t v[4] = {P1 + P2, P2, 0, 0 - P1};
        for (; end - p >= 32; p += 32)
            for (int i = 0; i < 4; i++)
                v[i] = lane(v[i], tr_load_le(p + 8 * i));
        h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18);
        for (int i = 0; i < 4; i++)
            h = merge(h, v[i]);
    }
    h += len;
    for (; end - p >= 8; p += 8)
        h = rotl(h ^ lane(0, tr_load_le(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        uint32_t word;
        memcpy(&word, p, sizeof word);
        h = rotl(h ^ word * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        h = rotl(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

/* FNV-1a with a final mix; bytes are signed, as in simple_switch. */
uint64_t tr_hash_hash_ex(const uint8_t *buf, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint32_t)(int8_t)buf[i]) * 16777619u;
    h += h << 13;
    h ^= h >> 7;
    h += h << 3;
    h ^= h >> 17;
    h += h << 5;
    return h;
}
