// SPDX-License-Identifier: Apache-2.0
// Equal-cost multipath: a hash of the 5-tuple selects a slot (numbered member) of the group, and the slot has a port.
//
//   switch_config  -> set_switch(switch_id, hash_seed)
//   group_members  (group, slot) -> member(port)                 slots 0 .. size-1, all with an entry
// When a link fails, the controller changes only the slots of the link's port, so other flows keep their paths.
#ifndef COMMON_ECMP_P4
#define COMMON_ECMP_P4
#include "common/drops.p4"

// A 32-bit hash that depends on the switch. CRC is linear: if the seed were only an input of the CRC, two flows that
// collide at one tier would collide at every tier (polarisation). So multiplications mix hash and seed.
control FlowHash(in flow_key_t flow, out bit<32> value) {
    bit<32> seed = 0;

    action set_switch(@name("switch_id") bit<16> switch_id, @name("hash_seed") bit<32> hash_seed) {
        seed = hash_seed ^ (bit<32>)switch_id;
    }
    @name("switch_config")
    table switch_config {
        actions = { set_switch; }
        default_action = set_switch(0, 0);
        size = 1;
    }

    apply {
        switch_config.apply();
        bit<32> crc;
        hash(crc, HashAlgorithm.crc32, 32w0,
             { flow.src, flow.dst, flow.sport, flow.dport, flow.protocol }, 64w0x100000000);
        // The constants are odd numbers with well spread bits, as in multiplicative hashing.
        bit<32> mixed = (crc ^ seed ^ 0x5851F42D) * 0x9E3779B1;
        mixed = (mixed ^ (mixed >> 15)) * 0x85EBCA77;
        value = mixed ^ (mixed >> 13);
    }
}

// Looks up the port of a slot; `port` is unchanged if the slot has no entry.
control GroupMember(in group_t group, in bit<16> slot, inout port_t port, out bool found) {
    action member(@name("port") port_t member_port) {
        port = member_port;
        found = true;
    }
    action no_member() {
        found = false;
    }
    @name("group_members")
    table group_members {
        key = {
            group : exact @name("group");
            slot  : exact @name("slot");
        }
        actions = { member; no_member; }
        const default_action = no_member();
        size = 16384;
    }
    apply {
        found = false;
        group_members.apply();
    }
}

// slot = value modulo size. Only v1model's hash extern computes a modulo of variables.
control SlotOf(in bit<32> value, in bit<16> size, out bit<16> slot) {
    apply {
        hash(slot, HashAlgorithm.identity, 16w0, { value }, (bit<32>)size);
    }
}

#endif
