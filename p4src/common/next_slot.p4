// SPDX-License-Identifier: Apache-2.0
// Round robin over the slots of a group.
#ifndef COMMON_NEXT_SLOT_P4
#define COMMON_NEXT_SLOT_P4
#include "common/types.p4"

// The slot after `slot`; after the last one, slot 0.
control NextSlot(in bit<16> slot, in bit<16> size, out bit<16> next) {
    apply {
        next = slot + 1;
        if (next >= size) {
            next = 0;
        }
    }
}

#endif
