# SPDX-License-Identifier: Apache-2.0
"""Ageing: what was lost stays in flight until its flow has been silent for its age (DESIGN §6).

Run one case: scripts/run_ptf.py --target native test_flowcut_age.SweepTest

The age is either a week or nothing, so that no test depends on how fast the machine is; what happens at the
age itself is tested in virtual time (tests/p4src).
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, REMOTE
from ptf_tests.flowcut import WAYS, FlowcutTest
from ptf_tests.frames import Flow

FLOWS = [Flow(HOST, REMOTE, sport=4000 + i) for i in range(WAYS + 1)]


@group("flowcut")
class SweepTest(FlowcutTest):
    """SWEEP deletes what is past its age and says what is left; READ_FLOWS and young entries are safe."""

    def runTest(self) -> None:
        sent = [self.send_data(flow) for flow in FLOWS]
        tracked = {packet.flow.sport: packet.frame_bytes for packet in sent[:WAYS]}
        self.bucket(op="SWEEP")
        self.assertEqual(tracked, self.in_flight())
        self.assertEqual(sent[-1].frame_bytes, self.untracked_bytes())
        self.configure(age_ticks=0)
        self.assertEqual(tracked, self.in_flight())
        self.assertEqual(sent[-1].frame_bytes, self.untracked_bytes())
        self.assertEqual({}, self.entries(op="SWEEP"))
        self.assertEqual({}, self.in_flight())
        self.assertEqual(0, self.untracked_bytes())
        self.expect_count("flowcut_expired", WAYS)
        self.expect_count("flowcut_deleted", 0)


@group("flowcut")
class LateAckTest(FlowcutTest):
    """An ACK that comes after its entry is gone takes nothing off anyone, below zero least of all."""

    def runTest(self) -> None:
        late = self.send_data()
        self.configure(age_ticks=0)
        self.bucket(op="SWEEP")
        self.configure()
        other = self.send_data(FLOWS[0])
        self.send_ack(late)
        self.expect_flows({other.flow.sport: other.frame_bytes})
        self.assertEqual(0, self.untracked_bytes())
        self.expect_count("acks_unknown", 1)
