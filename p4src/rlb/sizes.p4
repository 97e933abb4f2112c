// SPDX-License-Identifier: Apache-2.0
// Sizes of RLB's state, and the field lists that it keeps over clones and recirculations.
#ifndef RLB_SIZES_P4
#define RLB_SIZES_P4

const bit<32> PATH_PORTS = 256;   // ports to other switches have smaller numbers
const bit<32> LEAVES     = 128;   // so have leaves
const bit<32> PATHS      = PATH_PORTS * LEAVES;
#define PATH_INDEX(port, leaf) ((bit<32>)(port) * LEAVES + (bit<32>)(leaf))

const bit<32> LONGEST_TICKS = 0xFFFFFFFF;
const bit<32> RECIRCULATION_COUNTS = 256;  // a packet counts its own in 8 bits

#define KEEP_FOR_CNM 2            // field lists; 1 is Flowcut's
#define KEEP_FOR_RECIRCULATION 3

#endif
