// SPDX-License-Identifier: Apache-2.0
// A data packet at a switch that tracks flows: it stays on its flowcut's path, or gets a new one (Flowcut §II-A).
//
// next_hops.p4 or dragonfly/flowcut_paths.p4 define what a path is; the top program includes one of them before this.
//
//   Decide   -> port and changes of state, from the lookup     egress_spec: before, the ECMP choice; after, the port
//   Commit   -> writes the state, after the queue limit: a packet that is dropped there never counts as in flight
#ifndef FLOWCUT_DATA_P4
#define FLOWCUT_DATA_P4
#include "common/drops.p4"
#include "flowcut/moved.p4"
#include "flowcut/pause.p4"
#include "flowcut/lookup.p4"

enum bit<4> Decision_t {
    NONE      = 0,
    CONTINUE  = 1,  // stay on the flowcut that is in flight
    INSERT    = 2,  // a new flowcut
    RESELECT  = 3,  // a new path while bytes are in flight: early resume (§IV-C)
    UNTRACKED = 4,  // no free entry in the bucket, or untracked bytes in flight that may be this flow's
    MOVE      = 5   // a new path while bytes are in flight, because the old one was withdrawn (moved.p4)
}

struct decision_t {
    Decision_t what;
    bit<32>    index;      // entry, unless UNTRACKED
    bool       evicts;     // the entry belonged to a flow that was idle for age_ticks
    bool       rerouted;   // another port than this flow's last flowcut had
    bool       takes_slot; // UNTRACKED: writes its slot of untracked_port
    bit<1>     moved;      // for the stamp: the flow has left a path; packets of it may still be on that path
    bool       after_stop; // the flow drains: its source was sent an XOFF
    bit<1>     drained;    // for the stamp: the flow's last flowcut by this port was drained for congestion
}

// A flow with packets in flight keeps its port. If the controller has withdrawn that next hop, the flow moves at once,
// and the last switch keeps the order by the stamps: when packets were sent (moved.p4). So a packet in the same tick as
// the flow's last packet (`last_ticks`) is dropped. If age_ticks (the age) is too long for stamps to show the order,
// all packets are dropped until the flow has sent nothing for the age; then no packet can be left on the old path.
control StayOn(in port_t port, in next_hops_t next_hops, in ticks_t last_ticks, in ticks_t now_ticks,
               in ticks_t age_ticks, inout decision_t decision, inout metadata_t meta,
               inout standard_metadata_t standard_metadata, out bool moves) {
    Drop() drop;
    IsNextHop() is_next_hop;

    apply {
        bool still_there;
        moves = false;
        is_next_hop.apply(port, meta, next_hops, still_there);
        if (still_there) {
            standard_metadata.egress_spec = port;
        } else if (LONG_AGO(now_ticks, last_ticks, 0) && STAMPS_COMPARABLE(age_ticks)) {
            moves = true;
            decision.moved = 1;
            if (decision.what == Decision_t.CONTINUE) {
                decision.what = Decision_t.MOVE;
            }
            if (meta.from_host) {
                meta.detour = 0;  // it belonged to the old path
            }
        } else {
            decision.what = Decision_t.NONE;
            drop.apply(DropReason_t.PATH_WITHDRAWN, meta, standard_metadata);
        }
    }
}

// Decides for a flow that has no bytes in flight in an entry.
control DecideAnew(in lookup_t lookup, in bool known, in FirstPath_t first_path, inout decision_t decision,
                   out bool chooses_path) {
    apply {
        if (lookup.found) {
            decision.what = Decision_t.INSERT;
            decision.evicts = true;
            if (lookup.of_other_path) {
                decision.moved = 1;
            }
        } else if (lookup.untracked_bytes == 0 && lookup.has_free) {
            decision.what = Decision_t.INSERT;
            decision.index = lookup.free_index;
            decision.evicts = lookup.evicts;
        } else {
            decision.what = Decision_t.UNTRACKED;
        }
        // §II-A: packets sent before the first ACK take the ECMP path.
        chooses_path = decision.what == Decision_t.INSERT && (known || first_path == FirstPath_t.LEAST_LOADED);
    }
}

// The port by which an untracked flow may have bytes in flight. `keeps_port`: the flow must keep this port.
control ReadUntrackedPort(in lookup_t lookup, in ticks_t now_ticks, in ticks_t age_ticks, inout decision_t decision,
                          out bool keeps_port, out port_t port, out ticks_t last_ticks) {
    apply {
        bit<32> cell;
        untracked_port.read(cell, lookup.untracked_slot);
        untracked_port_ticks.read(last_ticks, lookup.untracked_slot);
        bool is_valid = cell != 0 && !LONG_AGO(now_ticks, last_ticks, age_ticks);
        keeps_port = is_valid && cell[31:16] == lookup.fingerprint;
        decision.takes_slot = keeps_port || !is_valid;
        if (keeps_port) {
            decision.moved = cell[15:15];
        }
        port = (port_t)(cell[14:0] - 1);
    }
}

// `after_drain`: the previous switch's stamp says that the flow's last flowcut was drained.
control Decide(in lookup_t lookup, in bit<32> flow_hash, in ticks_t now_ticks, in flowcut_config_t config,
               in next_hops_t next_hops, in bit<1> after_drain, out decision_t decision, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    ReadHistory() read_history;
    NoteDrained() note_drained;
    DecideAnew() decide_anew;
    ReadUntrackedPort() read_untracked_port;
    RecallPath() recall_path;
    NewPath() new_path;
    StayOn() stay_on;

    apply {
        bool keeps_port = false;
        bool chooses_path = false;
        bool moves = false;
        port_t current_port = 0;
        ticks_t last_ticks = 0;
        history_t history;
        FlowState_t state;
        decision = { Decision_t.NONE, lookup.index, false, false, true, 0, false, 0 };
        read_history.apply(flow_hash, history);
        if (after_drain == 1 && history.known && (!lookup.found || lookup.expired)) {
            note_drained.apply(flow_hash, history);
        }
        preference_t preference = { standard_metadata.egress_spec, history.drained, false, history.last_port };
        if (lookup.found && !lookup.expired) {
            flow_state.read(state, lookup.index);
            flow_out_port.read(current_port, lookup.index);
            flow_last_data_ticks.read(last_ticks, lookup.index);
            flow_moved.read(decision.moved, lookup.index);
            recall_path.apply(lookup.index, meta);
            chooses_path = state == FlowState_t.RESELECT;
            keeps_port = !chooses_path;
            decision.after_stop = state == FlowState_t.DRAINING;
            decision.what = Decision_t.CONTINUE;
            if (chooses_path) {
                decision.what = Decision_t.RESELECT;
                preference.avoids_last_port = true;
                preference.last_port = current_port;
            }
        } else {
            decide_anew.apply(lookup, history.known, config.first_path, decision, chooses_path);
            if (history.known) {
                preference.preferred = history.last_port;
                preference.avoids_last_port = history.drained & PORT_BIT(history.last_port) != 0;
            }
            if (decision.what == Decision_t.UNTRACKED && lookup.untracked_bytes != 0) {
                read_untracked_port.apply(lookup, now_ticks, config.age_ticks, decision, keeps_port, current_port,
                                          last_ticks);
            }
        }
        if (keeps_port) {
            stay_on.apply(current_port, next_hops, last_ticks, now_ticks, config.age_ticks, decision, meta,
                          standard_metadata, moves);
        }
        if (moves && decision.what == Decision_t.MOVE) {
            chooses_path = true;
            preference.avoids_last_port = true;
            preference.last_port = current_port;
        }
        if (chooses_path) {
            new_path.apply(next_hops, preference, flow_hash + now_ticks[31:0] * 0x9E3779B1, meta,  // varied hash
                           standard_metadata.egress_spec);
            decision.rerouted = standard_metadata.egress_spec != preference.last_port
                && (moves || decision.what == Decision_t.RESELECT || history.known);
        }
        if (decision.what == Decision_t.INSERT && history.drained & PORT_BIT(standard_metadata.egress_spec) != 0) {
            decision.drained = 1;
        }
    }
}

control Commit(in decision_t decision, in lookup_t lookup, in ticks_t now_ticks, in metadata_t meta,
               in bit<8> remaining_packets, in port_t in_port, in port_t out_port) {
    RememberPath() remember_path;
    NoteAfterStop() note_after_stop;

    apply {
        if (decision.what == Decision_t.UNTRACKED) {
            untracked_bytes.write(lookup.bucket, lookup.untracked_bytes + meta.frame_bytes);
            untracked_last_ticks.write(lookup.bucket, now_ticks);
            if (decision.takes_slot) {
                untracked_port.write(lookup.untracked_slot,
                                     lookup.fingerprint ++ decision.moved ++ ((bit<15>)out_port + 1));
                untracked_port_ticks.write(lookup.untracked_slot, now_ticks);
            }
            flowcut_overflow.count(0);
        } else if (decision.what != Decision_t.NONE) {
            bit<32> in_flight = meta.frame_bytes;
            if (decision.what == Decision_t.INSERT) {
                flow_key.write(decision.index, lookup.key);
                flow_state.write(decision.index, FlowState_t.TRACKED);
                flowcut_created.count(0);
            } else if (decision.what == Decision_t.MOVE) {
                flowcut_moved.count(0);  // a stopped source gets its XON when the count is zero
            } else {
                in_flight = in_flight + lookup.in_flight_bytes;
            }
            if (decision.what == Decision_t.INSERT || decision.what == Decision_t.MOVE) {
                flow_moved.write(decision.index, decision.moved);
                flow_since_ticks.write(decision.index, now_ticks);
            } else if (decision.what == Decision_t.RESELECT) {
                flow_state.write(decision.index, FlowState_t.TRACKED);
            }
            if (decision.what != Decision_t.CONTINUE) {
                flow_out_port.write(decision.index, out_port);
                remember_path.apply(decision.index, meta);
                flow_samples.write(decision.index, 0);  // the RTT of the new path is measured anew
                flow_rtt_avg.write(decision.index, 0);
                flow_rtt_last.write(decision.index, 0);
                flow_rtt_growth.write(decision.index, 0);
            }
            flow_in_flight_bytes.write(decision.index, in_flight);
            flow_last_data_ticks.write(decision.index, now_ticks);
            flow_in_port.write(decision.index, in_port);
            flow_left.write(decision.index, remaining_packets);
            if (decision.after_stop) {
                note_after_stop.apply(decision.index, meta.frame_bytes);
            }
            if (decision.evicts) {
                flowcut_expired.count(0);
            }
            if (decision.rerouted) {
                flowcut_rerouted.count(0);
            }
        }
    }
}

#endif
