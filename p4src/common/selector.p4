// SPDX-License-Identifier: Apache-2.0
// What a selector is: a control that names slots of meta.route.group (0 .. group_size-1), so that a scheme can stand
// alone (common/take_slot.p4) or under something that may refuse its choice (RLB, Alg. 1 l. 2 and 4).
//
//   control XSelector(in bit<32> flow_hash, in headers_t hdr, inout metadata_t meta,
//                     inout standard_metadata_t standard_metadata, out bit<16> best, out bit<16> second,
//                     out bit<32> order)
//       best     the slot that the scheme takes now
//       second   the slot that it would take if that were closed; another one wherever the group has two
//       order    in which order it would take the others if that were closed, too (rlb/reroute.p4): any number, which
//                is new as often as best and second are drawn anew
//
// A selector that remembers where packets went has a second control, the program's SELECTOR_MEMORY. It is told of the
// slot by which a packet of data really leaves:
//
//   control XMemory(in group_t group, in bit<16> slot)
//
// It balances DATA; all else takes its ECMP slot. It is applied once a packet, for it may remember what it chose.
// group_size is at least 1 (common/routes.p4). A port may have several slots (tailrace/schemes/blocks/
// groups.py): then neighbouring slots belong to different ports as long as no link is down.
#ifndef COMMON_SELECTOR_P4
#define COMMON_SELECTOR_P4
#include "common/ecmp.p4"

#endif
