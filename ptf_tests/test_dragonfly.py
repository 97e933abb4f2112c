# SPDX-License-Identifier: Apache-2.0
"""Dragonfly: minimal paths and detours of data from hosts, and where a detour goes on and where it ends.

Run one case: scripts/run_ptf.py --target native test_dragonfly.ValiantTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.packet import Packet

from ptf_tests.dragonfly import (
    DETOUR_LIST,
    FOURTH_GROUP,
    ONWARD_GROUP,
    THIRD_GROUP,
    DragonflyTest,
    Link,
    detoured,
)
from ptf_tests.fabric import (
    DOWNLINK,
    FLOW,
    HOST,
    HOST_PORT,
    MIXED_GROUP,
    MIXED_REMOTE,
    OTHER_HOST,
    OTHER_HOST_PORT,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
    FabricTest,
)
from ptf_tests.frames import Flow, mac_of, roce, tagged
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest

A, B, C = UPLINKS
TO_HOST = Flow(REMOTE, OTHER_HOST)


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
class MinimalTest(DragonflyTest):
    """Minimal data has no header; each packet takes any link, each flow one."""

    def runTest(self) -> None:
        self.add_paths([Link(port, 2) for port in UPLINKS], [Link(B, 4, THIRD_GROUP)])
        for grain, paths in (("PACKET", 3), ("FLOW", 1)):
            self.set_paths("MINIMAL", grain)
            ports = set()
            for _ in range(40):  # a link is missing with a chance of (2/3)^40
                self.send(HOST_PORT, roce(FLOW))
                port, frame = self.receive()
                self.assertEqual(bytes(after(FLOW, port)).hex(), frame.hex())
                ports.add(port)
            self.assertEqual(paths, len(ports))
        self.nothing_else()


@group("dragonfly")
class OwnGroupLeftOutTest(DragonflyTest):
    """No detour leads through the destination's group, wherever it is in the list."""

    def runTest(self) -> None:
        self.set_paths("VALIANT")
        detours = [Link(A, 4, THIRD_GROUP), Link(B, 4, UPLINK_GROUP), Link(C, 4, FOURTH_GROUP)]
        self.add_paths([Link(A, 2)], detours, destination_slots=range(1, 2))
        seen = set()
        for _ in range(40):
            self.send(HOST_PORT, roce(FLOW))
            port, frame = self.receive()
            third_group = {A: THIRD_GROUP, C: FOURTH_GROUP}[port]
            self.assertEqual(bytes(detoured(after(FLOW, port), third_group)).hex(), frame.hex())
            seen.add(port)
        self.assertEqual({A, C}, seen)


@group("dragonfly")
class FlowsByHashTest(DragonflyTest):
    """Minimal or a detour by a coin that the flow's hash tosses: always the same."""

    def runTest(self) -> None:
        self.set_paths("MIXED", "FLOW", minimal_share=128)
        self.add_paths(
            [Link(port, 2) for port in UPLINKS], [Link(B, 4, THIRD_GROUP), Link(C, 4, FOURTH_GROUP)]
        )
        kinds = set()
        for sport in range(48):
            seen = set()
            for _ in range(2):
                self.send(HOST_PORT, roce(Flow(HOST, REMOTE, sport=sport)))
                seen.add(self.receive())
            self.assertEqual(1, len(seen))
            kinds.add(len(seen.pop()[1]))
        self.assertEqual(2, len(kinds))  # with the header and without


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


@group("dragonfly")
class TransitTest(DragonflyTest):
    """From a router of the group: a detour goes on to its group, others to their destination's."""

    def runTest(self) -> None:
        self.add_onward(UPLINK_GROUP, (A,), ONWARD_GROUP)
        self.add_onward(THIRD_GROUP, (C,), ONWARD_GROUP + 1)
        for sport in range(8):
            flow = Flow(HOST, REMOTE, sport=sport)
            self.send(DOWNLINK, roce(flow, ttl=63, tag=5))
            self.expect(A, after(flow, A, tag=5, ttl=63))
            self.send(DOWNLINK, detoured(roce(flow, ttl=63, tag=5), THIRD_GROUP))
            self.expect(C, detoured(after(flow, C, tag=5, ttl=63), THIRD_GROUP))
        # A detour that no link is known for is given up.
        self.send(DOWNLINK, detoured(roce(FLOW), FOURTH_GROUP))
        port, frame = self.receive()
        self.assertEqual(bytes(after(FLOW, port)).hex(), frame.hex())
        self.expect_drops()


@group("dragonfly")
class EndOfDetourTest(DragonflyTest):
    """The first link from another group ends a detour; a host never gets one."""

    def runTest(self) -> None:
        self.set_paths("VALIANT", "FLOW")
        self.add_paths([Link(A, 2)], [Link(B, 4, THIRD_GROUP)])
        for number in (UPLINK_GROUP, THIRD_GROUP, 0xFFFF, 0):
            self.send(A, detoured(roce(FLOW), number))
            port, frame = self.receive()
            self.assertEqual(bytes(after(FLOW, port)).hex(), frame.hex())
        for port in (A, DOWNLINK):
            self.send(port, detoured(roce(TO_HOST), THIRD_GROUP))
            self.expect(OTHER_HOST_PORT, roce(TO_HOST, ttl=63, dst_mac=mac_of(OTHER_HOST)))
        self.expect_drops()


@group("dragonfly")
class DetourFromHostTest(DragonflyTest):
    """A host cannot send its packets on a detour, nor can a switch send broken ones."""

    def runTest(self) -> None:
        frame = bytes(detoured(roce(FLOW), THIRD_GROUP))
        self.send(HOST_PORT, frame)
        self.expect_drops(CONTROL_FROM_HOST=1)
        twice = bytes(detoured(detoured(roce(FLOW), THIRD_GROUP), THIRD_GROUP))
        for broken in (twice, frame[:17] + b"\x86\xdd" + frame[19:]):
            self.send(DOWNLINK, broken)
        self.expect_drops(CONTROL_FROM_HOST=1, UNSUPPORTED=2)


class DetourElsewhereTest(FabricTest):
    """Programs of other networks know no detours."""

    def runTest(self) -> None:
        self.send(DOWNLINK, detoured(roce(FLOW), THIRD_GROUP))
        self.expect_drops(UNSUPPORTED=1)


@group("dragonfly")
class DetourAtEcmpTest(DetourElsewhereTest):
    """The program without state."""


@group("dragonfly")
class DetourAtFlowcutTest(DetourElsewhereTest):
    """The one that reads other headers of ours."""

    program = "flowcut"


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
class UgalFlowletTest(UgalTest):
    """UGAL-L for each flowlet: the choice of its first packet is that of all, also when nothing waits."""

    def setUp(self) -> None:
        super().setUp()
        self.set_paths("UGAL_L", "FLOWLET")
        self.set_default("flowlet_config", self.action("set_flowlet_gap", gap_ticks=10**12))

    def runTest(self) -> None:
        for sport in range(ATTEMPTS):
            self.flow = Flow(HOST, MIXED_REMOTE, sport=50000 + sport)
            if self.send_behind_fillers():
                break
        else:
            raise AssertionError("the machine is too slow: the slow port was never loaded at the right time")
        for _ in range(3):
            self.send(HOST_PORT, roce(self.flow))
            self.expect(B, detoured(after(self.flow, B), THIRD_GROUP))
        self.flow = Flow(HOST, MIXED_REMOTE, sport=60000)
        for _ in range(3):
            self.send(HOST_PORT, roce(self.flow))
            self.drain(1)
        self.nothing_else()
