// SPDX-License-Identifier: Apache-2.0
// Every header on the wire, decided here once. tailrace/codec/layers mirrors the formats in Scapy; a test builds
// each header there and has the compiled parser read it, and the reverse.
#ifndef COMMON_HEADERS_P4
#define COMMON_HEADERS_P4
#include "common/types.p4"

// The longest path, in switches before the egress switch, that a full-switch Flowcut can stamp. Data centre
// networks have a diameter lower than ten (Flowcut §II-B); up/down and Dragonfly paths here need five at most.
#define STAMPS 7

const bit<16> ETHERTYPE_IPV4     = 0x0800;
const bit<16> ETHERTYPE_TAILRACE = 0x88B5;  // IEEE 802: for local experiments
const bit<16> ETHERTYPE_LLDP     = 0x88CC;
const bit<16> ETHERTYPE_VLAN     = 0x8100;
const bit<16> ETHERTYPE_MAC_CONTROL = 0x8808;
#define MAC_TO_NEIGHBOUR 48w0x0180C2000001  // IEEE 802.3 annex 31B, of PAUSE: no bridge forwards it
const bit<8>  PROTOCOL_TCP       = 6;
const bit<8>  PROTOCOL_UDP       = 17;
const bit<16> UDP_ROCE           = 4791;  // RoCEv2
const bit<16> UDP_NIC_DATA       = 4793;  // RoCEv2 behind the shim of a Flowcut NIC (Flowcut §II-D)
const bit<16> UDP_NIC_ACK        = 4794;  // a Flowcut NIC's ACK
const bit<8>  BTH_ACKNOWLEDGE    = 0x11;  // RC: ACK and NAK
const bit<8>  BTH_CNP            = 0x81;
const bit<32> ETHERNET_BYTES     = 14;
const bit<16> IPV4_BYTES         = 20;
// The longest packet of control between hosts, a CNP: with a VLAN tag, UDP, BTH, 16 reserved bytes and the ICRC.
const bit<32> CONTROL_MOST_BYTES = ETHERNET_BYTES + 4 + (bit<32>)IPV4_BYTES + 8 + 12 + 16 + 4;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> ether_type;
}

// IEEE 802.1Q. A sender says with it what kind of path its packet takes (Spritz §III-D); no host ever gets one.
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

// Follows EtherType 0x88B5 and says what comes next.
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
// Flowcut §III-A1 with two changes.
// DEVIATION: the paper reserves the four bits beside the hop count; they count the stamps here, because in the
// full-switch variant each switch measures its own RTT (§II-C), and because the ACK of a flow that did not fit
// into a switch's table must find its way back without the input port stored there.
header shim_t {
    bit<4>  hops;    // links between switches that the packet was sent on
    bit<4>  stamps;
    bit<16> next_ether_type;
}

// DEVIATION: 4 bytes of time where the paper needs 2, which hold 65 us of nanoseconds: a tick may be longer or
// shorter here, and a round trip may never wrap.
header stamp_t {
    bit<32> ticks;      // arrival at the switch that put it here, by its own clock
    bit<1>  moved;      // the flow has left a withdrawn path here, on which packets of it may still be
    bit<1>  untracked;  // not in this switch's table
    bit<1>  drained;    // a new flowcut, and the last one that left here by the same port ended in congestion
    bit<4>  reserved;
    bit<9>  in_port;    // where the packet came from, so where its ACK goes
}

// Flowcut §II-A and §III-A1: 13 bytes of key, then size, counters and the stamps of the data packet.
//  +----------------+----------------+---------+---------+----------+
//  |  src (32)      |   dst (32)     |sport(16)|dport(16)|protocol 8|
//  +----------------+--+------+------+---------+---------+----------+
//  | bytes (24)        | hops |stamps|0|hb|c 8 |  then `stamps` stamps
//  +-------------------+------+------+---------+
header flowcut_ack_t {
    ipv4_addr_t  src;       // the data flow's, not the ACK's own
    ipv4_addr_t  dst;
    bit<16> sport;
    bit<16> dport;
    bit<8>  protocol;
    bit<24> bytes;     // frame length of the data packet as its host sent it
    bit<4>  hops;
    bit<4>  stamps;
    bit<3>  reserved;
    bit<4>  hops_back; // links that the ACK was sent on by its route, not by its stamps
    bit<1>  congested; // a switch behind the ingress switch asks for a drain
}

// A packet that leaves its Dragonfly group for another one than its destination's (Valiant's routing, Flowcut
// §III-C4). From the switch of the source it goes to a switch that has a link to `group`; that link ends the detour,
// and from its other end on the packet is one like all others. So no switch of another group ever sees this header.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-------------------------------+-------------------------------+
//  |  group (16)                   |  next EtherType (16): IPv4, or 0x88B5 again and a shim
//  +-------------------------------+-------------------------------+
header detour_t {
    bit<16> group;            // group of next hops that lead there; the same number in every switch, not 0
    bit<16> next_ether_type;
}

// Flowcut §II-B: the operations of fine-grain flow control.
enum bit<8> PauseOp_t {
    XOFF        = 1,
    XOFF_CREDIT = 2,  // stop after credit_bytes more
    XON         = 3
}
header flow_pause_t {
    ipv4_addr_t    src;     // of the data flow
    ipv4_addr_t    dst;
    bit<16>   sport;
    bit<16>   dport;
    bit<8>    protocol;
    PauseOp_t op;
    bit<32>   credit_bytes;
}

// Congestion notification message: the port by which the frame comes in is about to be paused (RLB §III-B.1). It goes
// hop by hop to the switches that could still send around the port.
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
    bit<16> port;         // whose ingress queue grows, of the switch that predicts the pause
    bit<16> leaf;         // only packets to the hosts of this leaf wait there; LEAF_ALL: those to any
    bit<8>  priority;     // of the queues that will be paused
    bit<8>  hops;         // switches that have passed the message on
    bit<32> valid_ticks;  // so long after its arrival; 0: withdrawn
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
    bit<16>  classes;         // bit p: the frame speaks of priority p
    bit<16>  quanta_of_data;  // data has priority 0; in units of 512 bit times, 0: go on
    bit<112> quanta_of_others;
}
// Fills a PFC frame up to the shortest that Ethernet has.
header pfc_padding_t {
    bit<208> zeros;
}

// RTT of a path from leaf to leaf, on data between switches (RLB §V): a stamp that the other leaf shall send back, and
// the last one that it sent.
//   0               1               2               3
//   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//  +-+-+-----------+
//  |s|e|  0 (6)    |                                                    s: the stamp is there, e: the echo is
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
    bit<16> leaf;         // the sender
    bit<16> path;         // port by which the packet left it
    bit<32> ticks;        // when it left, by the sender's clock
    bit<16> echo_path;    // a stamp of the receiver,
    bit<32> echo_ticks;
    bit<32> echo_wait;    // and how long it waited for a packet to take it back, in ticks of the sender
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

// The part of TCP that balancing needs; the rest stays payload.
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

// InfiniBand base transport header. Two reserved fields carry what Tailrace needs, both zero at other senders:
//   path_tag  beside FECN and BECN, which the invariant CRC leaves out, so switches may write it
//   left      beside the ACK request: packets of the message that are left with this one, 0 = not said,
//             127 = so many or more (Flowcut §IV-C)
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

// Between UDP and BTH of a packet to UDP_NIC_DATA (Flowcut §II-D): what the sending NIC changed, and its clock.
header nic_shim_t {
    bit<16> sport;   // the flow's own
    bit<16> dport;
    bit<32> ticks;   // echoed in the NIC's ACK; of no meaning to switches
}

// ---- P4Runtime packet I/O ----

enum bit<8> PacketOutOp_t {
    SEND       = 0,  // the payload leaves at port `index`
    READ_FLOWS = 1,  // answer with Flowcut bucket `index`
    SWEEP      = 2,  // the same, after deleting what is past its age
    READ_PORT  = 3,  // answer with the queues of port `index`
    READ_PATH  = 4,  // RLB: answer with path `index`, port and leaf as rlb/sizes.p4 has it
    READ_RLB_PORT = 5  // RLB: answer with the own warning of port `index`, and with recirculation
}
@controller_header("packet_out")
header packet_out_t {
    PacketOutOp_t op;
    bit<16>       index;
}

enum bit<8> PacketInReason_t {
    LLDP  = 0,  // index: port it came from
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

// Answers to READ_FLOWS and SWEEP (bucket, then one flow_entry_t a way), READ_PORT, READ_PATH and READ_RLB_PORT.
// Registers cannot be read over BMv2's P4Runtime; these answers work on every target.
enum bit<8> FlowState_t {
    TRACKED  = 0,
    DRAINING = 1,  // the source was asked to stop
    RESELECT = 2   // early resume: the next packet takes a new path
}
header bucket_t {
    ticks_t now_ticks;
    bit<32> untracked_bytes;
    ticks_t untracked_last_ticks;
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
    bit<32>     in_flight_bytes;  // 0: the way is free
    ticks_t     last_data_ticks;
    bit<16>     rtt_avg;          // normalised RTT, unsigned 8.8
    bit<16>     rtt_last;         // unsigned 8.8
    bit<16>     rtt_growth;       // signed 8.8
    bit<8>      left;
    bit<8>      samples;          // 0: no ACK yet
}
header port_queues_t {
    bit<32> egress_queue_bytes;
    bit<32> ingress_queue_bytes;
}
header path_state_t {
    ticks_t now_ticks;
    ticks_t warned_until_ticks;       // of this leaf
    ticks_t port_warned_until_ticks;  // of all leaves behind the port
    ticks_t rtt_seen_ticks;           // when the RTT was measured
    bit<32> rtt_ticks;                // 0: never measured
}
header rlb_port_t {
    ticks_t now_ticks;
    ticks_t own_warning_ticks;         // when this switch last warned of the port; 0: no warning
    ticks_t recirculation_seen_ticks;  // when the delay was measured; 0: never
    bit<32> recirculation_ticks;       // t_rc
    bit<16> recirculating;             // packets on their way round
}

// What Tailrace adds to a data frame: the subtype, the shim, and so much a stamp.
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
