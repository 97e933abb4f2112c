# SPDX-License-Identifier: Apache-2.0
"""ECMP, the program and what it shares with the others: flows spread, each keeps its path, a failed slot
moves alone.

Run one case: scripts/run_ptf.py --target native test_ecmp.SpreadTest
"""

from __future__ import annotations

from collections import Counter

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce, tagged

FLOWS = 96
FIRST_SPORT = 50000


class EcmpTest(FabricTest):
    """Many flows to one other switch."""

    def paths(self) -> list[int]:
        """The port of each flow."""
        ports = []
        for sport in range(FIRST_SPORT, FIRST_SPORT + FLOWS):
            flow = Flow(HOST, REMOTE, sport=sport)
            self.send(HOST_PORT, roce(flow))
            port, frame = self.receive()
            self.assertEqual(bytes(roce(flow, ttl=63, tag=tagged(0, port))), frame)
            ports.append(port)
        return ports


@group("ecmp")
class SpreadTest(EcmpTest):
    """Every uplink has its share of the flows, and a flow never moves."""

    def runTest(self) -> None:
        paths = self.paths()
        shares = Counter(paths)
        self.assertEqual(set(UPLINKS), set(shares))
        # Of 96 flows an uplink has 32 on average, with a standard deviation of 4.6.
        self.assertGreater(min(shares.values()), FLOWS // len(UPLINKS) // 3)
        self.assertEqual(paths, self.paths())
        self.nothing_else()


@group("ecmp")
class FlowcutOffTest(SpreadTest):
    """The Flowcut program, switched off, is ECMP: no shim, no state."""

    program = "flowcut"
