// SPDX-License-Identifier: Apache-2.0
// Optional (stay_ticks not 0): keeps a flow on the path to which Algorithm 1 (reroute.p4) has moved it. A slot is the
// number of a next hop in its group; p is the slot that the selector chooses for a packet. If p has a warning,
// Algorithm 1 replaces it by another slot, p_s (line 8). The flow's next packets begin their search at p_s, as long as
// the selector chooses the same p and the flow is not idle for more than stay_ticks.
//
// DEVIATION: the paper decides for each packet. But packets that return to p when the warning for p ends overtake
// packets that were sent by p_s, whereas a selector that keeps a flow on a path does so to preserve the order of
// packets.
#ifndef RLB_STAY_P4
#define RLB_STAY_P4
#include "common/metadata.p4"

// Index: hash of the flow. If two flows share a cell and a p, one begins its search at the slot to which the other was
// moved. Written and read in ingress only.
//
//     63       48 47       32 31             0
//    +-----------+-----------+----------------+
//    |  p + 1    | new slot  | time of last   |     0: not moved
//    +-----------+-----------+---- packet ----+
const bit<32> MOVED_FLOWS = 16384;
@name("moved_flows") register<bit<64>>(MOVED_FLOWS) moved_flows;

// If the flow was moved from the selector's p: `preserved.best` (p of Algorithm 1) becomes the slot to which the flow
// was moved; `preserved.chosen` remains the selector's p. `count`: number of next hops.
control StayMoved(in bit<32> flow_hash, in bit<16> count, in ticks_t now_ticks, in bit<32> stay_ticks,
                  inout preserved_t preserved) {
    apply {
        bit<64> moved;
        moved_flows.read(moved, (bit<32>)flow_hash[13:0]);
        if (moved[63:48] == preserved.best + 1 && moved[47:32] < count
            && now_ticks[31:0] - moved[31:0] <= stay_ticks) {
            if (preserved.second == moved[47:32]) {  // second: p_s, the slot to try after best
                preserved.second = preserved.best;
            }
            preserved.best = moved[47:32];
        }
    }
}

// Stores the slot by which the packet leaves, if it differs from the selector's p (`preserved.chosen`). Deletes the
// flow's move if the search began at another slot and ended at the selector's p.
control NoteMove(in bit<32> flow_hash, in bit<16> slot, in ticks_t now_ticks, in preserved_t preserved) {
    apply {
        if (slot != preserved.chosen) {
            moved_flows.write((bit<32>)flow_hash[13:0], (preserved.chosen + 1) ++ slot ++ now_ticks[31:0]);
        } else if (preserved.best != preserved.chosen) {
            moved_flows.write((bit<32>)flow_hash[13:0], 0);
        }
    }
}

#endif
