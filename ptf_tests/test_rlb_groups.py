# SPDX-License-Identifier: Apache-2.0
"""RLB: groups with many next hops, one that the controller is just changing, and one that leads to no leaf.

Run one case: scripts/run_ptf.py --target native test_rlb_groups.AllSlotsTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import DOWNLINK, HOST, HOST_PORT, UPLINK_GROUP, UPLINKS
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.rlb import FOREVER, LAST_FLOW, MOST_SLOTS, RlbTest, cnm
from tailrace.codec.layers.local import LEAF_ALL

FAST, OTHER, LAST = UPLINKS
WIDE, WIDE_LEAF, WIDE_GROUP = "10.0.9.2", 9, 9
WIDE_FLOW = Flow(HOST, WIDE)
AROUND_MOST = 67
"""The least prime that is no less than the number of slots that a group may have."""


@group("rlb")
class AllSlotsTest(RlbTest):
    """As many next hops as there may be: packets find the one that is open, whichever part of what RLB is
    told of the group it is in.
    """

    def runTest(self) -> None:
        ports = [FAST] * MOST_SLOTS
        ports[17], ports[40], ports[MOST_SLOTS - 1] = single = (OTHER, LAST, DOWNLINK)
        self.add_group(WIDE, WIDE_GROUP, tuple(ports))
        self.leaf_at(WIDE, WIDE_LEAF, WIDE_GROUP, ports, AROUND_MOST)
        for port in (FAST, *single):
            self.tell(port, cnm(FOREVER, leaf=WIDE_LEAF))
        for port in single:
            self.tell(port, cnm(0, leaf=WIDE_LEAF))
            for sport in range(49152, 49152 + 8):
                self.send(HOST_PORT, roce(Flow(HOST, WIDE, sport)))
                self.assertEqual(port, self.receive()[0])
            self.tell(port, cnm(FOREVER, leaf=WIDE_LEAF))
        self.nothing_else()


@group("rlb")
class NoLeafTest(RlbTest):
    """Packets to a host that is at no leaf evade warnings for all leaves, and no other; nobody measures their
    paths.
    """

    def runTest(self) -> None:
        self.add_group(WIDE, WIDE_GROUP, UPLINKS)
        self.add_entry("next_hops", {"group": WIDE_GROUP}, self.next_hops(UPLINKS))
        self.probes(FOREVER)
        for port in UPLINKS:
            self.send(HOST_PORT, roce(WIDE_FLOW))
            self.expect(port, roce(WIDE_FLOW, ttl=63, tag=tagged(0, port)))
        self.tell(FAST, cnm(FOREVER))
        self.assertEqual(list(UPLINKS), self.round_of_packets(WIDE_FLOW))
        self.tell(FAST, cnm(FOREVER, leaf=LEAF_ALL))
        self.assertNotIn(FAST, self.round_of_packets(WIDE_FLOW))
        self.tell(FAST, cnm(0, leaf=LEAF_ALL))
        self.assertEqual(list(UPLINKS), self.round_of_packets(WIDE_FLOW))
        self.expect_count("probes_sent", 0)
        self.nothing_else()


@group("rlb")
class FewerNextHopsTest(RlbTest):
    """While the controller takes a next hop out, RLB may know of fewer than the selector: the search keeps to
    those that RLB knows of, wherever the flow's second one is, and what the selector gives to others stays
    there.
    """

    def runTest(self) -> None:
        entry = self.entry("next_hops", {"group": UPLINK_GROUP})
        entry.action.action.CopyFrom(self.next_hops((FAST, OTHER), around=2))
        self.modify(entry)
        self.assertEqual(list(UPLINKS), self.round_of_packets(LAST_FLOW))
        self.tell(FAST, cnm(FOREVER))
        self.assertEqual([OTHER, OTHER, LAST], self.round_of_packets(LAST_FLOW))
        self.tell(OTHER, cnm(FOREVER))
        self.assertEqual(list(UPLINKS), self.round_of_packets(LAST_FLOW))
        self.nothing_else()
