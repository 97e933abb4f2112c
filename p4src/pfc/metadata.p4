// SPDX-License-Identifier: Apache-2.0
// What the emulation of PFC knows of a packet. Included before all else, because it becomes part of metadata_t.
#ifndef PFC_METADATA_P4
#define PFC_METADATA_P4
#include "common/types.p4"

#define KEEP_FOR_WAITING 4  // field lists; 1 is Flowcut's, 2 and 3 are RLB's
#define KEEP_FOR_PAUSE   5

// See pfc/config.p4; all zero where PFC is the traffic manager's, or nobody's.
struct pfc_config_t {
    bit<32> xoff_bytes;
    bit<32> xon_bytes;
    bit<16> quanta;
    bit<32> refresh_ticks;
    bit<32> room;
    bit<32> patience_ticks;
    mac_t   station;
}

// What is said of one port; all zero where its pauses are not obeyed.
struct pfc_port_t {
    bit<32> quantum;
    ticks_t detect_ticks;
    ticks_t restore_ticks;
    bit<32> leak;
    Storm_t action_in_storm;
}

// A packet that waits takes this along: what it is charged with, so that its bytes stay where they are in the accounts.
struct pfc_wait_t {
    @field_list(KEEP_FOR_WAITING) bit<1>  numbered;    // it has its place in the order of its port
    @field_list(KEEP_FOR_WAITING) bit<32> number;
    @field_list(KEEP_FOR_WAITING) bit<1>  to_host;
    @field_list(KEEP_FOR_WAITING) bit<32> bytes;
    @field_list(KEEP_FOR_WAITING) port_t  in_port;
    @field_list(KEEP_FOR_WAITING) port_t  out_port;
    @field_list(KEEP_FOR_WAITING) ticks_t seen_ticks;  // when it was last in egress
}

// What a pause frame is made of: a clone sees nothing else.
struct pfc_ask_t {
    @field_list(KEEP_FOR_PAUSE) bit<1>  wanted;
    @field_list(KEEP_FOR_PAUSE) port_t  port;    // by which it leaves
    @field_list(KEEP_FOR_PAUSE) bit<16> quanta;  // 0: go on
}

struct pfc_state_t {
    pfc_config_t config;
    pfc_port_t   limits;        // of the port that it came by, or for which it waits
    pfc_wait_t   wait;
    pfc_ask_t    ask;
    bool         becomes_pause;  // a clone on its way out
}

#define PFC_FIELDS pfc_state_t pfc;

#endif
