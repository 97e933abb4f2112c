/* Hash and checksum algorithms of v1model and simple_switch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each takes the packed bytes of a calculation's input and gives an unsigned
 * number. The CRCs are those of the Rocksoft model; "custom" ones have
 * simple_switch's default parameters.
 */
#ifndef TR_HASH_H
#define TR_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t tr_hash_crc8_custom(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc16(const uint8_t *buf, size_t len);
uint64_t tr_hash_crcCCITT(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc32(const uint8_t *buf, size_t len);
uint64_t tr_hash_crc64_custom(const uint8_t *buf, size_t len);
/* Internet checksum (RFC 1071), odd last byte padded with zero. */
uint64_t tr_hash_csum16(const uint8_t *buf, size_t len);
uint64_t tr_hash_xor16(const uint8_t *buf, size_t len);
uint64_t tr_hash_xor32(const uint8_t *buf, size_t len);
/* The first eight bytes, fewer when there are fewer, as one number. */
uint64_t tr_hash_identity(const uint8_t *buf, size_t len);
uint64_t tr_hash_xxh64(const uint8_t *buf, size_t len);
uint64_t tr_hash_hash_ex(const uint8_t *buf, size_t len);

#endif
