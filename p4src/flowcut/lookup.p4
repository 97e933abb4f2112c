// SPDX-License-Identifier: Apache-2.0
// Lookup in the flow table: a flow's entry in its bucket, or a free entry (way). Age limit: age_ticks (config.p4).
#ifndef FLOWCUT_LOOKUP_P4
#define FLOWCUT_LOOKUP_P4
#include "flowcut/table.p4"

struct lookup_t {
    entry_key_t key;
    bit<32> bucket;
    bit<32> untracked_slot;  // the flow's index in untracked_port
    bit<16> fingerprint;     // the bits of the hash that are not in untracked_slot
    bit<32> index;           // the flow's entry, if found
    bool    found;
    bool    expired;         // found, but the entry exceeded its age or belongs to another path
    bool    of_other_path;   // found and within its age, but the entry belongs to another path
    bit<32> in_flight_bytes; // of the entry found
    bit<32> free_index;      // an entry that is free or exceeded its age, if has_free
    bool    has_free;
    bool    evicts;          // the entry at free_index exceeded its age
    bit<32> untracked_bytes; // of the bucket; 0 if they exceeded their age
}

control LookUpWay(in bit<32> index, in ticks_t now_ticks, in ticks_t age_ticks,
                  inout lookup_t lookup) {
    apply {
        bit<32> in_flight;
        ticks_t last;
        entry_key_t stored;
        flow_in_flight_bytes.read(in_flight, index);
        flow_last_data_ticks.read(last, index);
        flow_key.read(stored, index);
        bool expired = LONG_AGO(now_ticks, last, age_ticks);
        if (in_flight != 0 && stored == lookup.key) {
            lookup.found = true;
            lookup.expired = expired;
            lookup.index = index;
            lookup.in_flight_bytes = in_flight;
        } else if (!lookup.has_free && (in_flight == 0 || expired)) {
            lookup.has_free = true;
            lookup.free_index = index;
            lookup.evicts = in_flight != 0;
        }
    }
}

// `at_source`: the lookup is for a packet from a host of this switch, or for the ACK of such a packet.
control LookUp(in flow_key_t flow, in bool at_source, in bit<32> flow_hash, in ticks_t now_ticks,
               in flowcut_config_t config, out lookup_t lookup) {
    LookUpWay() look_up_way;

    apply {
        lookup = { 1w1 ++ PACKED(flow), 0, 0, 0, 0, false, false, false, 0, 0, false, false, 0 };
        // The low bits select the ECMP slot, the high bits the slots of flowlets and history.
        lookup.bucket = (flow_hash >> 8) & (bit<32>)config.bucket_mask & (BUCKETS - 1);
        lookup.untracked_slot = (flow_hash >> 8) & (UNTRACKED_SLOTS - 1);
        lookup.fingerprint = flow_hash[31:24] ++ flow_hash[7:0];
        if (at_source) {
            lookup.key = 1w0 ++ PACKED(flow);
            lookup.fingerprint = ~lookup.fingerprint;
        }
        bit<32> first = lookup.bucket * WAYS;
        look_up_way.apply(first, now_ticks, config.age_ticks, lookup);
        look_up_way.apply(first + 1, now_ticks, config.age_ticks, lookup);
        look_up_way.apply(first + 2, now_ticks, config.age_ticks, lookup);
        look_up_way.apply(first + 3, now_ticks, config.age_ticks, lookup);
        ticks_t last;
        untracked_bytes.read(lookup.untracked_bytes, lookup.bucket);
        untracked_last_ticks.read(last, lookup.bucket);
        if (LONG_AGO(now_ticks, last, config.age_ticks)) {
            lookup.untracked_bytes = 0;
        }
    }
}

#endif
