# SPDX-License-Identifier: Apache-2.0
"""Trimming: RoCE data that finds no room is cut off behind its BTH, with honest lengths, and goes first.

Run one case: scripts/run_ptf.py --target native test_spritz_trim.BytesTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE
from ptf_tests.frames import GATEWAY_MAC, Flow, cut, mac_of, roce, tagged
from ptf_tests.spritz import (
    FAR_DEFAULT,
    SpritzTest,
    kinds,
)
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.layers.nic_shim import NicShim, ShimmedBTH
from tailrace.codec.numbers import SHIM_PORT

TRIMMED_BYTES = 54
FLOW = Flow(HOST, REMOTE)


def trimmed(flow: Flow, port: int, dscp: int = Dscp.TRIMMED, ecn: int = 0, left: int = 0) -> bytes:
    """What is left of data that this switch cut, as it leaves by a port to another one."""
    return cut(roce(flow, ttl=63, tag=tagged(0, port), dscp=dscp, ecn=ecn, left=left))


class TrimTest(SpritzTest):
    """A switch that trims, on its default table."""

    mode = "MINIMAL"

    def set_limit(self, limit_bytes: int, *, trim: bool = True) -> None:
        """Set the limit of every egress queue, and what happens beyond."""
        name = "set_queue_trim" if trim else "set_queue_limit"
        self.set_default("queue_config", self.action(name, limit_bytes=limit_bytes))


@group("spritz")
class BytesTest(TrimTest):
    """Headers only, IPv4 and UDP say so, DSCP TRIMMED, ECN as it was, no UDP checksum."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES - 1)
        frames = 0
        for size in (0, 1, 3, 4, 96, 1400):
            for ecn in range(4):
                self.send(HOST_PORT, roce(FLOW, payload=bytes(size), ecn=ecn, left=77))
                frame = self.receive(FAR_DEFAULT)[1]
                self.assertEqual(bytes(trimmed(FLOW, FAR_DEFAULT, ecn=ecn, left=77)).hex(), frame.hex())
                self.assertEqual(TRIMMED_BYTES, len(frame))
                self.assertEqual((40, 20), (Ether(frame)[IP].len, Ether(frame)[UDP].len))
                frames += 1
        checked = roce(FLOW)
        checked[UDP].chksum = 0x1234
        self.send(HOST_PORT, checked)
        self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT))
        self.expect_count("trims", frames + 1)
        self.expect_drops()
        self.assertEqual((0, 0), self.port_queues(FAR_DEFAULT))
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))


@group("spritz")
class NotTrimmedTest(TrimTest):
    """ACK, NAK and CNP pass any limit whole; TCP, other UDP and a Flowcut NIC's data are dropped."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES)
        for packet, left in zip(
            kinds(FLOW)[1:], kinds(FLOW, ttl=63, tag=tagged(0, FAR_DEFAULT))[1:], strict=True
        ):
            self.send(HOST_PORT, packet)
            self.expect(FAR_DEFAULT, left)
        shim = NicShim(orig_sport=1, orig_dport=2, ticks=3) / ShimmedBTH(opcode=7)
        in_front = Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / IP(src=HOST, dst=REMOTE)
        contents = [
            TCP(sport=1, dport=2) / Raw(bytes(99)),
            UDP(sport=1, dport=2, chksum=0) / Raw(bytes(99)),
            UDP(sport=1, dport=SHIM_PORT, chksum=0) / shim / Raw(bytes(99)),
        ]
        for content in contents:
            self.send(HOST_PORT, in_front / content)
        self.expect_drops(QUEUE_LIMIT=len(contents))
        self.expect_count("trims", 0)
