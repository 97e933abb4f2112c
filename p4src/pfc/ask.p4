// SPDX-License-Identifier: Apache-2.0
// Sends pause frames by a port if too many bytes that came in at the port still wait. (common/queues.p4 defines charge
// and release: a packet's bytes are added to the queue accounts, and subtracted from them.)
//   ingress, after the charge     more than xoff_bytes wait, and no pause is in effect    -> clone for a pause frame
//   egress, after the release     at most xon_bytes wait, and a pause is in effect        -> clone for a resume frame
//                                 else, if the last pause frame is older than refresh_ticks  -> clone for a pause frame
// The clone enters port PAUSE, whose queue is always empty, and is recirculated. Ingress enqueues it with the priority
// of control packets at the port by which the pause frame is sent. In egress of this port it becomes the PFC frame.
#ifndef PFC_ASK_P4
#define PFC_ASK_P4
#include "common/queues.p4"
#include "pfc/closed.p4"

const bit<32> PFC_FRAME_BYTES = 60;  // Ethernet's minimum, without FCS

// Index: port. Time of the last pause frame sent by the port; 0: no pause in effect. Ingress begins pauses, egress ends
// them, each in one action: BMv2 runs ingress and egress in different threads, and locks a register during one action.
@name("pfc_asked_ticks") register<ticks_t>(PORTS) pfc_asked_ticks;
@name("pfc_most_bytes") register<bit<32>>(PORTS) pfc_most_bytes;  // index: port; maximum of waiting bytes; ingress only
@name("pfc_sent") counter(PORTS, CounterType.packets) pfc_sent;                // pause and resume frames
@name("pfc_pauses_sent") counter(PORTS, CounterType.packets) pfc_pauses_sent;  // pause frames, repeated ones included

control AskPause(inout metadata_t meta, in ticks_t now_ticks, out bool clones_pause) {
    SourceLoad() source_load;  // bytes that came in at a port and still wait
    ticks_t before_ticks = 0;

    @hidden action begin() {
        pfc_asked_ticks.read(before_ticks, (bit<32>)meta.charge.in_port);
        pfc_asked_ticks.write((bit<32>)meta.charge.in_port, before_ticks == 0 ? now_ticks : before_ticks);
    }
    apply {
        clones_pause = false;
        if (meta.charge.bytes != 0 && meta.charge.in_port < (port_t)(bit<9>)SpecialPort_t.WAITING) {
            bit<32> bytes;
            bit<32> max_bytes;
            source_load.apply(meta.charge.in_port, bytes);
            pfc_most_bytes.read(max_bytes, (bit<32>)meta.charge.in_port);
            if (bytes > max_bytes) {
                pfc_most_bytes.write((bit<32>)meta.charge.in_port, bytes);
            }
            if (bytes > meta.pfc.config.xoff_bytes) {
                begin();
                clones_pause = before_ticks == 0;
            }
            if (clones_pause) {
                meta.pfc.ask = { 1, meta.charge.in_port, meta.pfc.config.quanta };
                clone_preserving_field_list(CloneType.I2E, PAUSE_SESSION, KEEP_FOR_PAUSE);
            }
        }
    }
}

// Ends or renews a pause. `port`: ingress port of a packet that has left or is recirculated.
control ReviewPause(in port_t port, inout metadata_t meta, in ticks_t now_ticks, out bool clones_pause) {
    SourceLoad() source_load;
    ticks_t before_ticks = 0;

    @hidden action set_asked(in ticks_t value) {
        pfc_asked_ticks.read(before_ticks, (bit<32>)port);
        pfc_asked_ticks.write((bit<32>)port, value);
    }
    apply {
        ticks_t asked_ticks;
        clones_pause = false;
        pfc_asked_ticks.read(asked_ticks, (bit<32>)port);
        if (asked_ticks != 0) {
            bit<32> bytes;
            source_load.apply(port, bytes);
            meta.pfc.ask = { 1, port, 0 };
            if (bytes <= meta.pfc.config.xon_bytes) {
                set_asked(0);
                clones_pause = before_ticks != 0;
            } else if (LONG_AGO(now_ticks, asked_ticks, (ticks_t)meta.pfc.config.refresh_ticks)) {
                set_asked(now_ticks);
                meta.pfc.ask.quanta = meta.pfc.config.quanta;
                clones_pause = true;
            }
            if (clones_pause) {
                clone_preserving_field_list(CloneType.E2E, PAUSE_SESSION, KEEP_FOR_PAUSE);
            }
        }
    }
}

// In egress of the port: replaces the clone's headers by those of a PFC frame, and truncates its payload.
control MakePause(in pfc_ask_t ask, in mac_t station, inout headers_t hdr) {
    apply {
        hdr.ethernet = { MAC_TO_NEIGHBOUR, station, ETHERTYPE_MAC_CONTROL };
        hdr.pfc.setValid();
        hdr.pfc = { OPCODE_PFC, CLASS_OF_DATA, ask.quanta, 0 };
        hdr.pfc_padding.setValid();
        hdr.pfc_padding.zeros = 0;
        hdr.vlan.setInvalid();
        hdr.detour_tag.setInvalid();
        hdr.detour.setInvalid();
        hdr.tailrace.setInvalid();
        hdr.probe.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.tcp.setInvalid();
        hdr.udp.setInvalid();
        hdr.nic_shim.setInvalid();
        hdr.bth.setInvalid();
        truncate(PFC_FRAME_BYTES);
        pfc_sent.count((bit<32>)ask.port);
        if (ask.quanta != 0) {
            pfc_pauses_sent.count((bit<32>)ask.port);
        }
    }
}

#endif
