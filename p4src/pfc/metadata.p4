// SPDX-License-Identifier: Apache-2.0
// Metadata of the emulation of PFC. Included before all other files, since it becomes part of metadata_t.
#ifndef PFC_METADATA_P4
#define PFC_METADATA_P4
#include "common/types.p4"

#define KEEP_FOR_WAITING 4  // field lists; 1 is Flowcut's, 2 and 3 are RLB's
#define KEEP_FOR_PAUSE   5

// See pfc/config.p4; all zero if the traffic manager implements PFC, or if PFC is off.
struct pfc_config_t {
    bit<32> xoff_bytes;
    bit<32> xon_bytes;
    bit<16> quanta;
    bit<32> refresh_ticks;
    bit<32> room;
    bit<32> patience_ticks;
    mac_t   station;
}

// Configuration of one port (pfc/config.p4); all zero if its pauses are ignored.
struct pfc_port_t {
    bit<32> quantum;
    ticks_t detect_ticks;
    ticks_t restore_ticks;
    bit<32> leak;
    Storm_t action_in_storm;
}

// Metadata that a waiting packet keeps when it is recirculated. Its charge is kept, too: bytes, in_port and out_port.
struct pfc_wait_t {
    @field_list(KEEP_FOR_WAITING) bit<1>  numbered;    // has a sequence number of its egress port
    @field_list(KEEP_FOR_WAITING) bit<32> number;
    @field_list(KEEP_FOR_WAITING) bit<1>  to_host;
    @field_list(KEEP_FOR_WAITING) bit<32> bytes;
    @field_list(KEEP_FOR_WAITING) port_t  in_port;
    @field_list(KEEP_FOR_WAITING) port_t  out_port;
    @field_list(KEEP_FOR_WAITING) ticks_t seen_ticks;  // when it was last in egress
}

// Values for a pause frame: the only metadata that its clone preserves.
struct pfc_ask_t {
    @field_list(KEEP_FOR_PAUSE) bit<1>  wanted;
    @field_list(KEEP_FOR_PAUSE) port_t  port;    // by which the frame leaves
    @field_list(KEEP_FOR_PAUSE) bit<16> quanta;  // 0: resume
}

struct pfc_state_t {
    pfc_config_t config;
    pfc_port_t   limits;        // of the ingress port, or of the port for which the packet waits
    pfc_wait_t   wait;
    pfc_ask_t    ask;
    bool         becomes_pause;  // the packet is a clone that becomes a pause frame in egress
}

#define PFC_FIELDS pfc_state_t pfc;

#endif
