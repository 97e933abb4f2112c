# SPDX-License-Identifier: Apache-2.0
"""Packet spraying: the packets of one flow take all paths; what is not data keeps the flow's ECMP path.

Run one case: scripts/run_ptf.py --target native test_spray.SprayTest
"""

from __future__ import annotations

from collections import Counter

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, UPLINKS, FabricTest
from ptf_tests.frames import roce
from tailrace.codec.layers.bth import AETH
from tailrace.codec.numbers import Opcode

PACKETS = 96


@group("spray")
class SprayTest(FabricTest):
    """Data goes everywhere, a third by each uplink; ACKs and CNPs of the same 5-tuple go one way."""

    program = "spray"

    def ports(self, frame: object) -> Counter[int]:
        """How many of a flow's packets each port sent."""
        counts: Counter[int] = Counter()
        for _ in range(PACKETS):
            self.send(HOST_PORT, frame)
            counts[self.receive()[0]] += 1
        return counts

    def runTest(self) -> None:
        # An uplink with less than 11 of 96 would be 4.6 standard deviations off.
        self.assertGreater(
            min(self.ports(roce(FLOW))[port] for port in UPLINKS), PACKETS // len(UPLINKS) // 3
        )
        ack = roce(FLOW, opcode=Opcode.ACK, payload=bytes(AETH(msn=1)))
        cnp = roce(FLOW, opcode=Opcode.CNP, payload=bytes(16))
        ack_ports = self.ports(ack)
        self.assertEqual(1, len(ack_ports))
        self.assertEqual(ack_ports, self.ports(cnp))
        self.expect_drops()
