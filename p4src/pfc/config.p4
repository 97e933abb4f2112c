// SPDX-License-Identifier: Apache-2.0
// Parameters of the emulation of PFC, as action data.
//
//   pfc_config    set_pfc(...)                   room 0: there is none, and all that it costs is this lookup
//   pfc_ports     port -> pause_unit(...)        one entry a port whose pauses are obeyed
#ifndef PFC_CONFIG_P4
#define PFC_CONFIG_P4
#include "common/metadata.p4"

control PfcConfig(out pfc_config_t config) {
    // xoff_bytes      a port that brought more than this which still waits is paused,
    // xon_bytes       and goes on when no more than this is left
    // quanta          for how long a pause is asked, in 802.1Qbb's units of 512 bit times
    // refresh_ticks   a pause that holds on is asked for again after so long
    // room            packets of data that the switch may hold: so many can wait without being lost on their way round
    // patience_ticks  a port that is open and sends nothing for so long does not wait for a missing packet any more
    // station         source of pause frames
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
    // quantum        what one unit of a pause takes at the port, in ticks, unsigned 16.16
    // detect_ticks   held for so long, a port is in a storm; 0: never
    // restore_ticks  the storm is over when no pause was asked for in so long
    // leak           what is taken off that time for each tick that it is not held, 16.16; 0: all of it
    // storm          what becomes of data in a storm
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
