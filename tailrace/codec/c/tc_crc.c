/* CRC-32 by tables: eight bytes per step; runs of zero bytes by powers of two.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_crc.h"

#define POLYNOMIAL 0xEDB88320u
#define STEP 8u
#define POWERS 17u /* powers of two whose sum is TC_CRC_MAX_ZEROS */
#define NIBBLES 8u

/* slice[k][b]: the register after byte b and k zero bytes, if it was 0 */
static uint32_t slice[STEP][256];
/* zeros[k][i][v]: the register after 2^k zero bytes, if its nibble i was v and
 * all others were 0 */
static uint32_t zeros[POWERS][NIBBLES][16];

_Static_assert(TC_CRC_MAX_ZEROS == (1u << POWERS) - 1, "POWERS");

/* The register after the zero bytes for which z is the table. */
static uint32_t apply(uint32_t z[NIBBLES][16], uint32_t reg)
{
    uint32_t low = z[0][reg & 15] ^ z[1][reg >> 4 & 15] ^ z[2][reg >> 8 & 15] ^
                   z[3][reg >> 12 & 15];
    return low ^ z[4][reg >> 16 & 15] ^ z[5][reg >> 20 & 15] ^
           z[6][reg >> 24 & 15] ^ z[7][reg >> 28];
}

static void init_slicing(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t reg = b;
        for (int bit = 0; bit < 8; bit++)
            reg = reg & 1 ? reg >> 1 ^ POLYNOMIAL : reg >> 1;
        slice[0][b] = reg;
    }
    for (uint32_t k = 1; k < STEP; k++)
        for (uint32_t b = 0; b < 256; b++)
            slice[k][b] =
                slice[0][slice[k - 1][b] & 255] ^ slice[k - 1][b] >> 8;
}

void tc_crc_init(void)
{
    init_slicing();
    for (uint32_t k = 0; k < POWERS; k++)
        for (uint32_t i = 0; i < NIBBLES; i++)
            for (uint32_t v = 0; v < 16; v++) {
                uint32_t reg = v << (4 * i);
                if (k == 0)
                    reg = slice[0][reg & 255] ^ reg >> 8;
                else
                    reg = apply(zeros[k - 1], apply(zeros[k - 1], reg));
                zeros[k][i][v] = reg;
            }
}

/* Eight bytes, the first in the lowest bits; compilers make this one load on
 * little-endian machines. */
static inline uint64_t load(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline uint32_t step(uint32_t reg, uint64_t chunk)
{
    chunk ^= reg;
    return slice[7][chunk & 255] ^ slice[6][chunk >> 8 & 255] ^
           slice[5][chunk >> 16 & 255] ^ slice[4][chunk >> 24 & 255] ^
           slice[3][chunk >> 32 & 255] ^ slice[2][chunk >> 40 & 255] ^
           slice[1][chunk >> 48 & 255] ^ slice[0][chunk >> 56];
}

uint32_t tc_crc_bytes(uint32_t reg, const uint8_t *data, uint32_t n)
{
    for (; n >= STEP; n -= STEP, data += STEP)
        reg = step(reg, load(data));
    for (; n; n--)
        reg = slice[0][(reg ^ *data++) & 255] ^ reg >> 8;
    return reg;
}

uint32_t tc_crc_masked(uint32_t reg, const uint8_t *data, const uint8_t *mask,
                       uint32_t n)
{
    for (; n >= STEP; n -= STEP, data += STEP, mask += STEP)
        reg = step(reg, load(data) | load(mask));
    for (; n; n--)
        reg = slice[0][(reg ^ (*data++ | *mask++)) & 255] ^ reg >> 8;
    return reg;
}

uint32_t tc_crc_zeros(uint32_t reg, uint32_t n)
{
    for (; n; n &= n - 1)
        reg = apply(zeros[__builtin_ctz(n)], reg);
    return reg;
}
