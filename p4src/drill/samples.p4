// SPDX-License-Identifier: Apache-2.0
// DRILL's candidates: two random slots and a remembered one, and the queue lengths of their ports. A table can be
// applied only once for a packet, so each candidate has its own copy of the table group_members.
//
//   remembered_members, first_members, other_members    (group, slot) -> sampled(port)
#ifndef DRILL_SAMPLES_P4
#define DRILL_SAMPLES_P4
#include "common/ecmp.p4"
#include "common/other_slot.p4"
#include "common/queues.p4"

const bit<32> NO_PORT_BYTES = 0xFFFFFFFF;  // load of a slot without a port: the largest value

// Two random slots, different if the group has two; all pairs have equal probability. `value`: the last random number.
control DrawSlots(in bit<16> size, out bit<16> first, out bit<16> other, out bit<32> value) {
    SlotOf() slot_of;
    OtherSlot() other_slot;

    apply {
        random(value, 32w0, 32w0xFFFFFFFF);
        slot_of.apply(value, size, first);
        random(value, 32w0, 32w0xFFFFFFFF);
        other_slot.apply(value, first, size, other);
    }
}

control MeasureLoads(in group_t group, in bit<16> remembered, in bit<16> first, in bit<16> other,
                     out bit<32> remembered_bytes, out bit<32> first_bytes, out bit<32> other_bytes) {
    QueueLoad() queue_load;
    bool found = false;
    port_t port = 0;

    action sampled(@name("port") port_t member_port) {
        found = true;
        port = member_port;
    }
    action not_sampled() {
        found = false;
    }
    @name("remembered_members")
    table remembered_members {
        key = {
            group      : exact @name("group");
            remembered : exact @name("slot");
        }
        actions = { sampled; not_sampled; }
        const default_action = not_sampled();
        size = 16384;
    }
    @name("first_members")
    table first_members {
        key = {
            group : exact @name("group");
            first : exact @name("slot");
        }
        actions = { sampled; not_sampled; }
        const default_action = not_sampled();
        size = 16384;
    }
    @name("other_members")
    table other_members {
        key = {
            group : exact @name("group");
            other : exact @name("slot");
        }
        actions = { sampled; not_sampled; }
        const default_action = not_sampled();
        size = 16384;
    }

    apply {
        remembered_bytes = NO_PORT_BYTES;
        first_bytes = NO_PORT_BYTES;
        other_bytes = NO_PORT_BYTES;
        remembered_members.apply();
        if (found) {
            queue_load.apply(port, remembered_bytes);
        }
        first_members.apply();
        if (found) {
            queue_load.apply(port, first_bytes);
        }
        other_members.apply();
        if (found) {
            queue_load.apply(port, other_bytes);
        }
    }
}

#endif
