# SPDX-License-Identifier: Apache-2.0
"""RLB: groups with many next hops, one that the controller is just changing, and one that leads to no leaf.

Run one case: scripts/run_ptf.py --target native test_rlb_groups.AllSlotsTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.fabric import DOWNLINK, HOST, HOST_PORT, UPLINK_GROUP, UPLINKS
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.rlb import FOREVER, LAST_FLOW, MOST_SLOTS, NO_LEAF, RlbTest, cnm
from tailrace.codec.layers.cnm import LEAF_ALL, Cnm

FAST, OTHER, LAST = UPLINKS
WIDE, WIDE_LEAF, WIDE_GROUP = "10.0.9.2", 9, 9
WIDE_FLOW = Flow(HOST, WIDE)
AROUND_MOST = 67
"""The least prime that is no less than the number of slots that a group may have."""
ONE_PASS = 8
"""Next hops that one pass of ingress looks at."""


@group("rlb")
class ManyNextHopsTest(RlbTest):
    """More next hops than one pass of ingress looks at: the packet goes through it again till one is open,
    whichever is the second one that its flow looks at.
    """

    def runTest(self) -> None:
        ports = (*[FAST] * 13, OTHER)
        self.add_group(WIDE, WIDE_GROUP, ports)
        self.leaf_at(WIDE, WIDE_LEAF, WIDE_GROUP, ports)
        self.tell(FAST, cnm(FOREVER, leaf=WIDE_LEAF))
        for sport in range(49152, 49152 + 2 * len(ports)):
            self.send(HOST_PORT, roce(Flow(HOST, WIDE, sport)))
            self.assertEqual(OTHER, self.receive()[0])
        self.assertEqual((0, 0), self.port_queues(OTHER))
        self.nothing_else()


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
class ManyReviewedTest(RlbTest):
    """Before a switch without hosts passes a warning on, it looks at all next hops towards the leaf, also at
    those that take more than one pass of ingress: whether one is open, when the first one will be, and
    whether the warning came by one of them.
    """

    def setUp(self) -> None:
        super().setUp()
        self.warnings(own_leaf=NO_LEAF)

    def runTest(self) -> None:
        ports = (*[FAST] * (ONE_PASS + 1), OTHER)
        self.add_group(WIDE, WIDE_GROUP, ports)
        self.leaf_at(WIDE, WIDE_LEAF, WIDE_GROUP, ports)
        self.tell(FAST, cnm(FOREVER, leaf=WIDE_LEAF))
        self.nothing_else()
        self.send(OTHER, cnm(FOREVER // 2, leaf=WIDE_LEAF))
        for port in (DOWNLINK, FAST, LAST, self.slow_port):
            message = Ether(self.receive(port)[1])[Cnm]
            self.assertEqual((WIDE_LEAF, 1), (message.leaf, message.hops))
            self.assertTrue(0 < message.valid_ticks <= FOREVER // 2)
        self.tell(LAST, cnm(FOREVER, leaf=WIDE_LEAF))
        self.nothing_else()
        self.send(OTHER, cnm(0, leaf=WIDE_LEAF))
        for port in (DOWNLINK, FAST, LAST, self.slow_port):
            self.expect(port, cnm(0, leaf=WIDE_LEAF, hops=1))
        self.nothing_else()
        self.expect_count("warnings_passed_on", 2)


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
