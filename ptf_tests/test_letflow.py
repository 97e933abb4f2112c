# SPDX-License-Identifier: Apache-2.0
"""LetFlow: within a flowlet one path, after a pause longer than the gap any path.

Run one case: scripts/run_ptf.py --target native test_letflow.TimeoutTest

The switch's clock is real time here, so the gaps are far from the pauses: what happens at the gap itself is
tested in virtual time (tests/p4src).
"""

from __future__ import annotations

import time

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce

NEVER_TICKS = 10**12
SHORT_GAP_TICKS = 1_000  # 1 ms on both targets
PAUSE_S = 0.005
FLOWLETS = 40


class LetflowTest(FabricTest):
    program = "letflow"

    def set_gap(self, ticks: int) -> None:
        self.set_default("flowlet_config", self.action("set_flowlet_gap", gap_ticks=ticks))

    def port_of(self, flow: Flow) -> int:
        self.send(HOST_PORT, roce(flow))
        return self.receive()[0]


@group("letflow")
class OneFlowletTest(LetflowTest):
    """Without a pause longer than the gap a flow stays, and each flow is one flowlet."""

    def runTest(self) -> None:
        self.set_gap(NEVER_TICKS)
        paths = set()
        for sport in range(32):
            flow = Flow(HOST, REMOTE, sport=1000 + sport)
            port = self.port_of(flow)
            self.assertEqual([port] * 3, [self.port_of(flow) for _ in range(3)])
            paths.add(port)
        self.assertEqual(set(UPLINKS), paths)
        self.expect_count("flowlets_created", 32)
        self.expect_drops()


@group("letflow")
class TimeoutTest(LetflowTest):
    """After each pause the flow draws a new path; its packets take all of them."""

    def runTest(self) -> None:
        self.set_gap(SHORT_GAP_TICKS)
        ports = []
        for _ in range(FLOWLETS):
            ports.append(self.port_of(FLOW))
            time.sleep(PAUSE_S)  # the pause that is tested
        self.expect_count("flowlets_created", FLOWLETS)
        # Each uplink is missing with a chance of (2/3)^40, about one in ten million.
        self.assertEqual(set(UPLINKS), set(ports))
        self.nothing_else()


@group("letflow")
class GapIsConfigurationTest(LetflowTest):
    """The gap can change at any time: the next packet already obeys the new one."""

    def runTest(self) -> None:
        self.set_gap(SHORT_GAP_TICKS)
        self.port_of(FLOW)
        time.sleep(PAUSE_S)
        self.set_gap(NEVER_TICKS)
        port = self.port_of(FLOW)
        self.assertEqual(port, self.port_of(FLOW))
        self.expect_count("flowlets_created", 1)


@group("letflow")
class NoFlowletsTest(LetflowTest):
    """Where flowlets are for other switches, a flow's path is that of its hash, however long it pauses."""

    def runTest(self) -> None:
        self.set_default("flowlet_config", self.action("no_flowlets"))
        flows = [Flow(HOST, REMOTE, sport=1000 + sport) for sport in range(32)]
        ports = [self.port_of(flow) for flow in flows]
        self.assertEqual(set(UPLINKS), set(ports))
        # Meanwhile each flow draws a path, which is of no meaning afterwards.
        self.set_gap(SHORT_GAP_TICKS)
        for flow in flows:
            self.port_of(flow)
        self.expect_count("flowlets_created", len(flows))
        self.set_default("flowlet_config", self.action("no_flowlets"))
        time.sleep(PAUSE_S)
        self.assertEqual(ports, [self.port_of(flow) for flow in flows])
        self.expect_count("flowlets_created", len(flows))
        self.expect_drops()
