// SPDX-License-Identifier: Apache-2.0
// All headers on the wire. tailrace/codec/layers has the same formats for Scapy; a test builds each header with Scapy
// and parses it with the compiled parser, and vice versa.
#ifndef COMMON_HEADERS_P4
#define COMMON_HEADERS_P4
#include "common/types.p4"

// Maximum number of stamps (stamp_t) in a packet: in Flowcut's full-switch variant, each switch before the egress
// switch adds a stamp. Data centre networks have a diameter below ten (Flowcut §II-B); paths here need five at most.
#define STAMPS 7

const bit<16> ETHERTYPE_IPV4     = 0x0800;
const bit<16> ETHERTYPE_TAILRACE = 0x88B5;  // IEEE 802: for local experiments
const bit<16> ETHERTYPE_LLDP     = 0x88CC;
const bit<16> ETHERTYPE_VLAN     = 0x8100;
const bit<16> ETHERTYPE_MAC_CONTROL = 0x8808;
#define MAC_TO_NEIGHBOUR 48w0x0180C2000001  // IEEE 802.3 annex 31B, for PAUSE: no bridge forwards it
const bit<8>  PROTOCOL_TCP       = 6;
const bit<8>  PROTOCOL_UDP       = 17;
const bit<16> UDP_ROCE           = 4791;  // RoCEv2
const bit<16> UDP_NIC_DATA       = 4793;  // the shim of a Flowcut NIC, then RoCEv2 (Flowcut §II-D)
const bit<16> UDP_NIC_ACK        = 4794;  // a Flowcut NIC's ACK
const bit<8>  BTH_ACKNOWLEDGE    = 0x11;  // RC: ACK and NAK
const bit<8>  BTH_CNP            = 0x81;
const bit<32> ETHERNET_BYTES     = 14;
const bit<16> IPV4_BYTES         = 20;
// The longest control packet between hosts, a CNP with a VLAN tag: IPv4, UDP, BTH, 16 reserved bytes and ICRC.
const bit<32> MAX_CONTROL_BYTES = ETHERNET_BYTES + 4 + (bit<32>)IPV4_BYTES + 8 + 12 + 16 + 4;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> ether_type;
}

// IEEE 802.1Q. The sender selects the class of paths with it (Spritz §III-D); no switch sends a tag to a host.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-----+-+-----------------------+-------------------------------+
//  | pcp |d|  vid (12)             |  next EtherType (16)          |
//  +-----+-+-----------------------+-------------------------------+
header vlan_t {
    bit<3>   pcp;
    bit<1>   dei;
    VlanId_t vid;
    bit<16>  next_ether_type;
}

// Follows EtherType 0x88B5; the subtype is the type of the next header.
enum bit<8> Subtype_t {
    DATA_SHIM   = 1,  // between switches, in front of IPv4
    FLOWCUT_ACK = 2,  // between switches
    FLOW_PAUSE  = 3,  // from a switch to a host
    CNM         = 4,  // RLB §III-B, between switches
    PATH_PROBE  = 5,  // RLB §V, between switches
    DETOUR      = 6   // between switches of one Dragonfly group, in front of everything else
}
header tailrace_t {
    Subtype_t subtype;
}

//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-------+-------+-------------------------------+
//  | hops  |stamps |        next EtherType         |  then `stamps` stamps, the newest first
//  +-------+-------+-------------------------------+
// Flowcut's header on data between switches (§III-A1), with two changes.
// DEVIATION: the paper reserves the four bits beside the hop count; here they count the stamps. Stamps are needed since
// in the full-switch variant each switch measures an RTT (§II-C). And if a switch has no entry for a flow, it has not
// stored the input port: then the stamp gives the port to which the ACK is sent.
header shim_t {
    bit<4>  hops;    // links between switches that the packet was sent on
    bit<4>  stamps;
    bit<16> next_ether_type;
}

// What a switch adds to a data packet, and receives in its ACK. DEVIATION: 4 bytes of time where the paper has 2, which
// wrap after 65 us if a tick is 1 ns. Here a tick may be longer or shorter; time must not wrap within a round trip.
header stamp_t {
    bit<32> ticks;      // arrival at the switch that added the stamp, by that switch's clock
    bit<1>  moved;      // the flow has left a withdrawn path here; its earlier packets may still be on that path
    bit<1>  untracked;  // the flow has no entry in this switch's table
    bit<1>  drained;    // a new flowcut; the flow's last flowcut by the same port was drained for congestion
    bit<4>  reserved;
    bit<9>  in_port;    // the packet's ingress port, to which its ACK is sent
}

// ACK between switches (Flowcut §II-A, §III-A1): the flow's 5-tuple (13 bytes), size, hops and stamps of the data packet.
//  +----------------+----------------+---------+---------+----------+
//  |  src (32)      |   dst (32)     |sport(16)|dport(16)|protocol 8|
//  +----------------+--+------+------+---------+---------+----------+
//  | bytes (24)        | hops |stamps|0 hb c 8 |  hb, c: hops_back, congested; then `stamps` stamps
//  +-------------------+------+------+---------+
header flowcut_ack_t {
    ipv4_addr_t  src;       // the 5-tuple is that of the data packet
    ipv4_addr_t  dst;
    bit<16> sport;
    bit<16> dport;
    bit<8>  protocol;
    bit<24> bytes;     // frame length of the data packet as its host sent it
    bit<4>  hops;
    bit<4>  stamps;
    bit<3>  reserved;
    bit<4>  hops_back; // links over which the ACK was forwarded by its route and not by stamps
    bit<1>  congested; // a switch after the ingress switch requests a drain
}

// For packets that leave their Dragonfly group for another group than the destination's (Valiant's routing, Flowcut
// §III-C4). The source's switch sends such a packet to a switch with a link to `group`, which removes the header as it
// sends the packet over this link. So the header occurs only within the source's group.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-------------------------------+-------------------------------+
//  |  group (16)                   |  next EtherType (16): IPv4, or 0x88B5 again and a shim
//  +-------------------------------+-------------------------------+
header detour_t {
    bit<16> group;            // next-hop group towards the other Dragonfly group; same id in all switches, not 0
    bit<16> next_ether_type;
}

// Operations of Flowcut's fine-grain flow control (§II-B).
enum bit<8> PauseOp_t {
    XOFF        = 1,
    XOFF_CREDIT = 2,  // stop after sending credit_bytes more
    XON         = 3
}
header flow_pause_t {
    ipv4_addr_t    src;     // 5-tuple of the data flow
    ipv4_addr_t    dst;
    bit<16>   sport;
    bit<16>   dport;
    bit<8>    protocol;
    PauseOp_t op;
    bit<32>   credit_bytes;
}

// Congestion notification message (RLB §III-B.1): the link over which the message arrives is about to be paused. It is
// forwarded hop by hop to the switches that can still send packets over other paths.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-------------------------------+-------------------------------+
//  |  port (16)                    |  leaf (16)                    |
//  +---------------+---------------+-------------------------------+
//  |  priority (8) |  hops (8)     |
//  +---------------+---------------+-------------------------------+
//  |  valid ticks (32)                                             |
//  +---------------------------------------------------------------+
#define LEAF_ALL 0xFFFF
header cnm_t {
    bit<16> port;         // ingress port whose queue grows, at the switch that predicts the pause
    bit<16> leaf;         // only packets to this leaf's hosts wait there; LEAF_ALL: to any leaf
    bit<8>  priority;     // of the queues that will be paused
    bit<8>  hops;         // switches that have forwarded the message
    bit<32> valid_ticks;  // how long it is valid after its arrival; 0: withdrawn
}

// IEEE 802.1Qbb: a MAC control frame that pauses queues by their priority.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-------------------------------+-------------------------------+
//  |  opcode (16)                  |  classes (16)                 |
//  +-------------------------------+-------------------------------+
//  |  quanta of priority 0 (16)    |  of 1 to 7 (7 * 16)           |
//  +-------------------------------+-------------------------------+
header pfc_t {
    bit<16>  opcode;          // 0x0101
    bit<16>  classes;         // bit p: the quanta of priority p are valid
    bit<16>  quanta_of_data;  // data has priority 0; in units of 512 bit times; 0: resume
    bit<112> quanta_of_others;
}
// Pads a PFC frame to Ethernet's minimum length.
header pfc_padding_t {
    bit<208> zeros;
}

// Measures the RTT of a path from leaf to leaf, on data between switches (RLB §V). It carries a stamp of the sending
// leaf, and echoes (sends back) an earlier stamp of the receiving leaf.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-+-+-----------+
//  |s|e|  0 (6)    |                                                    s: has a stamp, e: has an echo
//  +-+-+-----------+---------------+-------------------------------+
//  |  leaf (16)                    |  path (16)                    |
//  +-------------------------------+-------------------------------+
//  |  ticks (32)                                                   |
//  +-------------------------------+-------------------------------+
//  |  echo path (16)               |
//  +-------------------------------+-------------------------------+
//  |  echo ticks (32)                                              |
//  +---------------------------------------------------------------+
//  |  echo wait (32)                                               |
//  +-------------------------------+-------------------------------+
//  |  next EtherType (16)          |
//  +-------------------------------+
header path_probe_t {
    bit<1>  stamped;
    bit<1>  echoes;
    bit<6>  reserved;
    bit<16> leaf;         // stamp: the sending leaf
    bit<16> path;         // port by which the packet left it
    bit<32> ticks;        // when the packet left, by the sender's clock
    bit<16> echo_path;    // echo: path and ticks of a stamp of the receiver,
    bit<32> echo_ticks;
    bit<32> echo_wait;    // and how long the echo waited for a packet at the sender, in the sender's ticks
    bit<16> next_ether_type;
}

header ipv4_header_t {
    bit<4>  version;
    bit<4>  ihl;
    Dscp_t  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<1>  reserved_flag;
    bit<1>  do_not_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_addr_t  src;
    ipv4_addr_t  dst;
}

// The first fields of TCP, which load balancing needs; the rest is treated as payload.
header tcp_ports_t {
    bit<16> sport;
    bit<16> dport;
}

header udp_t {
    bit<16> sport;
    bit<16> dport;
    bit<16> length;
    bit<16> checksum;
}

// InfiniBand base transport header. Tailrace uses two reserved fields, which other senders leave zero:
//   path_tag  beside FECN and BECN; the invariant CRC does not cover it, so switches may write it
//   left      beside the ACK request: how many packets of the message remain, this one included; 0 = not known,
//             127 = 127 or more (Flowcut §IV-C)
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migreq;
    bit<2>  pad_count;
    bit<4>  version;
    bit<16> pkey;
    bit<1>  fecn;
    bit<1>  becn;
    bit<6>  path_tag;
    bit<24> dqpn;
    bit<1>  ack_request;
    bit<7>  left;
    bit<24> psn;
}

// Between UDP and BTH of a packet to UDP_NIC_DATA (Flowcut §II-D): the ports that the sending NIC replaced, and a time.
header nic_shim_t {
    bit<16> sport;   // the flow's ports
    bit<16> dport;
    bit<32> ticks;   // time of sending, echoed in the NIC's ACK; switches ignore it
}

// ---- P4Runtime packet I/O ----

enum bit<8> PacketOutOp_t {
    SEND       = 0,  // send the payload at port `index`
    READ_FLOWS = 1,  // respond with Flowcut bucket `index`
    SWEEP      = 2,  // the same, after deletion of entries past their age
    READ_PORT  = 3,  // respond with the queue lengths of port `index`
    READ_PATH  = 4,  // RLB: respond with the state of path `index`, made of port and leaf (rlb/sizes.p4)
    READ_RLB_PORT = 5  // RLB: respond with this switch's warning for port `index`, and the state of recirculation
}
@controller_header("packet_out")
header packet_out_t {
    PacketOutOp_t op;
    bit<16>       index;
}

enum bit<8> PacketInReason_t {
    LLDP  = 0,  // index: ingress port
    FLOWS = 1,  // index: bucket
    PORT  = 2,  // index: port
    PATH  = 3,  // index: path
    RLB_PORT = 4  // index: port
}
@controller_header("packet_in")
header packet_in_t {
    PacketInReason_t reason;
    bit<16>          index;
}

// Responses to READ_FLOWS and SWEEP (bucket_t, then a flow_entry_t for each entry), READ_PORT, READ_PATH, READ_RLB_PORT.
// BMv2's P4Runtime server cannot read registers; these responses work on every target.
enum bit<8> FlowState_t {
    TRACKED  = 0,
    DRAINING = 1,  // the source was asked to pause
    RESELECT = 2   // early resume: the next packet takes a new path
}
header bucket_t {
    ticks_t now_ticks;
    bit<32> untracked_bytes;       // in flight, of flows for which the bucket had no free entry
    ticks_t untracked_last_ticks;  // when the last of them was sent
}
header flow_entry_t {
    ipv4_addr_t      src;
    ipv4_addr_t      dst;
    bit<16>     sport;
    bit<16>     dport;
    bit<8>      protocol;
    FlowState_t state;
    bit<16>     in_port;
    bit<16>     out_port;
    bit<32>     in_flight_bytes;  // 0: the entry is free
    ticks_t     last_data_ticks;
    bit<16>     rtt_avg;          // normalised RTT, unsigned 8.8
    bit<16>     rtt_last;         // unsigned 8.8
    bit<16>     rtt_growth;       // signed 8.8
    bit<8>      left;             // bth.left of the newest packet
    bit<8>      samples;          // 0: no ACK yet
}
header port_queues_t {
    bit<32> egress_queue_bytes;
    bit<32> ingress_queue_bytes;
}
header path_state_t {
    ticks_t now_ticks;
    ticks_t warned_until_ticks;       // end of a warning for this leaf
    ticks_t port_warned_until_ticks;  // end of a warning for all leaves behind the port
    ticks_t rtt_seen_ticks;           // when the RTT was measured
    bit<32> rtt_ticks;                // 0: never measured
}
header rlb_port_t {
    ticks_t now_ticks;
    ticks_t own_warning_ticks;         // when this switch last sent a warning for the port; 0: no warning
    ticks_t recirculation_seen_ticks;  // when the delay was measured; 0: never
    bit<32> recirculation_ticks;       // t_rc
    bit<16> recirculating;             // packets that are being recirculated
}

// Bytes that Tailrace adds to a data frame: subtype and shim, each stamp, and other headers.
const bit<32> SHIM_BYTES   = 4;
const bit<32> STAMP_BYTES  = 6;
const bit<32> DETOUR_BYTES = 5;  // with its subtype
const bit<32> PROBE_BYTES  = 22; // with its subtype

struct headers_t {
    packet_out_t           packet_out;
    packet_in_t            packet_in;
    bucket_t               bucket;
    flow_entry_t[4]        entries;
    port_queues_t          port_queues;
    path_state_t           path_state;
    rlb_port_t             rlb_port;
    ethernet_t             ethernet;
    vlan_t                 vlan;
    tailrace_t             detour_tag;
    detour_t               detour;
    tailrace_t             tailrace;
    shim_t                 shim;
    flowcut_ack_t          ack;
    flow_pause_t           pause;
    cnm_t                  cnm;
    pfc_t                  pfc;
    pfc_padding_t          pfc_padding;
    path_probe_t           probe;
    stamp_t[STAMPS]        stamps;
    ipv4_header_t               ipv4;
    tcp_ports_t            tcp;
    udp_t                  udp;
    nic_shim_t             nic_shim;
    bth_t                  bth;
}

#endif
