# SPDX-License-Identifier: Apache-2.0
"""Flows that leave a withdrawn path while their packets are on it move at once (p4src/flowcut/moved.p4).

What comes late is dropped by the last switch: tests/p4src/test_moved.py.

Run one case: scripts/run_ptf.py --target native test_flowcut_moved.MovedTest
"""

from __future__ import annotations

from dataclasses import replace

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS
from ptf_tests.flowcut import WAYS, FlowcutTest
from ptf_tests.frames import MOVED, UNTRACKED, Flow

AGE_TICKS = 2**31 - 1
"""The longest age within which stamps can be compared: half an hour and more."""

FLOW = Flow(HOST, REMOTE, sport=4000)


class MovedFlowTest(FlowcutTest):
    """Flows can be moved."""

    flow = FLOW

    def setUp(self) -> None:
        super().setUp()
        self.configure(age_ticks=AGE_TICKS)

    def withdraw(self, port: int) -> int:
        """A port is no next hop any more; all slots lead to the port that this returns."""
        rest = tuple(other for other in UPLINKS if other != port)
        self.change_candidates(UPLINK_GROUP, *rest)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, rest[0])
        return rest[0]


@group("flowcut")
class MovedTest(MovedFlowTest):
    """Nothing of it waits. Its packets say so until an ACK of one is back; what was on the old path is not
    counted any more, whether its ACKs come or not."""

    def runTest(self) -> None:
        before = [self.send_data(), self.send_data()]
        self.assertEqual([0, 0], [self.flags(packet) for packet in before])
        port = self.withdraw(before[0].port)
        first, second = self.send_data(), self.send_data()
        self.assertEqual([port] * 2, [first.port, second.port])
        self.assertEqual([MOVED] * 2, [self.flags(first), self.flags(second)])
        self.expect_count("flowcut_moved", 1)
        self.expect_flows({first.flow.sport: first.frame_bytes + second.frame_bytes})
        self.send_ack(before[0])
        self.expect_count("acks_unknown", 1)
        self.expect_flows({first.flow.sport: first.frame_bytes + second.frame_bytes})
        self.send_ack(first)
        third = self.send_data()
        self.assertEqual((port, 0), (third.port, self.flags(third)))
        self.finish(second, third)
        # a new flowcut takes no ACK of the old path for its own either
        fourth = self.send_data()
        self.send_ack(before[1])
        self.expect_count("acks_unknown", 2)
        self.expect_flows({fourth.flow.sport: fourth.frame_bytes})
        self.finish(fourth)
        self.expect_drops()


@group("flowcut")
class MovedInDrainTest(MovedFlowTest):
    """A source that was asked to stop is told to go on when the new path has drained."""

    def runTest(self) -> None:
        before = [self.send_data() for _ in range(3)]
        self.configure_drain(rtt_threshold=0)
        self.send_ack(before[0])
        self.receive(HOST_PORT)  # XOFF
        self.assertEqual("DRAINING", self.state_of(before[0].flow))
        self.withdraw(before[0].port)
        moved = self.send_data()
        self.assertEqual("DRAINING", self.state_of(moved.flow))
        self.send_ack(moved)
        self.receive(HOST_PORT)  # XON
        self.expect_count("xon_sent", 1)
        self.expect_flows({})


@group("flowcut")
class MovedUntrackedTest(MovedFlowTest):
    """A flow that found no room moves likewise; its bytes stay counted with the bucket."""

    def runTest(self) -> None:
        flows = [replace(FLOW, sport=5000 + i) for i in range(WAYS + 1)]
        tracked = [self.send_data(flow) for flow in flows[:WAYS]]
        before = self.send_data(flows[WAYS])
        self.assertEqual(UNTRACKED, self.flags(before))
        port = self.withdraw(before.port)
        after = [self.send_data(flows[WAYS]) for _ in range(2)]
        self.assertEqual([port] * 2, [packet.port for packet in after])
        self.assertEqual([MOVED | UNTRACKED] * 2, [self.flags(packet) for packet in after])
        self.assertEqual(3 * before.frame_bytes, self.untracked_bytes())
        for packet in (before, *after):
            self.send_ack(packet)
        self.assertEqual(0, self.untracked_bytes())
        self.expect_flows({packet.flow.sport: packet.frame_bytes for packet in tracked})
