// SPDX-License-Identifier: Apache-2.0
// Selects a second slot of a group that differs from a first one.
#ifndef COMMON_OTHER_SLOT_P4
#define COMMON_OTHER_SLOT_P4
#include "common/ecmp.p4"

// A slot other than `slot`, all with equal probability if `value` is random; in a group of size 1, `slot` itself.
control OtherSlot(in bit<32> value, in bit<16> slot, in bit<16> size, out bit<16> other) {
    SlotOf() slot_of;

    apply {
        other = slot;
        if (size > 1) {
            bit<16> skipped;
            slot_of.apply(value, size - 1, skipped);
            bit<17> sum = (bit<17>)slot + 1 + (bit<17>)skipped;
            if (sum >= (bit<17>)size) {
                sum = sum - (bit<17>)size;
            }
            other = (bit<16>)sum;
        }
    }
}

#endif
