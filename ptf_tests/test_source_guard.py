# SPDX-License-Identifier: Apache-2.0
"""IP source guard: a host's port sends with the addresses of its hosts, and with nobody else's.

Run one case: scripts/run_ptf.py --target native test_source_guard.SpoofedTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import (
    DOWNLINK,
    HOST,
    HOST_PORT,
    OTHER_HOST,
    OTHER_HOST_PORT,
    REMOTE,
    ROLELESS_PORT,
    FabricTest,
)
from ptf_tests.frames import GATEWAY_MAC, Flow, mac_of, number_of, roce
from ptf_tests.test_queues import control_packets
from tailrace.codec.layers.bth import AETH, Opcode

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
class OwnAddressTest(GuardTest):
    """Both addresses of the port, whatever the packet is."""

    def runTest(self) -> None:
        for source in (HOST, SECOND_ADDRESS):
            flow = Flow(source, OTHER_HOST)
            frames = [*control_packets(flow), roce(flow), *(ipv4(source, content) for content in contents())]
            frames.append(ipv4(source, Raw(bytes(8)), frag=3, proto=17))
            for frame in frames:
                self.send(HOST_PORT, frame)
                self.assertEqual(source, Ether(self.receive(OTHER_HOST_PORT)[1])[IP].src)
        self.expect_drops()


@group("guard")
class OpenPortTest(GuardTest):
    """Ports of hosts whose addresses nobody knows, and ports to switches: any address."""

    def runTest(self) -> None:
        for port in (OTHER_HOST_PORT, ROLELESS_PORT, DOWNLINK):
            for source in (OTHER_HOST, STRANGER):
                self.send(port, roce(Flow(source, HOST)))
                self.receive(HOST_PORT)
        self.expect_drops()


@group("guard")
class NoAddressYetTest(GuardTest):
    """With and without a guard: DHCP has no route, and ARP and neighbour discovery are not forwarded."""

    def runTest(self) -> None:
        discover = UDP(sport=68, dport=67) / Raw(bytes(240))
        neighbour = Ether(src=mac_of(HOST), dst="33:33:ff:00:00:01", type=0x86DD) / Raw(bytes(72))
        for port in (HOST_PORT, OTHER_HOST_PORT):
            self.send(port, ipv4("0.0.0.0", discover, dst="255.255.255.255"))
            self.send(
                port, Ether(src=mac_of(HOST), dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=HOST, pdst=OTHER_HOST)
            )
            self.send(port, neighbour)
        self.expect_drops(NO_ROUTE=2, UNSUPPORTED=4)
        self.send(HOST_PORT, ipv4("0.0.0.0", discover, dst=OTHER_HOST))
        self.expect_drops(NO_ROUTE=2, UNSUPPORTED=4, SPOOFED_SOURCE=1)


@group("guard")
class MalformedFirstTest(GuardTest):
    """What cannot be read is malformed, whatever address it seems to have."""

    def runTest(self) -> None:
        frame = roce(Flow(STRANGER, OTHER_HOST), opcode=Opcode.ACK, payload=bytes(AETH()))
        frame[IP].chksum = 1
        self.send(HOST_PORT, frame)
        self.send(HOST_PORT, bytes(roce(Flow(STRANGER, OTHER_HOST)))[:30])
        self.expect_drops(MALFORMED=2)
