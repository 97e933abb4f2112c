// SPDX-License-Identifier: Apache-2.0
// User metadata: values of a packet that blocks (controls) pass to each other. v1model sets it to 0 before the parser.
#ifndef COMMON_METADATA_P4
#define COMMON_METADATA_P4
#include "common/types.p4"
#include "common/headers.p4"

// Id of the field list that a clone and its recirculation preserve.
const bit<8> KEEP_FOR_ACK = 1;

// A 5-tuple: that of an IPv4 packet, or for a Flowcut ACK that of the acknowledged flow.
struct flow_key_t {
    ipv4_addr_t src;
    ipv4_addr_t dst;
    bit<16>     sport;
    bit<16>     dport;
    bit<8>      protocol;
}

struct route_t {
    bool    to_host;
    group_t group;       // group of next hops, unless to_host
    bit<16> group_size;
}

// What ingress has added to the queue accounts (common/queues.p4). Egress subtracts exactly this, even if the packet's
// length has changed in between.
struct charge_t {
    bit<32> bytes;       // 0: not charged (clones, packets from the controller)
    port_t  in_port;
    port_t  out_port;
}

// Values from which the egress switch makes the ACK (flowcut/ack_maker.p4). A clone has the headers of the packet that
// leaves the switch, without shim and stamps, so metadata carries the stamps.
struct ack_seed_t {
    @field_list(KEEP_FOR_ACK) bit<1>           wanted;   // 1: egress makes an ACK of the packet
    @field_list(KEEP_FOR_ACK) port_t           port;     // ingress port of the data packet
    @field_list(KEEP_FOR_ACK) bit<24>          bytes;    // frame length of the data packet, as its host sent it
    @field_list(KEEP_FOR_ACK) bit<4>           hops;     // of the shim (shim_t)
    @field_list(KEEP_FOR_ACK) bit<4>           stamps;   // number of stamps in `stack`
    @field_list(KEEP_FOR_ACK) bit<(STAMPS*48)> stack;    // newest stamp in the highest bits
}

// Metadata fields of one scheme; its program defines this macro before it includes this file.
#ifndef SCHEME_FIELDS
#define SCHEME_FIELDS
#endif

// Metadata fields of the emulation of PFC; programs with it include pfc/metadata.p4 before this file.
#ifndef PFC_FIELDS
#define PFC_FIELDS
#endif

struct metadata_t {
    PacketKind_t kind;
    bool         from_host;
    bool         within_group; // came from a switch of the same Dragonfly group
    flow_key_t   flow;
    bit<32>      frame_bytes;  // frame length as the host sent it, without Tailrace's headers
    route_t      route;
    group_t      detour;       // next-hop group of a detour by another Dragonfly group; 0: no detour
    group_t      origin;       // how the packet came to this switch (dragonfly/next_hop_group.p4)
    charge_t     charge;
    ack_seed_t   ack_seed;
    PFC_FIELDS
    SCHEME_FIELDS
}

#endif
