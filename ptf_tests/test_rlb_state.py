# SPDX-License-Identifier: Apache-2.0
"""RLB: what it knows of paths and ports as the controller asks for it by packets, and flows that stay where
they were moved to (RLB §III, Algorithm 1).

Run one case: scripts/run_ptf.py --target native test_rlb_state.PathAnswerTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.drill import DrillTest
from ptf_tests.fabric import DOWNLINK, FLOW, HOST, HOST_PORT, REMOTE, UPLINKS
from ptf_tests.frames import Flow, roce
from ptf_tests.rlb import (
    FOREVER,
    LEAVES,
    PATH_PORTS,
    REMOTE_LEAF,
    AnswerTest,
    PredictingTest,
    RlbTest,
    cnm,
)
from tailrace.codec.layers.cnm import LEAF_ALL

FAST, OTHER, LAST = UPLINKS
YEAR_LIKE = 1 << 30
"""Ticks: no path has that RTT."""


@group("rlb")
class PathAnswerTest(AnswerTest):
    """Nothing at first; then warnings of a path and of its port as they come, and the RTT as measured."""

    def runTest(self) -> None:
        before = self.path(FAST)
        now = before.pop("now_ticks")
        self.assertEqual({0}, set(before.values()))
        self.tell(FAST, cnm(FOREVER))
        warned = self.path(FAST)
        self.assertGreater(warned["warned_until_ticks"], warned["now_ticks"])
        self.assertGreaterEqual(warned["now_ticks"], now)
        self.assertEqual(0, warned["port_warned_until_ticks"])
        for other in (self.path(FAST, REMOTE_LEAF + 1), self.path(OTHER)):
            self.assertEqual(0, other["warned_until_ticks"])
        self.tell(FAST, cnm(FOREVER, leaf=LEAF_ALL))
        for leaf in (REMOTE_LEAF, REMOTE_LEAF + 1):
            answer = self.path(FAST, leaf)
            self.assertGreater(answer["port_warned_until_ticks"], answer["now_ticks"])
        self.tell(FAST, cnm(0))
        answer = self.path(FAST)
        self.assertLessEqual(answer["warned_until_ticks"], answer["now_ticks"])
        self.tell(FAST, cnm(0, leaf=LEAF_ALL))
        self.measure({FAST: YEAR_LIKE, OTHER: 2 * YEAR_LIKE, LAST: YEAR_LIKE})
        fast, other = self.path(FAST), self.path(OTHER)
        self.assertGreaterEqual(fast["rtt_ticks"], YEAR_LIKE)
        self.assertGreater(other["rtt_ticks"], fast["rtt_ticks"])
        for answer in (fast, other):
            self.assertTrue(0 < answer["rtt_seen_ticks"] <= answer["now_ticks"])
        self.nothing_else()


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
class OwnWarningTest(AnswerTest, PredictingTest):
    """A switch says since when it warns of a port, as long as it does: as often as it has withdrawn less than
    it has warned.
    """

    def runTest(self) -> None:
        self.predict(valid_ticks=FOREVER)
        self.until_warned()
        warned, withdrawn = (self.count(name, DOWNLINK) for name in ("warnings_sent", "warnings_withdrawn"))
        self.assertTrue(warned)
        answer = self.port(DOWNLINK)
        self.assertEqual(warned > withdrawn, answer["own_warning_ticks"] > 0)
        self.assertLessEqual(answer["own_warning_ticks"], answer["now_ticks"])
        for port in (*UPLINKS, HOST_PORT):
            self.assertEqual(0, self.port(port)["own_warning_ticks"])


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
