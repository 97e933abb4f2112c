// SPDX-License-Identifier: Apache-2.0
// The switch of a flow's source stops the source (Flowcut §II-B): by a flow pause (fine-grain flow control), or by PFC,
// which pauses all data, if sources do not support flow pauses (`by_class` is 1) or ignore them.
//
//   drain begins             XOFF                            by_class: PFC
//   ACK during the drain     source disobeys: PFC            by_class: PFC, which renews the pause
//   drain ends               XON                             by_class: PFC, 0 quanta
//
// A source disobeys if more than obey_bytes of the flow have arrived since the XOFF. obey_bytes exceeds the source's
// credit plus the bytes in the link and the NIC at the XOFF, so a source that obeys never exceeds obey_bytes.
// Every further ACK of such a flow sends a PFC frame again. So the switch need not count a host's draining flows:
// without further ACKs, a pause ends with its quanta. PFC frames leave by the port by which the flow's data came in.
#ifndef FLOWCUT_PAUSE_P4
#define FLOWCUT_PAUSE_P4
#include "flowcut/table.p4"
#include "pfc/frame.p4"

// Message from the source's switch to the source when an ACK arrives.
enum bit<4> Instruction_t {
    NONE         = 0,
    STOP         = 1,
    STAY_STOPPED = 2,  // the flow is still draining
    RESUME       = 3
}

struct pause_config_t {
    bit<1>  by_class;
    bit<16> quanta;
    bit<32> obey_bytes;
    bit<32> credit_bytes;
}

control PauseConfig(out pause_config_t config) {
    // by_class      1: PFC instead of flow pauses
    // quanta        length of a PFC pause, in 512 bit times of the source's link; 0: no PFC
    // obey_bytes    limit of a flow's bytes that may arrive after the XOFF to its source
    // credit_bytes  bytes that the source may still send after an XOFF; 0: an XOFF without credit
    action set_pause(@name("by_class") bit<1> by_class, @name("quanta") bit<16> quanta,
                     @name("obey_bytes") bit<32> obey_bytes, @name("credit_bytes") bit<32> credit_bytes) {
        config = { by_class, quanta, obey_bytes, credit_bytes };
    }
    @name("pause_config")
    table pause_config {
        actions = { set_pause; }
        default_action = set_pause(0, 0, 0, 0);
        size = 1;
    }
    apply {
        pause_config.apply();
    }
}

@name("flow_after_stop_bytes") register<bit<32>>(ENTRIES) flow_after_stop_bytes;  // index: entry; bytes since the XOFF
@name("xoff_sent") counter(1, CounterType.packets_and_bytes) xoff_sent;
@name("xon_sent") counter(1, CounterType.packets_and_bytes) xon_sent;
@name("class_pauses_sent") counter(1, CounterType.packets_and_bytes) class_pauses_sent;

// Counts data of a flow that drains.
control NoteAfterStop(in bit<32> index, in bit<32> bytes) {
    apply {
        bit<32> before;
        flow_after_stop_bytes.read(before, index);
        flow_after_stop_bytes.write(index, before |+| bytes);
    }
}

// Turns the ACK into a PFC frame.
control PauseClass(in bit<16> quanta, inout headers_t hdr) {
    apply {
        hdr.ethernet.dst = MAC_TO_NEIGHBOUR;
        hdr.ethernet.ether_type = ETHERTYPE_MAC_CONTROL;
        hdr.tailrace.setInvalid();
        hdr.pfc.setValid();
        hdr.pfc = { OPCODE_PFC, CLASS_OF_DATA, quanta, 0 };
        hdr.pfc_padding.setValid();
        hdr.pfc_padding.zeros = 0;
        class_pauses_sent.count(0);
    }
}

// Turns the ACK into a flow pause (XOFF or XON).
control PauseFlow(in Instruction_t instruction, in bit<32> credit_bytes, inout headers_t hdr) {
    apply {
        hdr.ethernet.dst = MAC_TO_NEIGHBOUR;
        hdr.tailrace.subtype = Subtype_t.FLOW_PAUSE;
        hdr.pause.setValid();
        hdr.pause.src = hdr.ack.src;
        hdr.pause.dst = hdr.ack.dst;
        hdr.pause.sport = hdr.ack.sport;
        hdr.pause.dport = hdr.ack.dport;
        hdr.pause.protocol = hdr.ack.protocol;
        hdr.pause.op = PauseOp_t.XON;
        hdr.pause.credit_bytes = 0;
        if (instruction == Instruction_t.STOP) {
            hdr.pause.op = PauseOp_t.XOFF;
            if (credit_bytes != 0) {
                hdr.pause.op = PauseOp_t.XOFF_CREDIT;
                hdr.pause.credit_bytes = credit_bytes;
            }
            xoff_sent.count(0);
        } else {
            xon_sent.count(0);
        }
    }
}

// The ACK ends here: it becomes a pause or resume message for the flow's source, or is dropped.
control TellSource(in Instruction_t instruction, in bit<32> index, inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    PauseConfig() pause_config;
    PauseClass() pause_class;
    PauseFlow() pause_flow;

    apply {
        pause_config_t config;
        pause_config.apply(config);
        bool by_class = config.by_class == 1;
        if (instruction == Instruction_t.STAY_STOPPED && !by_class) {
            bit<32> bytes;
            flow_after_stop_bytes.read(bytes, index);
            by_class = bytes > config.obey_bytes;
        }
        if (instruction == Instruction_t.NONE || (instruction == Instruction_t.STAY_STOPPED && !by_class)
            || (by_class && config.quanta == 0)) {
            mark_to_drop(standard_metadata);  // consumed, not lost
            meta.kind = PacketKind_t.NONE;
        } else {
            if (by_class) {
                bit<16> quanta = config.quanta;
                if (instruction == Instruction_t.RESUME) {
                    quanta = 0;
                }
                pause_class.apply(quanta, hdr);
            } else {
                pause_flow.apply(instruction, config.credit_bytes, hdr);
            }
            hdr.ack.setInvalid();
        }
    }
}

#endif
