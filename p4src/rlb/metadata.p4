// SPDX-License-Identifier: Apache-2.0
// What RLB's blocks know of a packet. Included before all else, because it becomes part of metadata_t.
#ifndef RLB_METADATA_P4
#define RLB_METADATA_P4
#include "common/types.p4"
#include "pfc/metadata.p4"
#include "rlb/sizes.p4"

// A packet that recirculates or is resubmitted takes this along: the selector is asked once (common/selector.p4).
struct kept_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  again;        // it was in ingress before
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  waits;        // it was sent to the recirculation port
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  from_host;
    @field_list(KEEP_FOR_RECIRCULATION) port_t  in_port;      // the link that brought it
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> bytes;        // what it was charged with
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> best;         // p and p_s of Alg. 1, slots of the group
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> second;
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> stride;       // from one further slot to the next
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> chosen;       // p of the selector, before rlb/stay.p4
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  searches;     // Alg. 1 goes on: it has come to
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> slot;         // this slot,
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> next;         // this one is next,
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> left;         // and so many were not looked at
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  ends;         // it may not recirculate any more
    @field_list(KEEP_FOR_RECIRCULATION) bit<8>  count;        // how often it was recirculated
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t first_ticks;  // when it came in
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t sent_ticks;   // when it was sent round the last time,
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t left_ticks;   // and when it left the recirculation port's queue
}

// What is found of the next hops towards a leaf when a CNM came, which may take several passes through ingress.
struct review_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  goes_on;
    @field_list(KEEP_FOR_RECIRCULATION) port_t  port;         // by which the CNM came
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> slot;         // the next one to look at
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  leads_there;  // the port is one of the next hops so far
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  is_open;      // one of them is not warned of
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> valid_ticks;  // how long none is
}

// What a CNM is made of: a clone sees nothing else of this switch.
struct cnm_seed_t {
    @field_list(KEEP_FOR_CNM) bit<16> port;
    @field_list(KEEP_FOR_CNM) bit<16> leaf;
    @field_list(KEEP_FOR_CNM) bit<8>  priority;
    @field_list(KEEP_FOR_CNM) bit<32> valid_ticks;
}

// How a port's queue is judged and its warnings are sent; see config.p4.
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
    kept_t           kept;
    review_t         review;
    cnm_seed_t       cnm;
    warning_config_t warnings;
}

#define KNOWS_RLB true
#define SCHEME_FIELDS rlb_t rlb;

#endif
