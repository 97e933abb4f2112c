// SPDX-License-Identifier: Apache-2.0
// Interface of selectors: controls that choose slots of meta.route.group (0 .. group_size-1). A scheme with a selector
// can be used alone (common/take_slot.p4) or under RLB, which may reject its choice (RLB Alg. 1, lines 2 and 4).
//
//   control XSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
//                     inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
//                     out bit<32> order)
//       best     the slot that the scheme takes now
//       second   the slot that it would take without `best`; differs from `best` if the group has two slots
//       order    a number that gives the order in which further slots are tried if both are rejected (rlb/reroute.p4);
//                it changes whenever best and second are drawn again
//
// A selector that remembers earlier choices has a second control, the program's SELECTOR_MEMORY. It gets the slot by
// which a data packet actually leaves:
//
//   control XMemory(in group_t group, in bit<16> slot)
//
// A selector balances DATA; other packets take their ECMP slot. It must be applied once for each packet, as it may
// keep state. group_size is at least 1 (common/routes.p4). A port may have several slots (tailrace/schemes/blocks/
// groups.py): then adjoining slots belong to different ports as long as no link is down.
#ifndef COMMON_SELECTOR_P4
#define COMMON_SELECTOR_P4
#include "common/ecmp.p4"

#endif
