# SPDX-License-Identifier: Apache-2.0
"""Early resume (Flowcut §IV-C): XON when no more than a bound is in flight; only so much can be overtaken.

Run one case: scripts/run_ptf.py --target native test_flowcut_resume.ResumeTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import PauseOp, pause


class ResumingTest(FlowcutTest):
    """Of five packets two may be in flight at the resume: the drain has begun and come to that point."""

    def setUp(self) -> None:
        super().setUp()
        self.sent = [self.send_data() for _ in range(5)]
        self.configure_drain(rtt_threshold=0, resume_bytes=2 * self.sent[0].frame_bytes)
        self.send_ack(self.sent[0])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XOFF))
        self.assertEqual("DRAINING", self.state_of())
        self.send_ack(self.sent[1])
        self.nothing_else()
        self.assertEqual("DRAINING", self.state_of())
        self.send_ack(self.sent[2])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XON))
        self.assertEqual("RESELECT", self.state_of())


@group("flowcut")
class ResumeTest(ResumingTest):
    """The next packet takes another path at once; what was in flight counts on with it."""

    def runTest(self) -> None:
        frame_bytes = self.sent[0].frame_bytes
        self.configure_drain()
        sent = self.send_data()
        self.assertNotEqual(self.sent[0].port, sent.port)
        self.assertEqual("TRACKED", self.state_of())
        self.expect_flows({FLOW.sport: 3 * frame_bytes})
        self.expect_count("flowcut_created", 1)
        self.expect_count("flowcut_rerouted", 1)
        self.assertEqual(0, self.entries()[FLOW.sport]["samples"])
        # From now on it stays there.
        self.assertEqual(sent.port, self.send_data().port)
        self.nothing_else()
