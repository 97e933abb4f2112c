# SPDX-License-Identifier: Apache-2.0
"""DRILL(2,1): data evades the longer queue, and what was best is remembered.

Run one case: scripts/run_ptf.py --target native test_drill.EvadeTest

In a group of two both ports are sampled, so that nothing is left to chance.
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.drill import DrillTest
from ptf_tests.fabric import HOST, HOST_PORT, UPLINKS
from ptf_tests.frames import Flow, roce
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest

PAIR_REMOTE, PAIR_GROUP, FREE_PORT = "10.0.9.2", 9, UPLINKS[0]
FRAME = roce(Flow(HOST, PAIR_REMOTE))


@group("drill")
class EvadeTest(DrillTest, SlowPortTest):
    """While one port of a pair has a queue, data leaves by the other one, and stays when both are empty."""

    def evade(self) -> bool:
        """A frame comes in while a queue waits at the slow port; whether it did wait all the time."""
        self.fill()
        before = self.count("port_rx", HOST_PORT)
        self.send(HOST_PORT, FRAME)
        self.expect_count("port_rx", before + 1, HOST_PORT)
        return self.waiting() >= FILLER_BYTES

    def runTest(self) -> None:
        self.add_group(PAIR_REMOTE, PAIR_GROUP, (self.slow_port, FREE_PORT))
        for _ in range(ATTEMPTS):
            waited = self.evade()
            if waited:
                break
            # The frame may have left by either port.
            self.drain(FILLERS)
            self.dataplane.flush()
        else:
            self.fail("the machine is too slow: the slow port was never loaded at the right time")
        self.receive(FREE_PORT)
        self.drain(FILLERS)
        for _ in range(8):
            self.send(HOST_PORT, FRAME)
            self.receive(FREE_PORT)
        self.expect_drops()
