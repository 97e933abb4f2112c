# SPDX-License-Identifier: Apache-2.0
"""Draining (Flowcut §II-B, §IV-C): when it starts, what the source is told, and when it ends.

Run one case: scripts/run_ptf.py --target native test_flowcut_drain.PauseTest

A threshold of 0 stands for "every RTT is too long": real time is no exact RTT. When a drain starts is
tested in virtual time (tests/p4src, tests/flowcut).
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, PauseOp, pause


class DrainTest(FlowcutTest):
    """Three packets of a flow are in flight."""

    flow = FLOW
    in_port = HOST_PORT

    def setUp(self) -> None:
        super().setUp()
        self.sent = [self.send_data(self.flow, in_port=self.in_port) for _ in range(3)]

    def expect_pause(self, op: PauseOp, credit_bytes: int = 0) -> None:
        """The source gets exactly this."""
        self.expect(self.in_port, pause(self.flow, op, credit_bytes))


@group("flowcut")
class PauseTest(DrainTest):
    """XOFF once, where the data came in; the rest drains on its path; then the entry goes, XON comes."""

    flow = Flow(OTHER_HOST, REMOTE)
    in_port = OTHER_HOST_PORT

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)
        self.assertEqual("DRAINING", self.state_of(self.flow))
        late = self.send_data(self.flow, in_port=self.in_port)  # was under way when the XOFF came
        self.assertEqual(self.sent[0].port, late.port)
        self.send_ack(self.sent[1])
        self.send_ack(self.sent[2])
        self.nothing_else()
        self.assertEqual("DRAINING", self.state_of(self.flow))
        self.finish(late)
        self.expect_pause(PauseOp.XON)
        self.nothing_else()
        for counter in ("xoff_sent", "xon_sent", "flowcut_created", "flowcut_deleted"):
            self.expect_count(counter, 1)
        self.expect_drops()


@group("flowcut")
class CreditTest(DrainTest):
    """With a credit the XOFF grants it; the XON grants none."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.configure_pauses(credit_bytes=0x12345678)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF_CREDIT, 0x12345678)
        self.finish(*self.sent[1:])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()
