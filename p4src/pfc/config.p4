// SPDX-License-Identifier: Apache-2.0
// Parameters of the emulation of PFC, as action data.
//
//   pfc_config    set_pfc(...)                   room 0: no emulation; this lookup is then the only cost
//   pfc_ports     port -> pause_unit(...)        an entry for each port at which received pauses take effect
#ifndef PFC_CONFIG_P4
#define PFC_CONFIG_P4
#include "common/metadata.p4"

control PfcConfig(out pfc_config_t config) {
    // xoff_bytes      the sender at a port is paused when more bytes than this came in by the port and still wait
    // xon_bytes       it may resume when at most this many wait
    // quanta          length of a pause, in 802.1Qbb's units of 512 bit times
    // refresh_ticks   a pause that must go on is sent again after this time
    // room            maximum of data packets in the switch; so many can be recirculated without loss
    // patience_ticks  if an open port has sent nothing for this time, it no longer waits for a missing packet
    // station         source MAC address of pause frames
    action set_pfc(@name("xoff_bytes") bit<32> xoff_bytes, @name("xon_bytes") bit<32> xon_bytes,
                   @name("quanta") bit<16> quanta, @name("refresh_ticks") bit<32> refresh_ticks,
                   @name("room") bit<32> room, @name("patience_ticks") bit<32> patience_ticks,
                   @name("station") mac_t station) {
        config = { xoff_bytes, xon_bytes, quanta, refresh_ticks, room, patience_ticks, station };
    }
    @name("pfc_config")
    table pfc_config {
        actions = { set_pfc; }
        default_action = set_pfc(0, 0, 0, 0, 0, 0, 0);
        size = 1;
    }
    apply {
        pfc_config.apply();
    }
}

control PauseUnit(in port_t port, out pfc_port_t limits) {
    // quantum        length of a pause quantum at the port, in ticks, unsigned 16.16
    // detect_ticks   a pause storm begins when the held time (pfc/watch.p4) reaches this; 0: never
    // restore_ticks  the storm is over when no pause was received for this time
    // leak           decrease of the held time in each tick in which no data is held, 16.16; 0: reset to 0
    // storm          what happens to data in a storm
    action pause_unit(@name("quantum") bit<32> quantum, @name("detect_ticks") ticks_t detect_ticks,
                      @name("restore_ticks") ticks_t restore_ticks, @name("leak") bit<32> leak,
                      @name("storm") Storm_t action_in_storm) {
        limits = { quantum, detect_ticks, restore_ticks, leak, action_in_storm };
    }
    action no_pauses() {
        limits = { 0, 0, 0, 0, Storm_t.NONE };
    }
    @name("pfc_ports")
    table pfc_ports {
        key = { port : exact @name("port"); }
        actions = { pause_unit; no_pauses; }
        const default_action = no_pauses();
        size = 512;
    }
    apply {
        no_pauses();
        pfc_ports.apply();
    }
}

#endif
