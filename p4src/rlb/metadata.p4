// SPDX-License-Identifier: Apache-2.0
// Metadata of RLB's blocks. Included before all other files, since it becomes part of metadata_t.
#ifndef RLB_METADATA_P4
#define RLB_METADATA_P4
#include "common/types.p4"
#include "pfc/metadata.p4"
#include "rlb/sizes.p4"

// Preserved when a packet is recirculated or resubmitted: the selector is applied only once (common/selector.p4).
struct preserved_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  seen_before;       // it has passed ingress before
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  in_recirculation;  // it was sent to the recirculation port
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  from_host;
    @field_list(KEEP_FOR_RECIRCULATION) port_t  in_port;           // the port by which it arrived
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> bytes;             // its charge (common/queues.p4)
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> best;              // p and p_s of Alg. 1, slots of the group
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> second;
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> stride;            // distance between further slots (balance.p4)
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> chosen;            // p of the selector, before rlb/stay.p4
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  continues_search;  // Alg. 1 goes on in the next pass, from
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> search_slot;       // this slot as p,
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> search_next;       // this one as p_s;
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> unexamined;        // slots that were not examined yet
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  must_end;          // it may no longer recirculate
    @field_list(KEEP_FOR_RECIRCULATION) bit<8>  count;             // how often it was recirculated
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t first_ticks;       // when it arrived
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t sent_ticks;        // when its last recirculation began,
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t left_ticks;        // and when it left the recirculation port's queue
}

// State of examining the next hops towards a leaf for a CNM, which may take several passes through ingress.
struct review_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  unfinished;   // it goes on in the next pass
    @field_list(KEEP_FOR_RECIRCULATION) port_t  port;         // by which the CNM arrived
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> slot;         // the next one to examine
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  leads_there;  // the port is one of the next hops so far
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  is_open;      // one of them has no warning
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> valid_ticks;  // time until the first of their warnings ends
}

// What a CNM is made from: the only metadata that the clone preserves.
struct cnm_seed_t {
    @field_list(KEEP_FOR_CNM) bit<16> port;
    @field_list(KEEP_FOR_CNM) bit<16> leaf;
    @field_list(KEEP_FOR_CNM) bit<8>  priority;
    @field_list(KEEP_FOR_CNM) bit<32> valid_ticks;
}

// Parameters of prediction and warnings; see config.p4.
struct warning_config_t {
    bit<16> own_leaf;
    bit<1>  threshold_alone;
    bit<32> dt_ticks;
    bit<32> warn_bytes;
    bit<32> pause_bytes;
    bit<32> margin_ticks;
    bit<32> valid_ticks;
    bit<32> refresh_ticks;
    bit<16> first_session;
    bit<16> upstream_group;
    bit<16> first_relay;
    bit<32> stay_ticks;
}

struct rlb_t {
    preserved_t      preserved;
    review_t         review;
    cnm_seed_t       cnm;
    warning_config_t warnings;
}

#define KNOWS_RLB true
#define SCHEME_FIELDS rlb_t rlb;

#endif
