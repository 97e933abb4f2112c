# SPDX-License-Identifier: Apache-2.0
"""UGAL-L of program `spritz`: by the queues of the source's switch; a tag tells the next one of a detour.

Run one case: scripts/run_ptf.py --target native test_spritz_ugal.OverLocalLinkTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.packet import Packet

from ptf_tests.fabric import HOST, HOST_PORT, MIXED_REMOTE
from ptf_tests.frames import Flow, classed, roce
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest
from ptf_tests.spritz import (
    FIRST_FAR,
    GLOBALS,
    LOCALS,
    SECOND_FAR,
    SpritzTest,
    after,
)

FLOW = Flow(HOST, MIXED_REMOTE)
UNKNOWN_VID = 77


class UgalTest(SpritzTest):
    """A switch whose destinations in other groups have one detour; those in its own group have none."""

    mode = "UGAL_L"
    detour = LOCALS[0]
    goes_on = True

    def setUp(self) -> None:
        super().setUp()
        self.nonminimal = self.enum("VlanId_t", "NONMINIMAL")

    def add_lists(self) -> None:
        self.add_list(FIRST_FAR, "FIRST", (self.detour,), goes_on=(self.detour,) if self.goes_on else ())
        self.add_list(SECOND_FAR, "SECOND", GLOBALS)


class DetourTest(SlowPortTest, UgalTest):
    """Minimal while nothing waits; a detour while the default port's queue is the longer one."""

    def on_detour(self) -> Packet:
        """The packet as it leaves by the detour."""
        packet = after(FLOW, self.detour)
        return classed(packet, self.nonminimal) if self.goes_on else packet

    def sent(self) -> int:
        """Packets that have left by either port."""
        return self.count("port_tx", self.slow_port) + self.count("port_tx", self.detour)

    def send_behind_fillers(self, frame: Packet) -> bool:
        """A packet of the flow comes in behind others; whether they still waited when it had been handled."""
        before, received = self.sent(), self.count("port_rx", HOST_PORT)
        detours = self.count("port_tx", self.detour)
        self.fill()
        self.send(HOST_PORT, frame)
        self.expect_count("port_rx", received + 1, HOST_PORT)
        was_loaded = self.waiting() >= FILLER_BYTES + len(roce(FLOW))
        self.eventually(before + FILLERS + 1, self.sent)
        detoured_now = self.count("port_tx", self.detour) - detours
        left = self.drain(FILLERS + 1 - detoured_now)
        if detoured_now:
            self.expect(self.detour, self.on_detour())
        else:
            self.assertIn(bytes(after(FLOW, self.slow_port)), left)
        self.assertTrue(detoured_now or not was_loaded)
        return bool(detoured_now)

    def check_detours(self) -> None:
        """Idle, loaded, for frames with and without tag."""
        for frame in (roce(FLOW), classed(roce(FLOW), self.nonminimal), classed(roce(FLOW), UNKNOWN_VID)):
            self.send(HOST_PORT, frame)
            self.assertEqual(bytes(after(FLOW, self.slow_port)).hex(), self.drain(1)[0].hex())
            if not any(self.send_behind_fillers(frame) for _ in range(ATTEMPTS)):
                raise AssertionError("the machine is too slow: the slow port was never loaded in time")
        self.expect_drops()
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))


@group("spritz")
class OverLocalLinkTest(DetourTest):
    """To a switch of the group, which must choose on: with the tag NONMINIMAL, whatever the host's was."""

    def runTest(self) -> None:
        self.check_detours()
