# SPDX-License-Identifier: Apache-2.0
"""Queues: what waits is known by port, control packets go first, and the program's limit drops data only.

Run one case: scripts/run_ptf.py --target native test_queues.FullQueueTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, OTHER_HOST_PORT, FabricTest
from ptf_tests.frames import control_packets, roce
from ptf_tests.slow_port import FILLER_BYTES, FILLERS, SlowPortTest


@group("queues")
class ReadPortTest(SlowPortTest):
    """READ_PORT says what waits by egress port and by ingress port, to the byte, and nothing stays behind."""

    def runTest(self) -> None:
        self.fill()
        waiting, _ = self.port_queues(self.slow_port)
        self.assertGreater(waiting, 0)
        self.assertEqual(0, waiting % FILLER_BYTES)
        self.assertLessEqual(waiting, FILLERS * FILLER_BYTES)
        # Asked later, so not more; the other host's frames wait for the slow port only.
        still_waiting = self.port_queues(OTHER_HOST_PORT)
        self.assertEqual(0, still_waiting[0])
        self.assertEqual(0, still_waiting[1] % FILLER_BYTES)
        self.assertLessEqual(still_waiting[1], waiting)
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))
        self.drain(FILLERS)
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
        self.expect_drops()


@group("queues")
class FullQueueTest(SlowPortTest):
    """A queue at its limit takes no more, and what was dropped is charged to nobody."""

    def runTest(self) -> None:
        room = 3
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=room * FILLER_BYTES))
        self.fill()
        self.assertLessEqual(self.waiting(), room * FILLER_BYTES)
        dropped = self.count("drops", self.enum("DropReason_t", "QUEUE_LIMIT"))
        self.assertGreater(dropped, 0)
        self.drain(FILLERS - dropped)
        self.expect_drops(QUEUE_LIMIT=dropped)
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))


@group("queues")
class LimitTest(FabricTest):
    """The limit counts what waits and the packet itself; 0 is no limit; control packets pass any limit."""

    def runTest(self) -> None:
        frame = roce(FLOW)
        for limit, passes in ((len(frame), True), (len(frame) - 1, False), (1, False), (0, True)):
            self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=limit))
            dropped = self.count("drops", self.enum("DropReason_t", "QUEUE_LIMIT"))
            self.send(HOST_PORT, frame)
            if passes:
                self.receive()
            self.expect_count("drops", dropped + (not passes), self.enum("DropReason_t", "QUEUE_LIMIT"))
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        for packet in control_packets(FLOW):
            self.send(HOST_PORT, packet)
            self.receive()
        self.expect_drops(QUEUE_LIMIT=2)
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))
