// SPDX-License-Identifier: Apache-2.0
// The power of two choices for each flowlet: after a pause longer than the gap, a flow takes the less loaded of two
// random next hops. An example of a scheme outside of Tailrace's sources (docs/extend.md).
//
//   flowlet_config -> set_flowlet_gap(gap_ticks)
//   first_choices, other_choices    (group, slot) -> choice(port): copies of the table group_members
#include "pfc/metadata.p4"
#include <core.p4>
#include <v1model.p4>
#include "common/other_slot.p4"
#include "common/queues.p4"
#include "common/selector.p4"
#include "letflow/flowlets.p4"

const bool KNOWS_DETOURS = false;
const bool KNOWS_CLASSES = false;

const bit<32> NO_PORT_BYTES = 0xFFFFFFFF;  // the load of a slot without a port

// Queue lengths of the ports of two slots. A table can be applied only once for a packet, so each slot has its own copy.
control LoadsOfTwo(in group_t group, in bit<16> first, in bit<16> other,
                   out bit<32> first_bytes, out bit<32> other_bytes) {
    QueueLoad() queue_load;
    bool found = false;
    port_t port = 0;

    action choice(@name("port") port_t member_port) {
        found = true;
        port = member_port;
    }
    action no_choice() {
        found = false;
    }
    @name("first_choices")
    table first_choices {
        key = {
            group : exact @name("group");
            first : exact @name("slot");
        }
        actions = { choice; no_choice; }
        const default_action = no_choice();
        size = 16384;
    }
    @name("other_choices")
    table other_choices {
        key = {
            group : exact @name("group");
            other : exact @name("slot");
        }
        actions = { choice; no_choice; }
        const default_action = no_choice();
        size = 16384;
    }

    apply {
        first_bytes = NO_PORT_BYTES;
        other_bytes = NO_PORT_BYTES;
        first_choices.apply();
        if (found) {
            queue_load.apply(port, first_bytes);
        }
        other_choices.apply();
        if (found) {
            queue_load.apply(port, other_bytes);
        }
    }
}

// A selector (common/selector.p4 explains `best`, `second` and `order`). Packets other than data take their ECMP slot.
control TwoChoicesSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
                           inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
                           out bit<32> order) {
    // Index: 16 bits of the flow's hash, as in the flowlet table. Written and read only here.
    @name("chosen_slots") register<bit<16>>(FLOWLET_SLOTS) chosen_slots;
    Flowlets() flowlets;
    SlotOf() slot_of;
    OtherSlot() other_slot;
    LoadsOfTwo() loads_of_two;

    apply {
        bit<32> value = flow_hash;
        bool is_first = false;
        if (meta.kind == PacketKind_t.DATA) {
            flowlets.apply(flow_hash, standard_metadata.ingress_global_timestamp, value, is_first);
        }
        order = value;
        slot_of.apply(value, meta.route.group_size, best);
        // the upper half of the value is nearly independent of the value modulo the size
        other_slot.apply(value >> 16, best, meta.route.group_size, second);
        if (meta.kind == PacketKind_t.DATA) {
            bit<16> chosen;
            chosen_slots.read(chosen, flow_hash >> 16);
            if (is_first) {
                bit<32> best_bytes;
                bit<32> second_bytes;
                loads_of_two.apply(meta.route.group, best, second, best_bytes, second_bytes);
                chosen = best;
                if (second_bytes < best_bytes) {
                    chosen = second;
                }
                chosen_slots.write(flow_hash >> 16, chosen);
            }
            // if the group has become smaller than the chosen slot, `best` stays the random slot
            if (chosen == second) {
                second = best;
                best = chosen;
            } else if (chosen < meta.route.group_size) {
                best = chosen;
            }
        }
    }
}

#define SELECTOR TwoChoicesSelector
#include "common/take_slot.p4"
#include "common/baseline.p4"

TAILRACE_MAIN
V1Switch(PacketParser(), ChecksumVerify(), BaselineIngress(), LosslessEgress(), ChecksumUpdate(),
         PacketDeparser()) main;
