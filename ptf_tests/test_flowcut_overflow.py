# SPDX-License-Identifier: Apache-2.0
"""A full bucket: flows go untracked, in order, and stay so while any untracked byte of the bucket is in
flight.

Run one case: scripts/run_ptf.py --target native test_flowcut_overflow.StaysUntrackedTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS
from ptf_tests.flowcut import WAYS, FlowcutTest, Sent
from ptf_tests.frames import Flow, roce

FIRST_SPORT = 3000
FLOWS = [Flow(HOST, REMOTE, sport=FIRST_SPORT + i) for i in range(WAYS + 3)]
UNTRACKED_FLOW, LATER_FLOW, LAST_FLOW = FLOWS[WAYS:]


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


@group("flowcut")
class StaysUntrackedTest(FullBucketTest):
    """When a way frees, no flow may take it while untracked bytes are in flight."""

    def runTest(self) -> None:
        untracked = self.send_data(UNTRACKED_FLOW)
        self.send_ack(self.tracked[0])
        self.expect_in_flight(*self.tracked[1:])
        again = self.send_data(UNTRACKED_FLOW)
        other = self.send_data(LATER_FLOW)
        self.assertEqual(untracked.port, again.port)
        self.expect_in_flight(*self.tracked[1:])
        self.expect_count("flowcut_overflow", 3)
        # One byte short of all is not all.
        for packet in (untracked, again):
            self.send_ack(packet)
        self.assertEqual(other.frame_bytes, self.untracked_bytes())
        self.send_data(UNTRACKED_FLOW)
        self.expect_in_flight(*self.tracked[1:])
        self.expect_count("flowcut_overflow", 4)


@group("flowcut")
class TrackedAgainTest(FullBucketTest):
    """Once nothing untracked is in flight, the next packet enters the way that is free."""

    def runTest(self) -> None:
        untracked = self.send_data(UNTRACKED_FLOW)
        self.send_ack(self.tracked[2])
        self.send_ack(untracked)
        self.assertEqual(0, self.untracked_bytes())
        sent = self.send_data(UNTRACKED_FLOW)
        self.expect_in_flight(self.tracked[0], self.tracked[1], self.tracked[3], sent)
        self.expect_count("flowcut_created", WAYS + 1)
        self.assertEqual(0, self.untracked_bytes())


@group("flowcut")
class MovedSlotTest(FullBucketTest):
    """While it is in flight an untracked flow keeps its port, also when the controller moves its slot."""

    def runTest(self) -> None:
        first = self.send_data(UNTRACKED_FLOW)
        other_port = next(port for port in UPLINKS if port != first.port)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, other_port)
        second = self.send_data(UNTRACKED_FLOW)
        self.assertEqual(first.port, second.port)
        # Another flow was not in flight, so it goes by the slot as it is now.
        other = self.send_data(LATER_FLOW)
        self.assertEqual(other_port, other.port)
        for packet in (first, second, other):
            self.send_ack(packet)
        self.assertEqual(0, self.untracked_bytes())
        self.assertEqual(other_port, self.send_data(UNTRACKED_FLOW).port)


@group("flowcut")
class WithdrawnTest(FullBucketTest):
    """When its port is no next hop any more, and its age too long for stamps to tell the order, nothing of it
    is sent until its bytes have landed."""

    def runTest(self) -> None:
        first = self.send_data(UNTRACKED_FLOW)
        rest = tuple(port for port in UPLINKS if port != first.port)
        self.change_candidates(UPLINK_GROUP, *rest)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, rest[0])
        self.send(HOST_PORT, roce(UNTRACKED_FLOW))
        self.expect_drops(PATH_WITHDRAWN=1)
        self.assertEqual(first.frame_bytes, self.untracked_bytes())
        self.send_ack(first)
        self.assertEqual(rest[0], self.send_data(UNTRACKED_FLOW).port)


@group("flowcut")
class NeverDrainedTest(FullBucketTest):
    """An untracked flow has no averages, so it is never told to stop."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        sent = [self.send_data(UNTRACKED_FLOW) for _ in range(3)]
        for packet in sent:
            self.send_ack(packet, congested=True)
        self.assertEqual(0, self.untracked_bytes())
        self.expect_count("xoff_sent", 0)
        self.nothing_else()
