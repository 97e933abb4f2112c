/* CRC-32 (IEEE 802.3, reflected) as the ICRC needs it: over bytes, and over
 * many zero bytes at once.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions take and return the raw CRC register, TC_CRC_START at first; the
 * CRC is the complement of the last. Appending zero bytes is a linear map of
 * the register, so n of them cost a few table look-ups for any n.
 */
#ifndef TC_CRC_H
#define TC_CRC_H

#include <stdint.h>

#define TC_CRC_START UINT32_MAX
#define TC_CRC_MAX_ZEROS ((1u << 17) - 1)

/* Fills the tables; must be called first, and may be called again. */
void tc_crc_init(void);

/* The register after n more bytes. */
uint32_t tc_crc_bytes(uint32_t reg, const uint8_t *data, uint32_t n);

/* The register after n more bytes, each ORed with the byte of `mask`. */
uint32_t tc_crc_masked(uint32_t reg, const uint8_t *data, const uint8_t *mask,
                       uint32_t n);

/* The register after n more zero bytes, n <= TC_CRC_MAX_ZEROS. */
uint32_t tc_crc_zeros(uint32_t reg, uint32_t n);

#endif
