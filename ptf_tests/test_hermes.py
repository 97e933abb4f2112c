# SPDX-License-Identifier: Apache-2.0
"""Hermes: the switch of the sender follows the UDP source port; further on the hash decides.

Run one case: scripts/run_ptf.py --target native test_hermes.TagTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from ptf_tests.fabric import DOWNLINK, FLOW, HOST, HOST_PORT, REMOTE, UPLINKS, FabricTest
from ptf_tests.frames import GATEWAY_MAC, Flow, mac_of, roce
from tailrace.codec.layers.bth import AETH, Opcode

TAGS = 32


class HermesTest(FabricTest):
    program = "hermes"

    def port_of(self, port: int, frame: object) -> int:
        """Where a frame leaves that comes in at a port."""
        self.send(port, frame)
        return self.receive()[0]


@group("hermes")
class TagTest(HermesTest):
    """From a host: tag modulo the size of the group."""

    def runTest(self) -> None:
        for tag in (*range(49152, 49152 + TAGS), 0, 1, 65535):
            expected = UPLINKS[tag % len(UPLINKS)]
            self.assertEqual(expected, self.port_of(HOST_PORT, roce(Flow(HOST, REMOTE, sport=tag))))
        self.expect_drops()


@group("hermes")
class FurtherOnTest(HermesTest):
    """From a switch: tags that are alike modulo the size take all uplinks, each always the same one."""

    def runTest(self) -> None:
        frames = [roce(Flow(HOST, REMOTE, sport=tag * len(UPLINKS))) for tag in range(1, TAGS)]
        ports = [self.port_of(DOWNLINK, frame) for frame in frames]
        # An uplink is missing with a chance of (2/3)^31, about three in a million, and then always.
        self.assertEqual(set(UPLINKS), set(ports))
        self.assertEqual(ports, [self.port_of(DOWNLINK, frame) for frame in frames])
        self.expect_drops()


@group("hermes")
class UntaggedTest(HermesTest):
    """ACKs and TCP have no tag: their hash decides, also where source ports are alike modulo the size."""

    def runTest(self) -> None:
        acks, segments = set(), set()
        for number in range(TAGS):
            sport = FLOW.sport + number * len(UPLINKS)
            ack = roce(Flow(HOST, REMOTE, sport=sport), opcode=Opcode.ACK, payload=bytes(AETH(msn=1)))
            acks.add(self.port_of(HOST_PORT, ack))
            ether = Ether(src=mac_of(HOST), dst=GATEWAY_MAC)
            segment = ether / IP(src=HOST, dst=REMOTE, id=0) / TCP(sport=sport, dport=80)
            segments.add(self.port_of(HOST_PORT, segment))
        self.assertEqual(set(UPLINKS), acks)
        self.assertEqual(set(UPLINKS), segments)
        self.expect_drops()
