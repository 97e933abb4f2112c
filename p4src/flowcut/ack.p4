// SPDX-License-Identifier: Apache-2.0
// A Flowcut ACK at a switch that stamped the data packet: updates bytes in flight, RTT, drain (Flowcut §II-A, §II-B).
//
//   entry found    in flight -= bytes; 0 -> entry deleted, XON if the flow was draining (pause.p4)
//                  RTT or its growth above the threshold -> XOFF (at the source's switch), or the ACK is marked
//   untracked      the data packet had no entry: untracked bytes of the bucket -= bytes
//   neither        the bytes are no longer counted: no update
#ifndef FLOWCUT_ACK_P4
#define FLOWCUT_ACK_P4
#include "flowcut/moved.p4"
#include "flowcut/pause.p4"
#include "flowcut/lookup.p4"
#include "flowcut/rtt.p4"

// Largest value of bth.left: this many packets of the message remain, or more. It counts as above every threshold.
const bit<8> LEFT_OR_MORE = 127;

// Decides whether the flow should be drained to take a new path.
control Congested(in flowcut_ack_t ack, in bit<32> index, in bit<16> average, in int<16> growth,
                  in flowcut_config_t config, out bool drain) {
    apply {
        bit<8> remaining_packets;
        flow_left.read(remaining_packets, index);
        drain = (average > config.rtt_threshold || growth > (int<16>)config.growth_threshold || ack.congested == 1)
            && (remaining_packets == 0 || remaining_packets == LEFT_OR_MORE || remaining_packets > config.min_left);
    }
}

control AckOfTracked(in lookup_t lookup, in bit<32> flow_hash, in ticks_t now_ticks, in bool at_source,
                     in flowcut_config_t config, inout headers_t hdr, out Instruction_t instruction) {
    NormaliseRtt() normalise_rtt;
    AverageRtt() average_rtt;
    Congested() congested;
    NoteEnd() note_end;

    apply {
        bit<16> normalised;
        bit<16> average;
        int<16> growth;
        bool drain;
        FlowState_t state;
        bit<32> in_flight = lookup.in_flight_bytes |-| (bit<32>)hdr.ack.bytes;
        instruction = Instruction_t.NONE;
        flow_in_flight_bytes.write(lookup.index, in_flight);
        if (hdr.stamps[0].moved == 1) {
            flow_moved.write(lookup.index, 0);
        }
        flow_state.read(state, lookup.index);
        normalise_rtt.apply(now_ticks[31:0] - hdr.stamps[0].ticks, hdr.ack.hops - (hdr.ack.stamps - 1),
                            hdr.ack.bytes, config.ticks_per_byte, normalised);  // stamps - 1: links before this switch
        average_rtt.apply(lookup.index, normalised, config.alpha, average, growth);
        congested.apply(hdr.ack, lookup.index, average, growth, config, drain);
        if (in_flight == 0) {
            port_t out_port;
            flow_out_port.read(out_port, lookup.index);
            note_end.apply(flow_hash, out_port, state != FlowState_t.TRACKED || drain);
            if (state == FlowState_t.DRAINING) {
                instruction = Instruction_t.RESUME;
            }
            flowcut_deleted.count(0);
        } else if (state == FlowState_t.DRAINING) {
            // §IV-C: at most resume_bytes can be overtaken, which bounds the degree of reordering.
            instruction = Instruction_t.STAY_STOPPED;
            if (at_source && config.resume_bytes != 0 && in_flight <= config.resume_bytes) {
                flow_state.write(lookup.index, FlowState_t.RESELECT);
                instruction = Instruction_t.RESUME;
            }
        } else if (state == FlowState_t.TRACKED && drain) {
            flow_state.write(lookup.index, FlowState_t.DRAINING);
            flow_after_stop_bytes.write(lookup.index, 0);
            instruction = Instruction_t.STOP;
            hdr.ack.congested = 1;  // for the source's switch, if that is another switch
        }
    }
}

// Whether the entry counts the bytes that an ACK acknowledges. Bytes sent over a withdrawn path, and bytes of an entry
// that exceeded its age, are no longer counted, but their ACKs may still arrive.
control IsCounted(in lookup_t lookup, in bit<32> stamp_ticks, in bit<1> untracked, in ticks_t now_ticks,
                  in ticks_t age_ticks, out bool is_counted) {
    apply {
        ticks_t since_ticks;
        flow_since_ticks.read(since_ticks, lookup.index);
        is_counted = lookup.found && untracked == 0;
        // stamps wrap, so they are compared only with times within the age; no ACK is in flight for longer
        if (STAMPS_COMPARABLE(age_ticks) && !LONG_AGO(now_ticks, since_ticks, age_ticks)) {
            is_counted = is_counted && !IS_BEFORE(stamp_ticks, since_ticks[31:0]);
        }
    }
}

control AckHere(in lookup_t lookup, in bit<32> flow_hash, in ticks_t now_ticks, in flowcut_config_t config,
                inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    AckOfTracked() ack_of_tracked;
    IsCounted() find_whether_counted;
    TellSource() tell_source;

    apply {
        Instruction_t instruction = Instruction_t.NONE;
        bool at_source = hdr.ack.stamps == 1;
        bool is_counted;
        find_whether_counted.apply(lookup, hdr.stamps[0].ticks, hdr.stamps[0].untracked, now_ticks, config.age_ticks,
                                   is_counted);
        if (is_counted) {
            ack_of_tracked.apply(lookup, flow_hash, now_ticks, at_source, config, hdr, instruction);
        } else {
            if (hdr.stamps[0].untracked == 1) {
                untracked_bytes.write(lookup.bucket, lookup.untracked_bytes |-| (bit<32>)hdr.ack.bytes);
            }
            acks_unknown.count(0);
        }
        standard_metadata.egress_spec = hdr.stamps[0].in_port;
        hdr.stamps.pop_front(1);
        hdr.ack.stamps = hdr.ack.stamps - 1;
        if (at_source) {
            tell_source.apply(instruction, lookup.index, hdr, meta, standard_metadata);
        }
    }
}

#endif
