// SPDX-License-Identifier: Apache-2.0
// Sizes of Flowcut's state. The controller may restrict it to fewer buckets (bucket_mask).
#ifndef FLOWCUT_SIZES_P4
#define FLOWCUT_SIZES_P4

const bit<32> BUCKETS         = 1024;
const bit<32> WAYS            = 4;      // entries of a bucket; lookup.p4 and inspect.p4 handle them one by one
const bit<32> ENTRIES         = BUCKETS * WAYS;
const bit<32> UNTRACKED_SLOTS = 65536;  // 64 for each bucket
const bit<32> HISTORY_SLOTS   = 65536;  // index: 16 bits of the flow's hash
const bit<32> MOVED_SLOTS     = 65536;  // index: 16 bits of the flow's hash
const bit<32> HOP_COUNTS      = 16;     // values of the shim's 4-bit hop count

#endif
