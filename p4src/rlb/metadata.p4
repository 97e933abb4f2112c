// SPDX-License-Identifier: Apache-2.0
// Metadata of RLB's blocks. Included before all other files, since metadata_t has a member rlb_t. A slot is the number
// of a next hop in its group (common/ecmp.p4).
#ifndef RLB_METADATA_P4
#define RLB_METADATA_P4
#include "common/types.p4"
#include "pfc/metadata.p4"
#include "rlb/sizes.p4"

// State of a packet that recirculation and resubmission preserve. The selector is applied only once per packet.
struct preserved_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  seen_before;       // the packet has passed ingress before
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  in_recirculation;  // the packet was sent to the recirculation port
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  from_host;
    @field_list(KEEP_FOR_RECIRCULATION) port_t  in_port;           // the port at which the packet arrived
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> bytes;             // bytes charged to queues (common/queues.p4)
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> best;              // p of Algorithm 1: the slot to use (reroute.p4)
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> second;            // p_s of Algorithm 1: the slot to try after p
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> stride;            // distance between the slots tried after p_s
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> chosen;            // the selector's p, which stay.p4 does not change
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  continues_search;  // Algorithm 1 continues in the next pass
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> search_slot;       // p in the next pass
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> search_next;       // p_s in the next pass
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> unexamined;        // number of slots that were not examined yet
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  must_end;          // the packet may no longer recirculate
    @field_list(KEEP_FOR_RECIRCULATION) bit<8>  count;             // how often the packet was recirculated
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t first_ticks;       // when the packet arrived
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t sent_ticks;        // when the packet's last recirculation began
    @field_list(KEEP_FOR_RECIRCULATION) ticks_t left_ticks;        // when the packet left that port's queue
}

// State of the check of the next hops towards a leaf, after a CNM (congestion notification message, cnm.p4) has arrived.
// The check may take several passes through ingress.
struct review_t {
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  unfinished;   // the check continues in the next pass
    @field_list(KEEP_FOR_RECIRCULATION) port_t  port;         // port at which the CNM arrived
    @field_list(KEEP_FOR_RECIRCULATION) bit<16> slot;         // slot of the next hop to examine next
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  leads_there;  // the port is one of the next hops examined so far
    @field_list(KEEP_FOR_RECIRCULATION) bit<1>  is_open;      // an examined next hop has no warning
    @field_list(KEEP_FOR_RECIRCULATION) bit<32> valid_ticks;  // time until the first warning of an examined hop ends
}

// Values for the fields of a CNM: the only metadata that the clone preserves.
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
