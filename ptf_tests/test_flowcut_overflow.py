# SPDX-License-Identifier: Apache-2.0
"""A full bucket: flows go untracked, in order, and stay so while any untracked byte of the bucket is in
flight.

Run one case: scripts/run_ptf.py --target native test_flowcut_overflow.OverflowTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, REMOTE
from ptf_tests.flowcut import WAYS, FlowcutTest, Sent
from ptf_tests.frames import Flow

FIRST_SPORT = 3000
FLOWS = [Flow(HOST, REMOTE, sport=FIRST_SPORT + i) for i in range(WAYS + 1)]
UNTRACKED_FLOW = FLOWS[WAYS]


class FullBucketTest(FlowcutTest):
    """Bucket 0 has a flow in each way."""

    def setUp(self) -> None:
        super().setUp()
        self.tracked = [self.send_data(flow) for flow in FLOWS[:WAYS]]
        self.expect_in_flight(*self.tracked)

    def expect_in_flight(self, *sent: Sent) -> None:
        """The table comes to hold exactly these, one frame of each flow."""
        self.expect_flows({packet.flow.sport: packet.frame_bytes for packet in sent})


@group("flowcut")
class OverflowTest(FullBucketTest):
    """A fifth flow is forwarded like the others, with shim and stamp, and counted with the bucket."""

    def runTest(self) -> None:
        first = self.send_data(UNTRACKED_FLOW)
        self.assertEqual(first.frame_bytes, self.untracked_bytes())
        second = self.send_data(UNTRACKED_FLOW, payload=bytes(500))
        self.assertEqual(first.port, second.port)
        self.assertEqual(first.frame_bytes + second.frame_bytes, self.untracked_bytes())
        self.expect_in_flight(*self.tracked)
        self.expect_count("flowcut_overflow", 2)
        self.send_ack(first)
        self.assertEqual(second.frame_bytes, self.untracked_bytes())
        self.send_ack(second)
        self.assertEqual(0, self.untracked_bytes())
        self.expect_count("acks_unknown", 2)
        self.expect_in_flight(*self.tracked)
        self.finish(*self.tracked)
        self.expect_drops()
