# SPDX-License-Identifier: Apache-2.0
"""What the controller sends: frames for a port, and questions.

Run one case: scripts/run_ptf.py --target native test_packet_out.SendTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, ROLELESS_PORT, UPLINKS, FabricTest
from ptf_tests.frames import roce

TOO_LARGE = 512
SPECIALS = ("waiting_port", "pause_port", "mirror_port", "cpu_port", "drop_port")


@group("packetio")
class SendTest(FabricTest):
    """SEND: the payload leaves by the port as it is, whatever it holds; a wrong port is counted."""

    def runTest(self) -> None:
        frames = [
            bytes(roce(FLOW, ttl=1)),
            bytes.fromhex("0180c200000e0000000000aa88cc") + bytes(50),
            b"x" * 20,
        ]
        for port in (HOST_PORT, UPLINKS[0], ROLELESS_PORT):
            for frame in frames:
                self.packet_out("SEND", port, frame)
                self.expect(port, frame)
        self.expect_drops()
        specials = [self.number(name) for name in SPECIALS]
        for port in (*specials, TOO_LARGE, 0xFFFF):
            self.packet_out("SEND", port, frames[0])
        self.expect_drops(BAD_PORT=len(SPECIALS) + 2)


@group("packetio")
class ReadPortTest(FabricTest):
    """READ_PORT: nothing waits in an idle switch; a number that is no port's has no answer."""

    def runTest(self) -> None:
        for port in (HOST_PORT, *UPLINKS, self.number("cpu_port"), TOO_LARGE - 1):
            self.assertEqual((0, 0), self.port_queues(port))
        self.packet_out("READ_PORT", TOO_LARGE)
        self.expect_drops(UNSUPPORTED=1)


@group("packetio")
class FlowQuestionsTest(FabricTest):
    """READ_FLOWS and SWEEP have an answer in the Flowcut program only."""

    def runTest(self) -> None:
        self.packet_out("READ_FLOWS", 0)
        self.packet_out("SWEEP", 0)
        self.expect_drops(UNSUPPORTED=2)
        self.verify_no_message("packet")
