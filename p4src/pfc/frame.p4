// SPDX-License-Identifier: Apache-2.0
// Constants of IEEE 802.1Qbb's frames (pfc_t).
#ifndef PFC_FRAME_P4
#define PFC_FRAME_P4
#include "common/types.p4"

const bit<16> OPCODE_PFC    = 0x0101;
const bit<16> CLASS_OF_DATA = 1 << PRIORITY_DATA;

#endif
