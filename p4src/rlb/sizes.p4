// SPDX-License-Identifier: Apache-2.0
// Sizes of RLB's state, and ids of the field lists that clones and recirculations preserve.
#ifndef RLB_SIZES_P4
#define RLB_SIZES_P4

const bit<32> PATH_PORTS = 256;   // all numbers of ports to other switches are less
const bit<32> LEAVES     = 128;   // all numbers of leaves are less
const bit<32> PATHS      = PATH_PORTS * LEAVES;
#define PATH_INDEX(port, leaf) ((bit<32>)(port) * LEAVES + (bit<32>)(leaf))

const bit<32> LONGEST_TICKS = 0xFFFFFFFF;  // longer times are stored as this
const bit<32> RECIRCULATION_COUNTS = 256;  // values of a packet's 8-bit count

#define KEEP_FOR_CNM 2            // ids of field lists; Flowcut uses 1
#define KEEP_FOR_RECIRCULATION 3

#endif
