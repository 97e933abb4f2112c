# SPDX-License-Identifier: Apache-2.0
"""Flows that leave a withdrawn path while their packets may still be on it: they move at once, and the last
switch drops what comes late (p4src/flowcut/moved.p4).

Run one case: scripts/run_ptf.py --target native test_flowcut_moved.MovedTest
"""

from __future__ import annotations

from dataclasses import replace

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS
from ptf_tests.flowcut import WAYS, FlowcutTest
from ptf_tests.frames import MOVED, UNTRACKED, Flow, roce, shimmed

AGE_TICKS = 2**31 - 1
"""The longest age within which stamps can be compared: half an hour and more."""

FLOW = Flow(HOST, REMOTE, sport=4000)
INBOUND = Flow(REMOTE, HOST, sport=4001)


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


@group("flowcut")
class LateTest(MovedFlowTest):
    """At the last switch: what was sent before a packet that has moved is dropped once that one is there."""

    def arrive(self, ticks: int, rest: int = 1, flow: Flow = INBOUND) -> None:
        """A packet that its first switch sent at `ticks`; another switch has stamped it since."""
        stamps = [((ticks + 500) % 2**32, rest), (ticks % 2**32, 1)]
        self.send(UPLINKS[0], shimmed(roce(flow), 2, stamps))

    def passes(self, ticks: int, rest: int = 1, flow: Flow = INBOUND) -> None:
        """It reaches its host, and its ACK leaves."""
        self.arrive(ticks, rest, flow)
        self.receive(HOST_PORT)
        self.receive(UPLINKS[0])

    def runTest(self) -> None:
        start = 2**32 - 100  # the clock wraps
        self.passes(start)
        self.passes(start + 300, 1 | MOVED)
        for late in (start + 299, start, start + 300 - 2**31 + 1):
            self.arrive(late)
        self.arrive(start + 300)  # in one tick with it, and not moved: before it
        self.arrive(start + 299, 1 | MOVED)
        self.expect_drops(PATH_WITHDRAWN=5)
        self.passes(start + 300, 1 | MOVED)
        self.passes(start + 301)
        self.passes(start, flow=replace(INBOUND, sport=1))
        self.passes(start + 400, 1 | MOVED)
        self.arrive(start + 399)
        self.expect_drops(PATH_WITHDRAWN=6)
        self.configure(age_ticks=1000)
        self.passes(start - 601)  # more than an age before: the clock of the first switch has begun anew
        # when the age is over, nothing of that time can be there any more, and the record is free
        self.configure(age_ticks=0)
        self.passes(start)
