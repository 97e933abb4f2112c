// SPDX-License-Identifier: Apache-2.0
// Types and enums that more than one block uses. Python reads the enums from P4Info (type_info.serializable_enums), so
// their values are defined only here.
#ifndef COMMON_TYPES_P4
#define COMMON_TYPES_P4

typedef bit<9>  port_t;
typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> group_t;
typedef bit<48> ticks_t;  // v1model's clock: 1 us on BMv2, --tick-ns on the native switch

// Whether `then_ticks` is more than `span_ticks` ago, modulo 2^48. BMv2 takes timestamps in several threads, so a packet
// may have an earlier time than one that was processed before it; such a small negative span is not "long ago".
#define LONG_AGO(now_ticks, then_ticks, span_ticks) \
    ((now_ticks) - (then_ticks) > (span_ticks) && (now_ticks) - (then_ticks) < (ticks_t)(1 << 47))

// Number of possible ports (v1model's port numbers have 9 bits).
const bit<32> PORTS = 512;

// Ports without a link. BMv2 and the native switch are started with --cpu-port and --drop-port of these values; Python
// reads the values from the annotation of `main` in P4Info.
#define WAITING_PORT 507
#define PAUSE_PORT 508
#define MIRROR_PORT 509
#define CPU_PORT    510
#define DROP_PORT   511
#define QUEUES      8
#define ACK_SESSION 1
#define PAUSE_SESSION 2
enum bit<9> SpecialPort_t {
    WAITING = WAITING_PORT,  // where data waits for a paused port (pfc/); nothing is connected
    PAUSE  = PAUSE_PORT,   // where clones become pause frames; nothing is connected
    MIRROR = MIRROR_PORT,  // where clones wait before they are recirculated; nothing is connected
    CPU    = CPU_PORT,     // packet-out and packet-in
    DROP   = DROP_PORT
}
#define TAILRACE_MAIN @switch[waiting_port=WAITING_PORT, pause_port=PAUSE_PORT, pause_session=PAUSE_SESSION, \
                              mirror_port=MIRROR_PORT, cpu_port=CPU_PORT, drop_port=DROP_PORT, \
                              priority_queues=QUEUES, ack_session=ACK_SESSION, stamps=STAMPS, \
                              leaf_all=LEAF_ALL]

// Queues of a port, with strict priority: larger values first. Switches are started with --priority-queues QUEUES.
const bit<3> PRIORITY_DATA    = 0;
const bit<3> PRIORITY_CONTROL = QUEUES - 1;

// IPv4's DSCP: code points for local use (RFC 2474 §6: xxxx11). Three bits are marks; S can be combined with D or T.
// D and T exclude each other: D marks control packets, T marks data.
//
//      0   1   2   3   4   5       D: demoted: a control packet in the queue of data (common/control_limits.p4)
//    +---+---+---+---+---+---+     T: trimmed (common/trim.p4)
//    | 0 | D | T | S | 1 | 1 |     S: steered: its entropy value selects the path (spritz/steer.p4)
//    +---+---+---+---+---+---+
enum bit<6> Dscp_t {
    DEFAULT         = 0,
    STEERED         = 0b000111,
    TRIMMED         = 0b001011,
    TRIMMED_STEERED = 0b001111,
    DEMOTED         = 0b010011,
    DEMOTED_STEERED = 0b010111
}
#define IS_STEERED(dscp) \
    ((dscp) == Dscp_t.STEERED || (dscp) == Dscp_t.TRIMMED_STEERED || (dscp) == Dscp_t.DEMOTED_STEERED)

// VLAN ids that select a class of paths (Spritz §III-D); no tag: the default table. Id 1 is the default of bridges.
enum bit<12> VlanId_t {
    MINIMAL    = 2,
    NONMINIMAL = 3
}

// Class of a packet; admission.p4 sets it.
enum bit<4> PacketKind_t {
    NONE        = 0,  // already handled: dropped, consumed or sent to the controller
    DATA        = 1,  // IPv4 with UDP or TCP ports, to be balanced
    CONTROL     = 2,  // IPv4 that must not wait behind data: RoCE ACK, NAK and CNP, a NIC's Flowcut ACK
    OTHER       = 3,  // IPv4 without ports: ICMP, fragments
    FLOWCUT_ACK = 4,  // between switches
    CNM         = 5,  // congestion notification message of RLB, between switches
    TRIMMED     = 6   // headers of RoCE data, which must not wait behind data
}

// What a port does with data during a pause storm, while the watchdog ignores pauses (pfc/watch.p4).
enum bit<2> Storm_t {
    NONE   = 0,  // no pause storm
    DROP   = 1,
    IGNORE = 2   // send it in spite of the pause
}

// Why a packet was dropped; the value is the index in the counter `drops`.
enum bit<8> DropReason_t {
    MALFORMED         = 0,  // ends inside a header, wrong IPv4 checksum, IPv4 options
    UNSUPPORTED       = 1,  // an EtherType or subtype that no block handles
    CONTROL_FROM_HOST = 2,  // a control frame of the fabric that came in at a host port
    TTL_EXPIRED       = 3,
    NO_ROUTE          = 4,  // no prefix, or no next hop in its group
    QUEUE_LIMIT       = 5,  // the program's limit of the egress queue
    PATH_WITHDRAWN    = 6,  // Flowcut: arrived late over a withdrawn path, or moved from it and its order cannot be ensured
    NO_STAMP_SPACE    = 7,  // Flowcut: more switches on the path than the shim has stamps
    BAD_PORT          = 8,  // packet-out to a port that no switch has
    NO_WAITING_ROOM   = 9,  // emulated PFC: too many packets wait for paused ports
    PFC_STORM         = 10, // emulated PFC: the port was paused for too long
    SPOOFED_SOURCE    = 11  // IPv4 from a host's port with a source address of none of its hosts
}
const bit<32> DROP_REASONS = 12;

// Why a host's packet lost a mark or its priority: the host may not use it, or uses it too often. The packet is still
// forwarded. The value is the index in the counter `policed`.
enum bit<8> Policed_t {
    CONTROL_TOO_LONG   = 0,  // ACK, NAK, CNP or NIC ACK that is too long or has inconsistent lengths: treated as data
    CONTROL_OVER_RATE  = 1,  // more control packets than a host's port may send: demoted
    CONTROL_OVER_SHARE = 2,  // more than an egress port may send before data: demoted
    TRIMMED_BY_HOST    = 3,  // a mark that only switches may set: removed
    STEERED_BY_HOST    = 4,  // a mark that these hosts may not set: removed
    CLASS_BY_HOST      = 5   // a VLAN tag although hosts may not send tags: removed
}
const bit<32> POLICED_KINDS = 6;

#endif
