# SPDX-License-Identifier: Apache-2.0
"""IP source guard: a host's port sends with the addresses of its hosts, and with nobody else's.

Run one case: scripts/run_ptf.py --target native test_source_guard.SpoofedTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import (
    HOST,
    HOST_PORT,
    OTHER_HOST,
    REMOTE,
    FabricTest,
)
from ptf_tests.frames import GATEWAY_MAC, Flow, control_packets, mac_of, number_of, roce
from tailrace.codec.layers.bth import AETH
from tailrace.codec.numbers import Opcode

SECOND_ADDRESS, STRANGER = "10.0.1.77", "10.0.9.9"


def ipv4(src: str, content: Packet, dst: str = OTHER_HOST, **fields: object) -> Packet:
    """A packet that the host at HOST_PORT sends."""
    return Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / IP(src=src, dst=dst, id=0, **fields) / content


def contents() -> list[Packet]:
    """What hosts send besides RoCE."""
    return [
        ICMP() / Raw(bytes(30)),
        TCP(sport=1, dport=2) / Raw(bytes(30)),
        UDP(sport=1, dport=2, chksum=0) / Raw(bytes(30)),
    ]


class GuardTest(FabricTest):
    """HOST_PORT has two addresses; the other host's is not known."""

    def setUp(self) -> None:
        super().setUp()
        self.add_entry("port_role", {"ingress_port": HOST_PORT}, self.action("guarded_port"))
        for address in (HOST, SECOND_ADDRESS):
            key: dict[str, int | tuple[int, int]] = {"ingress_port": HOST_PORT, "src": number_of(address)}
            self.add_entry("host_addresses", key, self.action("own_address"))


@group("guard")
class SpoofedTest(GuardTest):
    """An ACK, NAK, CNP or NIC ACK in another one's name, data too, and fragments: dropped, and counted."""

    def runTest(self) -> None:
        sent = 0
        for source in (OTHER_HOST, REMOTE, STRANGER, "127.0.0.1", "255.255.255.255", "0.0.0.0"):
            flow = Flow(source, OTHER_HOST)
            frames = [*control_packets(flow), roce(flow), *(ipv4(source, content) for content in contents())]
            frames.append(ipv4(source, UDP(sport=1, dport=2, chksum=0) / Raw(bytes(8)), flags="MF"))
            frames.append(ipv4(source, Raw(bytes(8)), frag=3, proto=17))
            for frame in frames:
                self.send(HOST_PORT, frame)
            sent += len(frames)
            # BMv2's ring of an interface holds 32 frames: of more at once some may get lost
            self.eventually({"SPOOFED_SOURCE": sent}, self.drops)
        self.nothing_else()


@group("guard")
class MalformedFirstTest(GuardTest):
    """What cannot be read is malformed, whatever address it seems to have."""

    def runTest(self) -> None:
        frame = roce(Flow(STRANGER, OTHER_HOST), opcode=Opcode.ACK, payload=bytes(AETH()))
        frame[IP].chksum = 1
        self.send(HOST_PORT, frame)
        self.send(HOST_PORT, bytes(roce(Flow(STRANGER, OTHER_HOST)))[:30])
        self.expect_drops(MALFORMED=2)
