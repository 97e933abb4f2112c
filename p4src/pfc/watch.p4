// SPDX-License-Identifier: Apache-2.0
// The watchdog of pauses, as in the native switch's traffic manager (tailrace/switch/core/c/tr_watch.c): if pauses hold
// a port's data for too long, the port is in a pause storm. Then pauses are ignored, and data is dropped or sent.
//
//   ingress, recirculated data  if held for `detect_ticks`: a storm begins, the port opens, a digest is sent
//   ingress, a pause            updates the held time; in a storm, only sets the storm's end
//   ingress, data               in a storm: dropped; after its end: the port is restored, a digest is sent
//   egress, waiting data        in a storm: dropped when it may leave, so that all accounts stay correct
//
// DEVIATION: times are checked only when a packet or a pause arrives, not by a timer. This suffices: held data
// recirculates all the time, and as long as nothing is sent to a port, it does not matter whether its storm is over.
#ifndef PFC_WATCH_P4
#define PFC_WATCH_P4
#include "common/queues.p4"
#include "pfc/config.p4"

// Digests to the controller; the native switch's traffic manager sends the same two.
struct pfc_storm_t {
    port_t port;
    bit<3> priority;
}
struct pfc_restored_t {
    port_t port;
    bit<3> priority;
}

// Index: port. Written in ingress only, unless stated.
@name("pfc_closed_until_ticks") register<ticks_t>(PORTS) pfc_closed_until_ticks;  // read in egress, too
@name("pfc_closed_ticks") register<ticks_t>(PORTS) pfc_closed_ticks;              // total closed time up to closed_until
@name("pfc_issued") register<bit<32>>(PORTS) pfc_issued;                          // next sequence number (pfc/order.p4)
@name("pfc_turn") register<bit<32>>(PORTS) pfc_turn;                              // next to leave; written by egress
@name("pfc_waits_since_ticks") register<ticks_t>(PORTS) pfc_waits_since_ticks;    // since when data waits
@name("pfc_held_ticks") register<ticks_t>(PORTS) pfc_held_ticks;                  // the held time (UpdateHeldTime)
@name("pfc_held_at_ticks") register<ticks_t>(PORTS) pfc_held_at_ticks;            // when it was last updated
@name("pfc_storm") register<bit<2>>(PORTS) pfc_storm;                             // Storm_t; read in egress, too
@name("pfc_storm_until_ticks") register<ticks_t>(PORTS) pfc_storm_until_ticks;    // end, unless a pause is received
@name("pfc_storms") counter(PORTS, CounterType.packets) pfc_storms;               // storms that began
@name("pfc_storm_drops") counter(PORTS, CounterType.packets) pfc_storm_drops;     // packets

// Updates a port's held time in ticks: grows while packets wait and the port is closed, else falls by `leak` (16.16).
control UpdateHeldTime(in port_t port, in ticks_t now_ticks, in ticks_t closed_until_ticks, in bit<32> leak,
                   out ticks_t held_ticks) {
    apply {
        ticks_t at_ticks;              // the last update
        ticks_t from_ticks;            // begin and end of the time in which data was held since then
        ticks_t to_ticks = now_ticks;
        bit<32> issued;
        bit<32> turn;
        pfc_held_ticks.read(held_ticks, (bit<32>)port);
        pfc_held_at_ticks.read(at_ticks, (bit<32>)port);
        pfc_waits_since_ticks.read(from_ticks, (bit<32>)port);
        pfc_issued.read(issued, (bit<32>)port);
        pfc_turn.read(turn, (bit<32>)port);
        if (from_ticks < at_ticks) {
            from_ticks = at_ticks;
        }
        if (closed_until_ticks < to_ticks) {
            to_ticks = closed_until_ticks;
        }
        // a packet may have an earlier time than one that was processed before it
        if (now_ticks > at_ticks) {
            ticks_t span_ticks = 0;
            if (issued != turn && to_ticks > from_ticks) {
                span_ticks = to_ticks - from_ticks;
            }
            ticks_t quiet_ticks = now_ticks - at_ticks - span_ticks;
            bit<64> leaked = ((bit<64>)quiet_ticks[31:0] * (bit<64>)leak) >> 16;
            held_ticks = held_ticks + span_ticks;
            if (quiet_ticks[47:32] != 0 || (leak == 0 && quiet_ticks != 0) || leaked >= (bit<64>)held_ticks) {
                held_ticks = 0;
            } else {
                held_ticks = held_ticks - leaked[47:0];
            }
            pfc_held_ticks.write((bit<32>)port, held_ticks);
            pfc_held_at_ticks.write((bit<32>)port, now_ticks);
        }
    }
}

// In ingress, for a recirculated packet: begins a storm of its port if the held time is too long.
control WatchPauses(in port_t port, in ticks_t now_ticks, in pfc_port_t limits) {
    UpdateHeldTime() update_held_time;
    apply {
        ticks_t until_ticks;
        ticks_t total_ticks;
        ticks_t held_ticks;
        bit<2> storm;
        pfc_closed_until_ticks.read(until_ticks, (bit<32>)port);
        pfc_storm.read(storm, (bit<32>)port);
        update_held_time.apply(port, now_ticks, until_ticks, limits.leak, held_ticks);
        if (limits.detect_ticks != 0 && (Storm_t)storm == Storm_t.NONE && held_ticks >= limits.detect_ticks
            && until_ticks > now_ticks) {
            pfc_storm.write((bit<32>)port, (bit<2>)limits.action_in_storm);
            pfc_storm_until_ticks.write((bit<32>)port, until_ticks + limits.restore_ticks);
            pfc_closed_ticks.read(total_ticks, (bit<32>)port);
            pfc_closed_ticks.write((bit<32>)port, total_ticks - (until_ticks - now_ticks));
            pfc_closed_until_ticks.write((bit<32>)port, now_ticks);
            pfc_storms.count((bit<32>)port);
            digest<pfc_storm_t>(1, { port, PRIORITY_DATA });
        }
    }
}

// In ingress, for a data packet: whether a storm drops it; ends the storm when its time is over.
control InStorm(in port_t port, in ticks_t now_ticks, out bool dropped) {
    apply {
        bit<2> storm;
        dropped = false;
        pfc_storm.read(storm, (bit<32>)port);
        if ((Storm_t)storm != Storm_t.NONE) {
            ticks_t until_ticks;
            pfc_storm_until_ticks.read(until_ticks, (bit<32>)port);
            if (now_ticks >= until_ticks) {
                pfc_storm.write((bit<32>)port, (bit<2>)Storm_t.NONE);
                digest<pfc_restored_t>(1, { port, PRIORITY_DATA });
            } else if ((Storm_t)storm == Storm_t.DROP) {
                dropped = true;
                pfc_storm_drops.count((bit<32>)port);
            }
        }
    }
}

// In egress, for a packet that may leave: in a storm with action DROP, drops it and releases its charge.
control DiscardInStorm(in port_t port, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                       out bool dropped) {
    ReleaseQueues() release_queues;
    Drop() drop;
    apply {
        bit<2> storm;
        dropped = false;
        pfc_storm.read(storm, (bit<32>)port);
        if ((Storm_t)storm == Storm_t.DROP) {
            dropped = true;
            pfc_storm_drops.count((bit<32>)port);
            release_queues.apply(meta.charge);
            drop.apply(DropReason_t.PFC_STORM, meta, standard_metadata);
        }
    }
}

#endif
