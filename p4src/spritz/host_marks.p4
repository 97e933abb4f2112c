// SPDX-License-Identifier: Apache-2.0
// Hosts may influence the paths of their packets by marks, as far as the mode (steer.p4) and the controller allow. The
// host's switch removes and counts all other marks. Entropy values are UDP source ports, and need no permission.
//
//   DSCP STEERED    allowed if spritz_config has `host_marks`
//   VLAN tag        allowed in mode CLASS; in other modes it is cleared, like all tags that are neither kept nor set
//   DSCP TRIMMED    never allowed: only switches trim
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
