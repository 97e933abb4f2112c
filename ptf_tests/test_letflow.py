# SPDX-License-Identifier: Apache-2.0
"""LetFlow: within a flowlet one path, after a pause longer than the gap any path.

Run one case: scripts/run_ptf.py --target native test_letflow.TimeoutTest

The switch's clock is real time here, so the gaps are far from the pauses: what happens at the gap itself is
tested in virtual time (tests/p4src).
"""

from __future__ import annotations

import time

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce

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
