// SPDX-License-Identifier: Apache-2.0
// What a host may say of the way of its packets is for the mode to say, and for the controller; the rest is taken off
// at the switch of the host, and counted. In every mode an entropy value is a port like any other.
//
//   DSCP STEERED    where spritz_config has `host_marks`
//   VLAN tag        in mode CLASS; in the others the tag is cleared like all that are neither kept nor set
//   DSCP TRIMMED    never: switches trim
#ifndef SPRITZ_HOST_MARKS_P4
#define SPRITZ_HOST_MARKS_P4
#include "common/control_limits.p4"

control HostMarks(in bool may_tag, in bool may_mark, inout headers_t hdr) {
    Police() police_trimmed;
    Police() police_steered;
    Police() police_class;

    apply {
        if (hdr.bth.isValid()) {
            if (hdr.ipv4.dscp == Dscp_t.TRIMMED || hdr.ipv4.dscp == Dscp_t.TRIMMED_STEERED) {
                police_trimmed.apply(Policed_t.TRIMMED_BY_HOST);
                if (hdr.ipv4.dscp == Dscp_t.TRIMMED) {
                    hdr.ipv4.dscp = Dscp_t.DEFAULT;
                } else {
                    hdr.ipv4.dscp = Dscp_t.STEERED;
                }
            }
            if (!may_mark && (hdr.ipv4.dscp == Dscp_t.STEERED || hdr.ipv4.dscp == Dscp_t.DEMOTED_STEERED)) {
                police_steered.apply(Policed_t.STEERED_BY_HOST);
                if (hdr.ipv4.dscp == Dscp_t.STEERED) {
                    hdr.ipv4.dscp = Dscp_t.DEFAULT;
                } else {
                    hdr.ipv4.dscp = Dscp_t.DEMOTED;
                }
            }
        }
        if (hdr.vlan.isValid() && !may_tag) {
            police_class.apply(Policed_t.CLASS_BY_HOST);
        }
    }
}

#endif
