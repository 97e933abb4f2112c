// SPDX-License-Identifier: Apache-2.0
// Selects the next hop of a packet to another switch. RoCE packets have a choice of paths if this switch has a role for
// them (role.p4). The mode determines how to choose (EV: entropy value; list: path_lists.p4; tag: tags.p4):
//
//   mode      role FIRST                          role SECOND                           tag
//   MINIMAL   default table                       default table                         -
//   STEERED   list by EV1                         list by EV2                           -
//   CLASS     list of the tag's class, by hash    the same                              kept if link.goes_on
//             class MINIMAL: ECMP over all minimal next hops
//   RANDOM    list, at random                     list, at random                       -
//   UGAL_L    list at random, or default table,   list, at random, if tagged NONMINIMAL set if link.goes_on
//             by the queues
//
// In every mode, packets with DSCP STEERED choose by their EV: the mode does not apply to such flows, for example the
// background traffic of Spritz §V-B. All other packets take the default table, as do packets without a list. Tags that
// are neither kept nor set are cleared.
// DEVIATION: in the paper, ECMP 1 (role FIRST) clears every tag (§III-D). Then ECMP 2 (role SECOND) would always take its
// default table, and only the first link of a non-minimal path could be chosen; so the tag is kept up to ECMP 2.
// DEVIATION: the paper does not say how ECMP 1 signals its decision of UGAL-L to ECMP 2 (§V-A). Here ECMP 1 sets the
// same tag.
// DEVIATION: if the second link would lead back to the source's switch, the default table's link is taken. The paper
// does not cover this; a returned packet would have no role there, and the default table could send it here again,
// without end. No EV in an endpoint's table leads to this case; random links and other EVs can, in a Slim Fly.
#ifndef SPRITZ_STEER_P4
#define SPRITZ_STEER_P4
#include "common/select_ecmp.p4"
#include "common/ugal.p4"
#include "spritz/destinations.p4"
#include "spritz/tags.p4"

enum bit<8> SpritzMode_t {
    MINIMAL = 0,
    STEERED = 1,  // fine-grained: EV1 is the high byte of the UDP source port, EV2 the low one (Spritz §III)
    CLASS   = 2,  // coarse-grained (§III-D)
    RANDOM  = 3,  // Valiant: each switch chooses at random (§V-A)
    UGAL_L  = 4
}

// `host_marks`: hosts may mark packets as STEERED.
control SpritzMode(out SpritzMode_t mode, out bool host_marks) {
    action set_spritz(@name("mode") SpritzMode_t configured, @name("host_marks") bit<1> may_mark) {
        mode = configured;
        host_marks = may_mark == 1;
    }
    @name("spritz_config")
    table spritz_config {
        actions = { set_spritz; }
        default_action = set_spritz(SpritzMode_t.MINIMAL, 0);
        size = 1;
    }
    apply {
        mode = SpritzMode_t.MINIMAL;
        host_marks = false;
        spritz_config.apply();
    }
}

// How the next hop is chosen.
enum bit<8> Rule_t {
    DEFAULT_TABLE = 0,
    NEXT_HOPS     = 1,  // ECMP over the route's next hops
    BY_EV         = 2,
    BY_HASH       = 3,
    AT_RANDOM     = 4,
    BY_QUEUES     = 5
}

control ChooseRule(in headers_t hdr, in Role_t role, in SpritzMode_t mode, out Rule_t rule,
                   out PathClass_t path_class) {
    VlanClass() vlan_class;

    apply {
        bool known;
        rule = Rule_t.DEFAULT_TABLE;
        path_class = PathClass_t.ALL;
        if (role != Role_t.NONE && hdr.bth.isValid()) {
            if (mode == SpritzMode_t.STEERED || IS_STEERED(hdr.ipv4.dscp)) {
                rule = Rule_t.BY_EV;
            } else if (mode == SpritzMode_t.RANDOM) {
                rule = Rule_t.AT_RANDOM;
            } else if (mode == SpritzMode_t.UGAL_L) {
                if (role == Role_t.FIRST) {
                    rule = Rule_t.BY_QUEUES;
                } else if (hdr.vlan.isValid() && hdr.vlan.vid == VlanId_t.NONMINIMAL) {
                    rule = Rule_t.AT_RANDOM;
                }
            } else if (mode == SpritzMode_t.CLASS && hdr.vlan.isValid()) {
                vlan_class.apply(hdr.vlan, known, path_class);
                if (path_class == PathClass_t.MINIMAL) {
                    rule = Rule_t.NEXT_HOPS;
                } else if (known) {
                    rule = Rule_t.BY_HASH;
                }
            }
        }
    }
}

// The number that selects a slot of the list.
control PathValue(in Rule_t rule, in Role_t role, in bit<16> entropy, in bit<32> flow_hash, out bit<32> value) {
    apply {
        if (rule == Rule_t.BY_HASH) {
            value = flow_hash;
        } else if (rule == Rule_t.BY_EV) {
            value = (bit<32>)entropy[7:0];
            if (role == Role_t.FIRST) {
                value = (bit<32>)entropy[15:8];
            }
        } else {
            random(value, 32w0, 32w0xFFFFFFFF);
        }
    }
}

// Selects a link of the list. `link.found` is false if there is no list, or if the default table is to be used;
// `slot_is_empty`: the selected slot has no entry.
control ChosenLink(in Rule_t rule, in Role_t role, in PathClass_t path_class, in destination_t destination,
                   in bit<16> entropy, in bit<32> flow_hash, in port_t ingress_port, out choice_t link,
                   out bool slot_is_empty) {
    PathList() path_list;
    PathValue() path_value;
    PathSlot() path_slot;
    UgalL() ugal_l;

    apply {
        path_list_t list_info;
        bit<32> value;
        link = { false, false, 0, 0 };
        slot_is_empty = false;
        path_list.apply(role, destination.near, path_class, list_info);
        if (list_info.size != 0) {
            path_value.apply(rule, role, entropy, flow_hash, value);
            path_slot.apply(list_info, value, link);
            slot_is_empty = !link.found;
            if (rule == Rule_t.BY_QUEUES) {
                // link.found becomes false if UGAL-L prefers the minimal path
                ugal_l.apply(destination.port, destination.links, link.port, link.links, link.found);
            } else if (role == Role_t.SECOND && link.port == ingress_port) {
                link.found = false;
            }
        }
    }
}

control Steer(in Role_t role, in SpritzMode_t mode, in bit<32> flow_hash, inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata, out TagOp_t tag_op) {
    Destinations() destinations;
    ChooseRule() choose_rule;
    ChosenLink() chosen_link;
    SelectEcmp() select_ecmp;
    Drop() drop_unrouted;

    apply {
        destination_t destination;
        Rule_t rule;
        PathClass_t path_class;
        choice_t link = { false, false, 0, 0 };
        bool slot_is_empty = false;
        tag_op = TagOp_t.CLEAR;
        destinations.apply(hdr.ipv4.dst, destination);
        choose_rule.apply(hdr, role, mode, rule, path_class);
        if (rule != Rule_t.DEFAULT_TABLE && rule != Rule_t.NEXT_HOPS) {
            chosen_link.apply(rule, role, path_class, destination, meta.flow.sport, flow_hash,
                              standard_metadata.ingress_port, link, slot_is_empty);
        }
        if (!destination.known || slot_is_empty) {
            drop_unrouted.apply(DropReason_t.NO_ROUTE, meta, standard_metadata);
        } else if (rule == Rule_t.NEXT_HOPS) {
            select_ecmp.apply(flow_hash, meta, standard_metadata);
        } else if (link.found) {
            standard_metadata.egress_spec = link.port;
            if (role == Role_t.FIRST && link.goes_on && rule == Rule_t.BY_HASH) {
                tag_op = TagOp_t.KEEP;
            } else if (link.goes_on && rule == Rule_t.BY_QUEUES) {
                tag_op = TagOp_t.SET;
            }
        } else {
            standard_metadata.egress_spec = destination.port;
        }
    }
}

#endif
