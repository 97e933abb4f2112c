# SPDX-License-Identifier: Apache-2.0
"""RLB: what it knows of paths and ports as the controller asks for it by packets, and flows that stay where
they were moved to (RLB §III, Algorithm 1).

Run one case: scripts/run_ptf.py --target native test_rlb_state.RecirculationAnswerTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.drill import DrillTest
from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINKS
from ptf_tests.frames import Flow, roce
from ptf_tests.rlb import (
    FOREVER,
    LEAVES,
    PATH_PORTS,
    AnswerTest,
    RlbTest,
    cnm,
)

FAST, OTHER, LAST = UPLINKS
YEAR_LIKE = 1 << 30
"""Ticks: no path has that RTT."""


@group("rlb")
class NoSuchPathTest(AnswerTest):
    """Paths and ports that there are not are not answered, and what is asked next is."""

    def runTest(self) -> None:
        self.packet_out("READ_PATH", PATH_PORTS * LEAVES)
        self.packet_out("READ_RLB_PORT", 512)
        self.assertIn("now_ticks", self.path(PATH_PORTS - 1, LEAVES - 1))
        self.assertIn("now_ticks", self.port(0))
        self.nothing_else()


@group("rlb")
class RecirculationAnswerTest(AnswerTest):
    """How long a packet takes on its way round, once one has been there; nobody is there in the end."""

    def runTest(self) -> None:
        before = self.port(FAST)
        for name in ("own_warning_ticks", "recirculation_seen_ticks", "recirculating"):
            self.assertEqual(0, before[name])
        self.measure({FAST: YEAR_LIKE // 2, OTHER: YEAR_LIKE, LAST: YEAR_LIKE})
        self.tell(FAST, cnm(FOREVER))
        self.limits(most=2)
        self.round_of_packets()
        self.assertEqual(2, self.recirculations())
        after = self.port(FAST)
        self.assertTrue(0 < after["recirculation_seen_ticks"] <= after["now_ticks"])
        self.assertEqual(0, after["recirculating"])
        self.nothing_else()


@group("rlb")
class OverLetflowTest(RlbTest):
    """RLB over LetFlow: a flowlet that wants a warned path takes another one, all its packets the same."""

    program = "rlb_letflow"

    def runTest(self) -> None:
        self.set_default("flowlet_config", self.action("set_flowlet_gap", gap_ticks=10**12))
        self.tell(FAST, cnm(FOREVER))
        seen = set()
        for sport in range(24):
            ports = []
            for _ in range(3):
                self.send(HOST_PORT, roce(Flow(HOST, REMOTE, sport=1000 + sport)))
                ports.append(self.receive()[0])
            self.assertEqual(1, len(set(ports)))
            seen.add(ports[0])
        self.assertEqual({OTHER, LAST}, seen)
        self.expect_count("flowlets_created", 24)
        self.nothing_else()


@group("rlb")
class OverDrillTest(RlbTest, DrillTest):
    """RLB over DRILL: where the best next hop is warned the second best is taken; and it is the one that was
    taken that is remembered, not the one that was refused.
    """

    program = "rlb_drill"

    def only_port(self) -> int:
        """The one port by which packets leave while nothing waits."""
        ports = set()
        for _ in range(8):
            self.send(HOST_PORT, roce(FLOW))
            ports.add(self.receive()[0])
        self.assertEqual(1, len(ports))
        return ports.pop()

    def runTest(self) -> None:
        best = self.only_port()
        for _ in range(4):
            self.tell(best, cnm(FOREVER))
            second = self.only_port()
            self.assertIn(second, set(UPLINKS) - {best})
            self.tell(best, cnm(0))
            self.assertEqual(second, self.only_port())
            best = second
        self.nothing_else()


@group("rlb")
class OverHermesTest(OverLetflowTest):
    """RLB over Hermes: the sender's port says the path, and a warned one is left."""

    program = "rlb_hermes"

    def runTest(self) -> None:
        self.tell(FAST, cnm(FOREVER))
        seen = set()
        for sport in range(24):
            self.send(HOST_PORT, roce(Flow(HOST, REMOTE, sport=1000 + sport)))
            seen.add(self.receive()[0])
        self.assertEqual({OTHER, LAST}, seen)
        self.nothing_else()
