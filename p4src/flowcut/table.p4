// SPDX-License-Identifier: Apache-2.0
// The Flowcut table (Flowcut §II-A): state of a flow while its bytes are in flight between this switch and the egress
// switch. The data plane inserts entries, so the table consists of registers: a set-associative hash table of BUCKETS
// buckets with WAYS ways (entries), each with the full 5-tuple. An entry is free if no bytes of its flow are in flight.
//
//   bucket b:  | way 0 | way 1 | way 2 | way 3 | untracked bytes |        entry index = b * WAYS + way
//
// The guarantee of order rests on one rule: a flow may choose its next hop only while none of its bytes is in flight. If
// a flow finds no free entry (it is untracked), its bytes are counted for the bucket as a whole. While that count is not
// zero, no flow may insert an entry into the bucket, since the counted bytes could be its own.
// An entry whose flow has sent nothing for age_ticks has expired: bytes it still counts were lost. If an entry's port no
// longer leads to the destination, its bytes are no longer counted, and the flow moves at once; moved.p4 keeps order.
//
// Written and read only by flowcut/, only in ingress.
#ifndef FLOWCUT_TABLE_P4
#define FLOWCUT_TABLE_P4
#include "common/metadata.p4"
#include "flowcut/config.p4"
#include "flowcut/sizes.p4"

typedef bit<104> packed_key_t;
#define PACKED(flow) ((flow).src ++ (flow).dst ++ (flow).sport ++ (flow).dport ++ (flow).protocol)

// A detour in a Dragonfly with failed links can return to the source's switch. There the flow has two entries: one for
// packets from its host, and one for the same packets when they return, which take another next hop.
//   bit 104: packets from another switch     bits 103..0: the flow
typedef bit<105> entry_key_t;

// By entry index.
@name("flow_key") register<entry_key_t>(ENTRIES) flow_key;
@name("flow_in_flight_bytes") register<bit<32>>(ENTRIES) flow_in_flight_bytes;  // 0: entry is free
@name("flow_last_data_ticks") register<ticks_t>(ENTRIES) flow_last_data_ticks;
@name("flow_in_port") register<port_t>(ENTRIES) flow_in_port;                   // of the newest packet
@name("flow_out_port") register<port_t>(ENTRIES) flow_out_port;
@name("flow_state") register<FlowState_t>(ENTRIES) flow_state;
@name("flow_left") register<bit<8>>(ENTRIES) flow_left;                         // remaining packets, 0: not known
@name("flow_rtt_avg") register<bit<16>>(ENTRIES) flow_rtt_avg;                  // normalised RTT, 8.8
@name("flow_rtt_last") register<bit<16>>(ENTRIES) flow_rtt_last;                // 8.8
@name("flow_rtt_growth") register<bit<16>>(ENTRIES) flow_rtt_growth;            // two's complement, 8.8
@name("flow_samples") register<bit<8>>(ENTRIES) flow_samples;                   // ACKs so far, saturates
@name("flow_moved") register<bit<1>>(ENTRIES) flow_moved;                       // 1: stamps get `moved` (moved.p4)
@name("flow_since_ticks") register<ticks_t>(ENTRIES) flow_since_ticks;          // packets sent before it are not counted

// By bucket.
@name("untracked_bytes") register<bit<32>>(BUCKETS) untracked_bytes;
@name("untracked_last_ticks") register<ticks_t>(BUCKETS) untracked_last_ticks;

// The port of untracked flows, so that they keep it when the controller changes their group. Index: 16 bits of the
// flow's hash, including those of its bucket. A cell has no meaning while the bucket has no untracked bytes in flight,
// or if the flow has sent nothing for the age. The first flow takes the cell; other flows with the same 16 bits take
// their ECMP path, and are in order as long as their group does not change.
//   bits 31..16: the other bits of the hash    bit 15: the flow was moved (moved.p4)    bits 14..0: port + 1; 0: none yet
@name("untracked_port") register<bit<32>>(UNTRACKED_SLOTS) untracked_port;
@name("untracked_port_ticks") register<ticks_t>(UNTRACKED_SLOTS) untracked_port_ticks;  // last packet

// Smallest RTT seen for each hop count, without transmission time, in ticks; 0: none yet (§II-B: r_min(h)).
@name("rtt_min_ticks") register<bit<32>>(HOP_COUNTS) rtt_min_ticks;

// History of a flow, also while it has no entry, by 16 bits of its hash. It is only a hint: flows with the same 16 bits
// share it, and the order of packets does not depend on it.
//   bit 41: acknowledged before    bits 40..32: port of its last flowcut    bits 31..0: ports where the last flowcut
//   that ended was congested; one bit for all ports that are equal modulo 32
@name("flow_history") register<bit<42>>(HISTORY_SLOTS) flow_history;
typedef bit<32> port_bits_t;
struct history_t {
    bool        known;
    port_t      last_port;
    port_bits_t drained;
}
#define PORT_BIT(port) ((port_bits_t)1 << (bit<8>)(port)[4:0])

control ReadHistory(in bit<32> flow_hash, out history_t history) {
    apply {
        bit<42> word;
        flow_history.read(word, flow_hash >> 16);
        history.known = word[41:41] == 1;
        history.last_port = word[40:32];
        history.drained = word[31:0];
    }
}

control WriteHistory(in bit<32> flow_hash, in port_t last_port, in port_bits_t drained) {
    apply {
        flow_history.write(flow_hash >> 16, 1w1 ++ last_port ++ drained);
    }
}

// Notes the end of a flowcut. `was_congested`: it was drained, or its last ACK would have begun a drain; then its port
// is marked as congested, else the mark is removed.
control NoteEnd(in bit<32> flow_hash, in port_t port, in bool was_congested) {
    ReadHistory() read_history;
    WriteHistory() write_history;
    apply {
        history_t history;
        read_history.apply(flow_hash, history);
        port_bits_t drained = history.drained & ~PORT_BIT(port);
        if (was_congested) {
            drained = drained | PORT_BIT(port);
        }
        write_history.apply(flow_hash, port, drained);
    }
}

// The previous switch reports that the flow's last flowcut by this link ended in congestion: notes this for its port here.
control NoteDrained(in bit<32> flow_hash, inout history_t history) {
    WriteHistory() write_history;
    apply {
        history.drained = history.drained | PORT_BIT(history.last_port);
        write_history.apply(flow_hash, history.last_port, history.drained);
    }
}

@name("flowcut_created") counter(1, CounterType.packets_and_bytes) flowcut_created;
@name("flowcut_deleted") counter(1, CounterType.packets_and_bytes) flowcut_deleted;
@name("flowcut_rerouted") counter(1, CounterType.packets_and_bytes) flowcut_rerouted;  // new flowcut, new port
@name("flowcut_overflow") counter(1, CounterType.packets_and_bytes) flowcut_overflow;  // packets sent untracked
@name("flowcut_expired") counter(1, CounterType.packets_and_bytes) flowcut_expired;    // entries that exceeded their age
@name("flowcut_moved") counter(1, CounterType.packets_and_bytes) flowcut_moved;        // flows moved from withdrawn paths
@name("acks_made") counter(1, CounterType.packets_and_bytes) acks_made;
@name("acks_unknown") counter(1, CounterType.packets_and_bytes) acks_unknown;          // for bytes that no entry counts

#endif
