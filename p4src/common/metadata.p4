// SPDX-License-Identifier: Apache-2.0
// What the blocks tell each other about a packet. Set to zero by the parser's start (v1model clears metadata).
#ifndef COMMON_METADATA_P4
#define COMMON_METADATA_P4
#include "common/types.p4"
#include "common/headers.p4"

// Field lists that survive a clone or a recirculation.
const bit<8> KEEP_FOR_ACK = 1;

// The 5-tuple: of an IPv4 packet its own, of a Flowcut ACK the one it names.
struct flow_key_t {
    ipv4_addr_t src;
    ipv4_addr_t dst;
    bit<16>     sport;
    bit<16>     dport;
    bit<8>      protocol;
}

struct route_t {
    bool    to_host;
    group_t group;       // next hops, where not to a host
    bit<16> group_size;
}

// What was added to the queue accounts in ingress and must be taken off in egress: exactly that, whatever
// happened to the packet's length between the two.
struct charge_t {
    bit<32> bytes;       // 0: not charged (clones, packets from the controller)
    port_t  in_port;
    port_t  out_port;
}

// What the egress switch's ACK is made of (flowcut/ack_maker.p4). A clone sees the headers as they leave, without
// shim, so that the stamps travel here.
struct ack_seed_t {
    @field_list(KEEP_FOR_ACK) bit<1>           wanted;
    @field_list(KEEP_FOR_ACK) port_t           port;     // where the data came from
    @field_list(KEEP_FOR_ACK) bit<24>          bytes;
    @field_list(KEEP_FOR_ACK) bit<4>           hops;
    @field_list(KEEP_FOR_ACK) bit<4>           stamps;
    @field_list(KEEP_FOR_ACK) bit<(STAMPS*48)> stack;    // newest stamp in the highest bits
}

// What only the blocks of one scheme know of a packet: the fields, which its program defines before it includes this.
#ifndef SCHEME_FIELDS
#define SCHEME_FIELDS
#endif

// What only the emulation of PFC knows: pfc/metadata.p4, which its programs include before this.
#ifndef PFC_FIELDS
#define PFC_FIELDS
#endif

struct metadata_t {
    PacketKind_t kind;
    bool         from_host;
    bool         within_group; // came from a switch of this switch's Dragonfly group
    flow_key_t   flow;
    bit<32>      frame_bytes;  // as the host sent it: without Tailrace's headers
    route_t      route;
    group_t      detour;       // towards another Dragonfly group than the destination's; 0: none
    group_t      origin;       // how the packet came to this switch (dragonfly/next_hop_group.p4)
    charge_t     charge;
    ack_seed_t   ack_seed;
    PFC_FIELDS
    SCHEME_FIELDS
}

#endif
