// SPDX-License-Identifier: Apache-2.0
// Types and closed sets of values that more than one block uses. Python reads the sets from P4Info
// (type_info.serializable_enums), so that no value is typed there again.
#ifndef COMMON_TYPES_P4
#define COMMON_TYPES_P4

typedef bit<9>  port_t;
typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> group_t;
typedef bit<48> ticks_t;  // v1model's clock: 1 us on BMv2, --tick-ns on the native switch

// Whether `then_ticks` is more than `span_ticks` ago. BMv2 takes a packet's time where it is received, in several
// threads, so a packet may be older than one that was handled before it: that is not "long ago", modulo 2^48.
#define LONG_AGO(now_ticks, then_ticks, span_ticks) \
    ((now_ticks) - (then_ticks) > (span_ticks) && (now_ticks) - (then_ticks) < (ticks_t)(1 << 47))

// Every port number that a switch may have (v1model's port is 9 bits wide).
const bit<32> PORTS = 512;

// Ports that are no link. BMv2 and the native switch are started with --cpu-port and --drop-port as here; Python
// reads the numbers from the annotation of `main` in P4Info.
#define WAITING_PORT 507
#define PAUSE_PORT 508
#define MIRROR_PORT 509
#define CPU_PORT    510
#define DROP_PORT   511
#define QUEUES      8
#define ACK_SESSION 1
#define PAUSE_SESSION 2
enum bit<9> SpecialPort_t {
    WAITING = WAITING_PORT,  // where data waits for a port that is paused (pfc/); nothing is connected
    PAUSE  = PAUSE_PORT,   // where pause frames are made of clones; nothing is connected
    MIRROR = MIRROR_PORT,  // where clones wait on their way to be recirculated; nothing is connected
    CPU    = CPU_PORT,     // packet-out and packet-in
    DROP   = DROP_PORT
}
#define TAILRACE_MAIN @switch[waiting_port=WAITING_PORT, pause_port=PAUSE_PORT, pause_session=PAUSE_SESSION, \
                              mirror_port=MIRROR_PORT, cpu_port=CPU_PORT, drop_port=DROP_PORT, \
                              priority_queues=QUEUES, ack_session=ACK_SESSION, stamps=STAMPS, \
                              leaf_all=LEAF_ALL]

// Queues of a port; strict priority, the larger value goes first. Started with --priority-queues QUEUES.
const bit<3> PRIORITY_DATA    = 0;
const bit<3> PRIORITY_CONTROL = QUEUES - 1;

// IPv4's DSCP, of the code points for local use (RFC 2474 §6: xxxx11). The three bits in the middle are marks; D and T
// may each stand with S, but not with each other: one is of control packets, the other of data.
//
//      0   1   2   3   4   5       D: demoted: a control packet that goes with data (common/control_limits.p4)
//    +---+---+---+---+---+---+     T: trimmed (common/trim.p4)
//    | 0 | D | T | S | 1 | 1 |     S: steered by its entropy value in every mode (spritz)
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

// VLAN numbers that name a class of paths (Spritz §III-D). No tag: the default table. 1 is what bridges give to all.
enum bit<12> VlanId_t {
    MINIMAL    = 2,
    NONMINIMAL = 3
}

// What a packet is to the pipeline, decided once, in admission.p4.
enum bit<4> PacketKind_t {
    NONE        = 0,  // already dealt with: dropped, answered or sent to the controller
    DATA        = 1,  // IPv4 with ports, to be balanced
    CONTROL     = 2,  // IPv4 that must not wait behind data: RoCE ACK, NAK and CNP, a NIC's Flowcut ACK
    OTHER       = 3,  // IPv4 without ports: ICMP, fragments
    FLOWCUT_ACK = 4,
    CNM         = 5,
    TRIMMED     = 6   // headers of RoCE data, which must not wait behind data either
}

// What a port does with data while the watchdog of pauses keeps it open (pfc/watch.p4).
enum bit<2> Storm_t {
    NONE   = 0,  // there is none
    DROP   = 1,
    IGNORE = 2   // send it all the same
}

// Why a packet was dropped; index of the counter `drops`.
enum bit<8> DropReason_t {
    MALFORMED         = 0,  // ends inside a header, wrong IPv4 checksum, IPv4 options
    UNSUPPORTED       = 1,  // an EtherType or subtype that no block handles
    CONTROL_FROM_HOST = 2,  // a control frame of the fabric that came in at a host port
    TTL_EXPIRED       = 3,
    NO_ROUTE          = 4,  // no prefix, or no next hop in its group
    QUEUE_LIMIT       = 5,  // the program's own limit of the egress queue
    PATH_WITHDRAWN    = 6,  // Flowcut: late from a path that was withdrawn, or moved from it and not to be ordered
    NO_STAMP_SPACE    = 7,  // Flowcut: more switches on the path than the shim has stamps
    BAD_PORT          = 8,  // packet-out to a port that no switch has
    NO_WAITING_ROOM   = 9,  // PFC, where it is emulated: more packets than may wait for paused ports
    PFC_STORM         = 10, // likewise: pauses held the port for too long
    SPOOFED_SOURCE    = 11  // IPv4 from a host's port with an address that is not one of its hosts'
}
const bit<32> DROP_REASONS = 12;

// What a host said, or a program had from it, that it may not say, or not so often; it is forwarded all the same. Index
// of the counter `policed`.
enum bit<8> Policed_t {
    CONTROL_TOO_LONG   = 0,  // looks like an ACK, NAK, CNP or NIC ACK and is longer than any, or not as long as it says: data
    CONTROL_OVER_RATE  = 1,  // more control packets than a host's port may send: demoted
    CONTROL_OVER_SHARE = 2,  // more than may go before the data of an egress port: demoted
    TRIMMED_BY_HOST    = 3,  // a mark that only switches give: taken off
    STEERED_BY_HOST    = 4,  // a mark that the hosts here may not give: taken off
    CLASS_BY_HOST      = 5   // a VLAN tag where tags are not for hosts to give: taken off
}
const bit<32> POLICED_KINDS = 6;

#endif
