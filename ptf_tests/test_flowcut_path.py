# SPDX-License-Identifier: Apache-2.0
"""Which next hop a flowcut takes: ECMP first, not those that were drained, none while in flight (Flowcut
§II-A).

Run one case: scripts/run_ptf.py --target native test_flowcut_path.FirstPathTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import (
    FLOW,
    HOST,
    HOST_PORT,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
)
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, PauseOp, pause, roce


@group("flowcut")
class FirstPathTest(FlowcutTest):
    """A flow's first flowcut takes the path that ECMP gives it."""

    def runTest(self) -> None:
        flows = [Flow(HOST, REMOTE, sport=7000 + i) for i in range(24)]
        self.mode = "OFF"
        self.configure()
        ecmp = []
        for flow in flows:
            self.send(HOST_PORT, roce(flow))
            ecmp.append(self.receive()[0])
        self.assertEqual(set(UPLINKS), set(ecmp))
        self.mode = "FULL"
        self.configure()
        for flow, port in zip(flows, ecmp, strict=True):
            self.assertEqual(port, self.make_known(flow))
        # Nothing waits anywhere, so the second flowcut has no reason to go elsewhere.
        self.assertEqual(ecmp, [self.make_known(flow) for flow in flows])
        self.expect_count("flowcut_rerouted", 0)


@group("flowcut")
class AvoidDrainedTest(FlowcutTest):
    """Drained ports are left alone while there are others; where a flowcut ended by itself, it stays."""

    def drain_flow(self) -> int:
        """A flowcut that is drained; returns its port."""
        self.configure_drain(rtt_threshold=0)
        sent = [self.send_data(), self.send_data()]
        self.send_ack(sent[0])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XOFF))
        self.finish(sent[1])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XON))
        self.configure_drain()
        return sent[0].port

    def runTest(self) -> None:
        ecmp = self.drain_flow()
        second = self.drain_flow()
        self.assertNotEqual(ecmp, second)
        third = self.make_known()
        self.assertNotIn(third, (ecmp, second))
        # The third was not drained: among equals the flow stays where it did well.
        self.assertEqual(third, self.make_known())
        self.expect_count("xoff_sent", 2)


@group("flowcut")
class StaysOnPathTest(FlowcutTest):
    """In flight a flow keeps its port when the controller moves its slot; a new flow takes the new one."""

    def runTest(self) -> None:
        first = self.send_data()
        other = next(port for port in UPLINKS if port != first.port)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, other)
        second = self.send_data()
        self.assertEqual(first.port, second.port)
        self.finish(first, second)
        self.assertEqual(other, self.send_data(Flow(HOST, REMOTE, sport=9)).port)
