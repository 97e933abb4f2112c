// SPDX-License-Identifier: Apache-2.0
// RTTs of paths from leaf to leaf, measured with data packets (RLB §V; parameters: config.p4). A path is an uplink and
// a destination leaf. A stamp is the time at which the first leaf sends a packet; an echo returns the stamp to this
// leaf. A probe is the header that carries a stamp, an echo or both.
//
//   leaf A sends data from a host by uplink E to leaf B; no stamp of (E, B) within the period -> adds stamp (A, E, now)
//   leaf B stores A's newest stamp; B's next packet to A carries the echo, with the time for which the stamp waited at B
//   leaf A: RTT of (E, B) = now - stamp - wait, valid for `keep_ticks`. If the oldest stamp of (E, B) without an echo is
//           older than this RTT, its age counts as the RTT, as a paused path delays the echo.
//           Then the path is overdue: its real RTT may be longer by any amount.
//           A packet that recirculates to wait for (E, B) counts as a stamp: no stamps are sent while all packets wait.
//
// Packets of a path do not overtake each other, so an echo also answers all earlier stamps. A lost stamp, or one that
// leaf B replaced by a newer stamp of another path, makes a path look slow until its next echo arrives, at most for
// `keep_ticks`. Only the times of the oldest and the newest stamp without an echo are stored. When the oldest of
// more than two stamps is echoed, the newest one replaces it. If the path is paused at this time, its RTT begins to grow
// too late, by its previous value at most.
//
// DEVIATION: in the paper, stamps are echoed only between the same pair of ports. Here any packet to A carries the echo,
// so that a path is measured even if acknowledgements return by another path.
#ifndef RLB_PATH_RTT_P4
#define RLB_PATH_RTT_P4
#include "common/metadata.p4"
#include "rlb/config.p4"

// Written and read in ingress only.
@name("path_rtt_ticks") register<bit<32>>(PATHS) path_rtt_ticks;        // index: PATH_INDEX; 0: not measured yet
@name("path_rtt_seen_ticks") register<ticks_t>(PATHS) path_rtt_seen_ticks;  // index: PATH_INDEX; when it was measured
@name("probe_sent_ticks") register<ticks_t>(PATHS) probe_sent_ticks;    // index: PATH_INDEX; the newest stamp
// Index: PATH_INDEX; time of the oldest stamp, or waiting packet, without an echo; 0: none.
@name("probe_unanswered_ticks") register<ticks_t>(PATHS) probe_unanswered_ticks;
@name("echo_port") register<bit<16>>(LEAVES) echo_port;                 // index: leaf; the stamp's uplink + 1; 0: none
@name("echo_ticks") register<bit<32>>(LEAVES) echo_ticks;               // index: leaf; the stamp
@name("echo_came_ticks") register<ticks_t>(LEAVES) echo_came_ticks;     // index: leaf; when the stamp came
@name("probes_sent") counter(1, CounterType.packets) probes_sent;
@name("probes_echoed") counter(1, CounterType.packets) probes_echoed;
@name("path_rtts_measured") counter(1, CounterType.packets) path_rtts_measured;

// The present RTT of a path; 0: not known. `overdue`: the real RTT may be longer by any amount. `keep_ticks`: how long a
// measured RTT is valid.
control PathRtt(in bit<32> path, in ticks_t now_ticks, in bit<32> keep_ticks, out bit<32> rtt_ticks, out bool overdue) {
    apply {
        overdue = false;
        ticks_t seen_ticks;
        ticks_t unanswered_ticks;
        path_rtt_ticks.read(rtt_ticks, path);
        path_rtt_seen_ticks.read(seen_ticks, path);
        probe_unanswered_ticks.read(unanswered_ticks, path);
        if (LONG_AGO(now_ticks, seen_ticks, (ticks_t)keep_ticks)) {
            rtt_ticks = 0;
        } else if (rtt_ticks != 0 && unanswered_ticks != 0
                   && LONG_AGO(now_ticks, unanswered_ticks, (ticks_t)rtt_ticks)) {
            overdue = true;
            rtt_ticks = LONGEST_TICKS;
            if (now_ticks - unanswered_ticks < (ticks_t)LONGEST_TICKS) {
                rtt_ticks = (bit<32>)(now_ticks - unanswered_ticks);
            }
        }
    }
}

// Records that a stamp is sent now, or that a packet waits for the path.
control NoteUnanswered(in bit<32> path, in ticks_t now_ticks) {
    apply {
        ticks_t unanswered_ticks;
        probe_unanswered_ticks.read(unanswered_ticks, path);
        if (unanswered_ticks == 0) {
            probe_unanswered_ticks.write(path, now_ticks);
        }
    }
}

// Records the echo of the stamp `ticks`, which also answers all earlier stamps. If the oldest stamp without an echo is
// among them, the newest stamp takes its place; there is none if the echo is that of the newest stamp.
control NoteAnswer(in bit<32> path, in bit<32> ticks, in ticks_t now_ticks) {
    apply {
        ticks_t unanswered_ticks;
        ticks_t newest_ticks;
        probe_unanswered_ticks.read(unanswered_ticks, path);
        probe_sent_ticks.read(newest_ticks, path);
        if (unanswered_ticks != 0 && (ticks_t)(now_ticks[31:0] - ticks) <= now_ticks - unanswered_ticks) {
            if (newest_ticks[31:0] == ticks) {
                newest_ticks = 0;
            }
            probe_unanswered_ticks.write(path, newest_ticks);
        }
    }
}

// At the first leaf, for a packet that leaves by `port`: adds a header with a stamp, an echo or both. Only data gets a
// stamp: packets of higher priority do not wait in the queues of data.
control PushProbe(in port_t port, in bit<16> leaf, in bit<16> own_leaf, in bit<32> period_ticks, in ticks_t now_ticks,
                  in bool is_data, inout headers_t hdr) {
    NoteUnanswered() note_unanswered;

    apply {
        ticks_t last_ticks;
        bit<16> echoed;
        bit<32> path = PATH_INDEX(port, leaf);
        probe_sent_ticks.read(last_ticks, path);
        echo_port.read(echoed, (bit<32>)leaf);
        bool stamps = is_data && (last_ticks == 0 || LONG_AGO(now_ticks, last_ticks, (ticks_t)period_ticks));
        bit<16> stamp_path = 0;
        bit<32> stamp_ticks = 0;
        bit<16> echo_path = 0;
        bit<32> echo_stamp_ticks = 0;
        bit<32> echo_wait = 0;
        if (stamps) {
            stamp_path = (bit<16>)port;
            stamp_ticks = now_ticks[31:0];
            probe_sent_ticks.write(path, now_ticks);
            note_unanswered.apply(path, now_ticks);
            probes_sent.count(0);
        }
        if (echoed != 0) {
            ticks_t came_ticks;
            echo_path = echoed - 1;
            echo_ticks.read(echo_stamp_ticks, (bit<32>)leaf);
            echo_came_ticks.read(came_ticks, (bit<32>)leaf);
            echo_wait = now_ticks[31:0] - came_ticks[31:0];
            echo_port.write((bit<32>)leaf, 0);
            probes_echoed.count(0);
        }
        if (stamps || echoed != 0) {
            hdr.tailrace.setValid();
            hdr.tailrace.subtype = Subtype_t.PATH_PROBE;
            hdr.probe.setValid();
            hdr.probe = { (bit<1>)stamps, (bit<1>)(echoed != 0), 0, own_leaf, stamp_path, stamp_ticks, echo_path,
                          echo_stamp_ticks, echo_wait, hdr.ethernet.ether_type };
            hdr.ethernet.ether_type = ETHERTYPE_TAILRACE;
        }
    }
}

// At the last leaf: removes the header, which hosts never receive, stores its stamp, and uses its echo.
control EndProbe(in ticks_t now_ticks, inout headers_t hdr) {
    NoteAnswer() note_answer;

    apply {
        bit<32> leaf = (bit<32>)hdr.probe.leaf;
        if (leaf < LEAVES) {
            if (hdr.probe.stamped == 1) {
                echo_port.write(leaf, hdr.probe.path + 1);
                echo_ticks.write(leaf, hdr.probe.ticks);
                echo_came_ticks.write(leaf, now_ticks);
            }
            if (hdr.probe.echoes == 1 && (bit<32>)hdr.probe.echo_path < PATH_PORTS) {
                bit<32> rtt_ticks = now_ticks[31:0] - hdr.probe.echo_ticks - hdr.probe.echo_wait;
                if (rtt_ticks == 0) {
                    rtt_ticks = 1;  // shorter than a tick; 0 would mean not measured
                }
                bit<32> path = PATH_INDEX(hdr.probe.echo_path, hdr.probe.leaf);
                path_rtt_ticks.write(path, rtt_ticks);
                path_rtt_seen_ticks.write(path, now_ticks);
                note_answer.apply(path, hdr.probe.echo_ticks, now_ticks);
                path_rtts_measured.count(0);
            }
        }
        hdr.ethernet.ether_type = hdr.probe.next_ether_type;
        hdr.tailrace.setInvalid();
        hdr.probe.setInvalid();
    }
}

#endif
