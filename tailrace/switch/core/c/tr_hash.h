/* Hash and checksum algorithms of v1model and simple_switch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each function takes the packed bytes of a calculation's input and returns an
 * unsigned integer. CRCs are defined by the parameters of the Rocksoft model;
 * "custom" CRCs have simple_switch's default parameters.
 */
#ifndef TR_HASH_H
#define TR_HASH_H

#include <stddef.h>

#include "tr_bits.h"

uint64_t tr_hash_crc8_custom(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc16(const uint8_t *buf, size_t len);
uint64_t tr_hash_crcCCITT(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc32(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc64_custom(const uint8_t *buf, size_t len);
/* Internet checksum (RFC 1071); an odd last byte is padded with zero. */
uint64_t tr_hash_csum16(const uint8_t *buf, size_t len);
/* The Internet checksum in steps: tr_csum_add for each part of the input,
 * starting with sum 0, then tr_csum_end. All parts but the last have an even
 * length. The sum is kept modulo 2^64 - 1, a multiple of 2^16 - 1. */
TR_INLINE uint64_t tr_csum_add(uint64_t sum, const uint8_t *buf, size_t len)
{
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t w;
        memcpy(&w, buf + i, 8);
        sum += w;
        sum += sum < w;
    }
    if (i < len) {
        uint64_t tail = 0;
        memcpy(&tail, buf + i, len - i);
        sum += tail;
        sum += sum < tail;
    }
    return sum;
}

TR_INLINE uint64_t tr_csum_end(uint64_t sum)
{
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return __builtin_bswap16((uint16_t)~sum);
}

uint64_t tr_hash_xor16(const uint8_t *buf, size_t len);
uint64_t tr_hash_xor32(const uint8_t *buf, size_t len);
/* The first eight bytes (or all, if fewer) as a big-endian integer. */
uint64_t tr_hash_identity(const uint8_t *buf, size_t len);
uint64_t tr_hash_xxh64(const uint8_t *buf, size_t len);
uint64_t tr_hash_hash_ex(const uint8_t *buf, size_t len);

#endif
