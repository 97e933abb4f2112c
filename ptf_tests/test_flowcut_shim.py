# SPDX-License-Identifier: Apache-2.0
"""Shims and stamps on the way: who adds one, what counts hops, and how many there is room for (Flowcut
§II-B, §III-A1).

Run one case: scripts/run_ptf.py --target native test_flowcut_shim.StampTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import DOWNLINK, FLOW, HOST, HOST_PORT, REMOTE, UPLINKS
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import GATEWAY_MAC, mac_of, roce, shimmed, tagged
from tailrace.codec.layers.bth import AETH
from tailrace.codec.layers.local import DataShim
from tailrace.codec.numbers import Opcode

STAMPS = [(100 + i, 10 + i) for i in range(7)]


class TransitTest(FlowcutTest):
    """Data comes from a switch below and goes to one above."""

    def pass_through(self, hops: int, stamps: list[tuple[int, int]]) -> tuple[int, bytes]:
        """Send a shimmed frame from below; returns what leaves, and by which port."""
        self.send(DOWNLINK, shimmed(roce(FLOW, ttl=63, tag=9), hops, stamps))
        return self.receive()

    def expected(self, port: int, hops: int, stamps: list[tuple[int, int]]) -> Packet:
        return shimmed(roce(FLOW, ttl=62, tag=tagged(9, port)), hops, stamps)


@group("flowcut")
class StampTest(TransitTest):
    """In the full-switch variant a switch in transit puts its stamp before the others and tracks the flow."""

    def runTest(self) -> None:
        for count in (1, 3, self.number("stamps") - 1):
            port, frame = self.pass_through(count, STAMPS[:count])
            stamp = Ether(frame)[DataShim].stack[0]
            self.assertEqual(DOWNLINK, stamp.in_port)
            expected = self.expected(port, count + 1, [(stamp.ticks, DOWNLINK), *STAMPS[:count]])
            self.assertEqual(bytes(expected).hex(), frame.hex())
        self.expect_flows({FLOW.sport: 3 * len(roce(FLOW))})
        self.assertEqual(DOWNLINK, self.entries()[FLOW.sport]["in_port"])


@group("flowcut")
class NoRoomTest(TransitTest):
    """A shim that is full is refused: without this switch's stamp the ACK would not find its way."""

    def runTest(self) -> None:
        count = self.number("stamps")
        self.send(DOWNLINK, shimmed(roce(FLOW), count, STAMPS[:count]))
        self.expect_drops(NO_STAMP_SPACE=1)
        self.expect_flows({})


@group("flowcut")
class NotDataTest(FlowcutTest):
    """Control packets and packets without ports go their way without shim: only data is balanced."""

    def runTest(self) -> None:
        ether, ip = Ether(src=mac_of(HOST), dst=GATEWAY_MAC), IP(src=HOST, dst=REMOTE, ttl=64)
        packets = [
            roce(FLOW, opcode=Opcode.ACK, payload=bytes(AETH(msn=1))),
            roce(FLOW, opcode=Opcode.CNP, payload=bytes(16)),
            ether / ip / ICMP(id=1) / Raw(b"ping"),
            ether / IP(src=HOST, dst=REMOTE, flags="MF", proto=17) / Raw(bytes(64)),
        ]
        for packet in packets:
            self.send(HOST_PORT, packet)
            port, frame = self.receive()
            self.assertIn(port, UPLINKS)
            self.assertEqual(len(packet), len(frame))
            self.assertEqual(Ether(bytes(packet)).type, Ether(frame).type)
        self.expect_flows({})
        self.expect_count("flowcut_created", 0)
        self.expect_drops()


@group("flowcut")
class NoShimTest(TransitTest):
    """Data from a switch that does not track stays without a shim, so it is nobody's to track."""

    def runTest(self) -> None:
        self.send(DOWNLINK, roce(FLOW))
        port, frame = self.receive()
        self.assertEqual(bytes(roce(FLOW, ttl=63, tag=tagged(0, port))), frame)
        self.expect_flows({})
        self.expect_drops()
