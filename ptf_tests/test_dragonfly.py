# SPDX-License-Identifier: Apache-2.0
"""Dragonfly: minimal paths and detours of data from hosts, and where a detour goes on and where it ends.

Run one case: scripts/run_ptf.py --target native test_dragonfly.ValiantTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.packet import Packet

from ptf_tests.dragonfly import (
    DETOUR_LIST,
    THIRD_GROUP,
    DragonflyTest,
    Link,
    detoured,
)
from ptf_tests.fabric import (
    FLOW,
    HOST,
    HOST_PORT,
    MIXED_GROUP,
    MIXED_REMOTE,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
)
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest

A, B = UPLINKS[:2]


def after(flow: Flow, port: int, tag: int = 0, ttl: int = 64) -> Packet:
    """A packet as it leaves by a port to another switch."""
    return roce(flow, ttl=ttl - 1, tag=tagged(tag, port))


@group("dragonfly")
class ValiantTest(DragonflyTest):
    """Data from a host gets the header of its detour; ACKs do not, and go as ECMP has it."""

    def runTest(self) -> None:
        self.set_paths("VALIANT")
        self.add_paths([Link(A, 2)], [Link(B, 4, THIRD_GROUP)])
        for sport in range(8):
            flow = Flow(HOST, REMOTE, sport=sport)
            self.send(HOST_PORT, roce(flow))
            self.expect(B, detoured(after(flow, B), THIRD_GROUP))
        ack = roce(FLOW, opcode=0x11)
        self.send(HOST_PORT, ack)
        self.assertIn(self.receive()[0], UPLINKS)
        self.nothing_else()


@group("dragonfly")
class UgalTest(SlowPortTest, DragonflyTest):
    """UGAL-L: minimal while nothing waits, a detour while the minimal path's queue is the longer one."""

    flow = Flow(HOST, MIXED_REMOTE)

    def setUp(self) -> None:
        super().setUp()
        self.set_paths("UGAL_L")
        self.add_paths([Link(self.slow_port, 2)], [Link(B, 4, THIRD_GROUP)], MIXED_GROUP)

    def sent(self) -> int:
        """Packets that have left by either port."""
        return self.count("port_tx", self.slow_port) + self.count("port_tx", B)

    def send_behind_fillers(self) -> bool:
        """A packet of the flow comes in behind others; whether they still waited when it had been handled."""
        before, received, detours = self.sent(), self.count("port_rx", HOST_PORT), self.count("port_tx", B)
        self.fill()
        self.send(HOST_PORT, roce(self.flow))
        self.expect_count("port_rx", received + 1, HOST_PORT)
        was_loaded = self.waiting() >= FILLER_BYTES + len(roce(self.flow))
        self.eventually(before + FILLERS + 1, self.sent)
        detoured_now = self.count("port_tx", B) - detours
        self.drain(FILLERS + 1 - detoured_now)
        if detoured_now:
            self.expect(B, detoured(after(self.flow, B), THIRD_GROUP))
        self.assertTrue(detoured_now or not was_loaded)
        return was_loaded

    def runTest(self) -> None:
        self.send(HOST_PORT, roce(self.flow))
        self.assertEqual(bytes(after(self.flow, self.slow_port)).hex(), self.drain(1)[0].hex())
        if not any(self.send_behind_fillers() for _ in range(ATTEMPTS)):
            raise AssertionError("the machine is too slow: the slow port was never loaded at the right time")
        self.send(HOST_PORT, roce(self.flow))
        self.drain(1)
        self.nothing_else()


@group("dragonfly")
class MissingPathTest(DragonflyTest):
    """Where the path of one kind that is drawn is not there, the one of the other kind is taken, whatever the
    rule says; where neither is, a next hop of the group.
    """

    def runTest(self) -> None:
        self.add_paths([Link(A, 2)], [Link(B, 4, THIRD_GROUP)])
        self.remove_entry("minimal_paths", {"toward": UPLINK_GROUP, "slot": 0})
        for rule in ("MINIMAL", "UGAL_L", "VALIANT"):
            self.set_paths(rule)
            self.send(HOST_PORT, roce(FLOW))
            self.expect(B, detoured(after(FLOW, B), THIRD_GROUP))
        self.remove_entry("detours", {"list": DETOUR_LIST, "slot": 0})
        for rule in ("MINIMAL", "UGAL_L", "VALIANT"):
            self.set_paths(rule)
            self.send(HOST_PORT, roce(FLOW))
            port, frame = self.receive()
            self.assertIn(port, UPLINKS)
            self.assertEqual(bytes(after(FLOW, port)).hex(), frame.hex())
        minimal = self.action("minimal", port=A, links=2)
        self.add_entry("minimal_paths", {"toward": UPLINK_GROUP, "slot": 0}, minimal)
        for rule in ("MINIMAL", "UGAL_L", "VALIANT"):
            self.set_paths(rule)
            self.send(HOST_PORT, roce(FLOW))
            self.expect(A, after(FLOW, A))
        self.expect_drops()
