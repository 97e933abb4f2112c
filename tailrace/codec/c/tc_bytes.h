/* Numbers in network byte order, IPv4 checksum and parts of the ICRC.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For tc_codec.c and tc_build.c; the virtual network reads numbers with it, too.
 */
#ifndef TC_BYTES_H
#define TC_BYTES_H

#include "tc_codec.h"

static inline uint32_t tc_get16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t tc_get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static inline void tc_put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline void tc_put32(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

/* The one's complement sum of n bytes (n even) as 16-bit numbers: 0xffff for a
 * correct IPv4 header. */
static inline uint32_t tc_inet_sum(const uint8_t *p, uint32_t n)
{
    uint64_t sum = 0;
    for (; n >= 4; n -= 4, p += 4)
        sum += tc_get32(p);
    if (n)
        sum += tc_get16(p);
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)((sum & 0xffff) + (sum >> 16));
}

/* The CRC register after the headers of a frame. shimmed: the frame has a NIC
 * shim (Flowcut's header between UDP and BTH); the register is that of the
 * headers without the shim. */
uint32_t tc_icrc_headers(const tc_codec *c, const uint8_t *frame, int shimmed);

/* The CRC register after n more bytes, and then `zeros` bytes of zeros. */
uint32_t tc_icrc_body(uint32_t reg, const uint8_t *body, uint32_t n,
                      uint32_t zeros);

#endif
