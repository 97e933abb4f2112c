// SPDX-License-Identifier: Apache-2.0
// Keeps the order of flows that data.p4 has moved from a withdrawn path, while packets could still be on that path. The
// last switch drops a packet if its first switch sent it before another packet that has already arrived over the newer
// path. After a path has failed, the transport has to retransmit lost packets anyway. Stamps show the times of sending:
// each switch that tracks the flow adds a stamp_t (common/headers.p4) in front of earlier ones; the ACK returns them.
//
//   at the switch that moves the flow   its stamps have `moved` set until an ACK returns such a stamp: then the last
//                                       switch has a record of the move
//   at the last switch                  a record (slot: 16 bits of the flow's hash): the flow, when its newest moved
//                                       packet passed its first switch, by that switch's clock (the oldest, last stamp)
//
// A record is valid for the age (age_ticks, config.p4): no packet is in the network for longer. Meanwhile,
// another flow's moved packets that need the same slot are dropped.
#ifndef FLOWCUT_MOVED_P4
#define FLOWCUT_MOVED_P4
#include "common/drops.p4"
#include "flowcut/table.p4"

// Written and read only here.
@name("moved_key") register<packed_key_t>(MOVED_SLOTS) moved_key;
@name("moved_sent_ticks") register<bit<32>>(MOVED_SLOTS) moved_sent_ticks;
@name("moved_seen_ticks") register<ticks_t>(MOVED_SLOTS) moved_seen_ticks;  // arrival, by this switch's clock; 0: never

// Whether `ticks` is before `than_ticks`, modulo 2^32; and whether the age is short enough for such comparisons.
#define IS_BEFORE(ticks, than_ticks) (((ticks) - (than_ticks))[31:31] == 1)
#define STAMPS_COMPARABLE(age_ticks) ((age_ticks) < (ticks_t)(1 << 31))

// From a packet's stamps: when its first switch sent it, and whether any switch has moved the flow.
control SummariseStamps(in headers_t hdr, out bit<32> sent_ticks, out bit<1> moved) {
    apply {
        sent_ticks = hdr.stamps[0].ticks;
        moved = hdr.stamps[0].moved;
#define LOOK_AT(i) if (hdr.shim.stamps > i) { \
            sent_ticks = hdr.stamps[i].ticks; \
            moved = moved | hdr.stamps[i].moved; \
        }
        LOOK_AT(1)
        LOOK_AT(2)
        LOOK_AT(3)
        LOOK_AT(4)
        LOOK_AT(5)
        LOOK_AT(6)
    }
}

control KeepOrder(in bit<32> flow_hash, in ticks_t now_ticks, in ticks_t age_ticks, in headers_t hdr,
                  inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    SummariseStamps() summarise_stamps;
    Drop() drop;

    apply {
        bit<32> sent_ticks;
        bit<1> moved;
        packed_key_t stored;
        bit<32> newest_ticks;
        ticks_t seen_ticks;
        bit<32> slot = flow_hash >> 16;
        packed_key_t key = PACKED(meta.flow);
        summarise_stamps.apply(hdr, sent_ticks, moved);
        moved_seen_ticks.read(seen_ticks, slot);
        moved_key.read(stored, slot);
        moved_sent_ticks.read(newest_ticks, slot);
        bool is_current = seen_ticks != 0 && STAMPS_COMPARABLE(age_ticks)
            && !LONG_AGO(now_ticks, seen_ticks, age_ticks);
        // A packet cannot be older than the age; if it seems older, its first switch's clock was reset. A packet of the
        // same tick without `moved` is from before the move.
        bit<32> behind_ticks = newest_ticks - sent_ticks;
        bool is_late = (ticks_t)behind_ticks <= age_ticks && (behind_ticks != 0 || moved == 0);
        if (is_current && stored == key && is_late) {
            drop.apply(DropReason_t.PATH_WITHDRAWN, meta, standard_metadata);
        } else if (moved == 1) {
            if (is_current && stored != key) {
                drop.apply(DropReason_t.PATH_WITHDRAWN, meta, standard_metadata);
            } else {
                moved_key.write(slot, key);
                moved_sent_ticks.write(slot, sent_ticks);
                moved_seen_ticks.write(slot, now_ticks);
            }
        }
    }
}

#endif
