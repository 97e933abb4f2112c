// SPDX-License-Identifier: Apache-2.0
// The Flowcut table (Flowcut §II-A): what is known of a flow while its bytes are in flight between this switch and
// the egress switch. Inserts come from the data plane, so it is made of registers: BUCKETS buckets of WAYS ways,
// each with the whole 5-tuple. A way is free when nothing of its flow is in flight.
//
//   bucket b:  | way 0 | way 1 | way 2 | way 3 | untracked bytes |        entry index = b * WAYS + way
//
// The guarantee rests on one rule: a flow may choose its next hop only while none of its bytes is in flight. A flow
// that finds no free way is not in the table, so its bytes are counted with the bucket, and while that count is not
// zero, no flow enters the bucket: one of them could be the newcomer's own.
// An entry whose flow has been silent for age_ticks is dead: what it still counts was lost. An entry whose port leads
// to the destination no more is forgotten at once, and its flow moved: moved.p4 keeps its order.
//
// Written and read only by flowcut/, only in ingress.
#ifndef FLOWCUT_TABLE_P4
#define FLOWCUT_TABLE_P4
#include "common/metadata.p4"
#include "flowcut/config.p4"
#include "flowcut/sizes.p4"

typedef bit<104> packed_key_t;
#define PACKED(flow) ((flow).src ++ (flow).dst ++ (flow).sport ++ (flow).dport ++ (flow).protocol)

// By entry index.
@name("flow_key") register<packed_key_t>(ENTRIES) flow_key;
@name("flow_in_flight_bytes") register<bit<32>>(ENTRIES) flow_in_flight_bytes;  // 0: way is free
@name("flow_last_data_ticks") register<ticks_t>(ENTRIES) flow_last_data_ticks;
@name("flow_in_port") register<port_t>(ENTRIES) flow_in_port;                   // of the newest packet
@name("flow_out_port") register<port_t>(ENTRIES) flow_out_port;
@name("flow_state") register<FlowState_t>(ENTRIES) flow_state;
@name("flow_left") register<bit<8>>(ENTRIES) flow_left;                         // packets left, 0: not said
@name("flow_rtt_avg") register<bit<16>>(ENTRIES) flow_rtt_avg;                  // normalised RTT, 8.8
@name("flow_rtt_last") register<bit<16>>(ENTRIES) flow_rtt_last;                // 8.8
@name("flow_rtt_growth") register<bit<16>>(ENTRIES) flow_rtt_growth;            // two's complement, 8.8
@name("flow_samples") register<bit<8>>(ENTRIES) flow_samples;                   // ACKs so far, saturates
@name("flow_moved") register<bit<1>>(ENTRIES) flow_moved;                       // data says so still: moved.p4
@name("flow_since_ticks") register<ticks_t>(ENTRIES) flow_since_ticks;          // what was sent before is not counted

// By bucket.
@name("untracked_bytes") register<bit<32>>(BUCKETS) untracked_bytes;
@name("untracked_last_ticks") register<ticks_t>(BUCKETS) untracked_last_ticks;

// The port of untracked flows, so that they keep it when the controller changes a group under them. By 16 bits of the
// flow's hash that include those of its bucket. Of no meaning while the bucket has nothing untracked in flight, or
// when the flow has been silent for its age. A slot serves the flow that came first; another one with the same 16
// bits goes its ECMP path, in order as long as nobody changes its group.
//   bits 31..16: the other bits of the hash    bit 15: the flow was moved (moved.p4)    bits 14..0: port + 1; 0: none yet
@name("untracked_port") register<bit<32>>(UNTRACKED_SLOTS) untracked_port;
@name("untracked_port_ticks") register<ticks_t>(UNTRACKED_SLOTS) untracked_port_ticks;  // last packet

// Smallest RTT seen for each hop count, without transmission time, in ticks; 0: none yet (§II-B: r_min(h)).
@name("rtt_min_ticks") register<bit<32>>(HOP_COUNTS) rtt_min_ticks;

// What is remembered of a flow that has no entry, by 16 bits of its hash. A hint only: flows that share a slot
// may take each other's advice, and no order depends on it.
//   bit 41: acknowledged before    bits 40..32: port of its last flowcut    bits 31..0: ports that were congested when
//   a flowcut ended there, and have not done well since, a bit for the ports that are equal modulo 32
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

// A flowcut has ended. One that ended by itself speaks for its port; one that was drained, or whose last ACK would have
// begun a drain, against it.
control NoteEnd(in bit<32> flow_hash, in port_t port, in bool was_bad) {
    ReadHistory() read_history;
    WriteHistory() write_history;
    apply {
        history_t history;
        read_history.apply(flow_hash, history);
        port_bits_t drained = history.drained & ~PORT_BIT(port);
        if (was_bad) {
            drained = drained | PORT_BIT(port);
        }
        write_history.apply(flow_hash, port, drained);
    }
}

// The switch before says that a flow's last flowcut by this way ended in congestion: so the last one here did.
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
@name("flowcut_expired") counter(1, CounterType.packets_and_bytes) flowcut_expired;    // entries past their age
@name("flowcut_moved") counter(1, CounterType.packets_and_bytes) flowcut_moved;        // left withdrawn paths in flight
@name("acks_made") counter(1, CounterType.packets_and_bytes) acks_made;
@name("acks_unknown") counter(1, CounterType.packets_and_bytes) acks_unknown;          // of no entry's bytes

#endif
