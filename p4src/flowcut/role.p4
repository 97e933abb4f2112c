// SPDX-License-Identifier: Apache-2.0
// The role of this switch for a packet, by the variant and by the packet's origin and destination (Flowcut §II-C).
#ifndef FLOWCUT_ROLE_P4
#define FLOWCUT_ROLE_P4
#include "common/drops.p4"
#include "flowcut/config.p4"

enum bit<4> Role_t {
    PASS_BY  = 0,  // forward without any state
    TRACK    = 1,  // data: look up the flow, and add a stamp
    EGRESS   = 2,  // data to a host of this switch: make an ACK
    ACK_HERE = 3,  // an ACK of data that this switch stamped
    NEW_ACK  = 4   // an ACK that this switch has made, after its recirculation
}

// Applied when the packet's route is known (for an ACK, if the variant needs it: the route to the data's source).
control FindRole(in FlowcutMode_t mode, in headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata, out Role_t role) {
    Drop() drop;

    apply {
        role = Role_t.PASS_BY;
        if (meta.kind == PacketKind_t.FLOWCUT_ACK) {
            if (standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
                role = Role_t.NEW_ACK;
            } else if (mode == FlowcutMode_t.OFF || hdr.ack.stamps == 0 || hdr.ack.stamps > hdr.ack.hops) {
                drop.apply(DropReason_t.MALFORMED, meta, standard_metadata);
            } else if (mode == FlowcutMode_t.FULL || meta.route.to_host) {
                role = Role_t.ACK_HERE;
            }
        } else if (meta.kind == PacketKind_t.DATA) {
            if (meta.route.to_host) {
                if (hdr.shim.isValid()) {
                    role = Role_t.EGRESS;
                }
            } else if ((meta.from_host && mode != FlowcutMode_t.OFF)
                       || (hdr.shim.isValid() && mode == FlowcutMode_t.FULL)) {
                role = Role_t.TRACK;
                if (hdr.shim.isValid() && hdr.shim.stamps >= STAMPS) {
                    drop.apply(DropReason_t.NO_STAMP_SPACE, meta, standard_metadata);
                }
            }
        }
    }
}

#endif
