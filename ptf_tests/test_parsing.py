# SPDX-License-Identifier: Apache-2.0
"""What the parser makes of every header, whole and broken.

Run one case: scripts/run_ptf.py --target native test_parsing.TruncatedTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import DOWNLINK, HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, FabricTest
from ptf_tests.frames import GATEWAY_MAC, PAYLOAD, Flow, flowcut_ack, mac_of, roce, shimmed
from tailrace.codec.layers.bth import AETH
from tailrace.codec.layers.nic_shim import NicAck, NicShim, ShimmedBTH
from tailrace.codec.numbers import ACK_PORT, SHIM_PORT, Opcode

LOCAL = Flow(HOST, OTHER_HOST)
FROM_FABRIC = Flow(REMOTE, HOST)
IPV4_START, UDP_START = 14, 34
UNKNOWN_ETHER_TYPE = 0x9000
BURST = 16  # BMv2's ring of an interface holds 32 frames


def ip_packet(*, ttl: int = 64, dst_mac: str = GATEWAY_MAC, **fields: object) -> Packet:
    """Ethernet and IPv4 from one host of the switch to the other."""
    return Ether(src=mac_of(HOST), dst=dst_mac) / IP(src=HOST, dst=OTHER_HOST, ttl=ttl, id=7, **fields)


def nic_data(tag: int = 0) -> Packet:
    """What follows IPv4 in a packet of a Flowcut NIC."""
    shim = NicShim(orig_sport=LOCAL.sport, orig_dport=LOCAL.dport, ticks=99)
    return UDP(sport=7, dport=SHIM_PORT, chksum=0) / shim / ShimmedBTH(opcode=7, resv6=tag) / Raw(PAYLOAD)


@group("parsing")
class KnownTest(FabricTest):
    """Each kind of IPv4 packet goes through unharmed: UDP, TCP, ICMP, RoCE, a NIC's shim and ACK."""

    def runTest(self) -> None:
        contents = [
            UDP(sport=1, dport=2, chksum=0) / Raw(b"payload"),
            UDP(sport=1, dport=2, chksum=0),
            TCP(sport=1, dport=2, flags="S", chksum=0x1234),
            ICMP(id=3) / Raw(b"ping"),
            roce(LOCAL)[UDP].copy(),
            roce(LOCAL, opcode=Opcode.ACK, payload=bytes(AETH(syndrome=0x60, msn=5)))[UDP].copy(),
            roce(LOCAL, opcode=Opcode.CNP, payload=bytes(16))[UDP].copy(),
            nic_data(),
            UDP(sport=1, dport=ACK_PORT, chksum=0) / NicAck(bytes=1000, hops=3, ticks=9),
            Raw(b"a protocol without ports"),
        ]
        for content in contents:
            self.send(HOST_PORT, ip_packet() / content)
            self.expect(OTHER_HOST_PORT, ip_packet(ttl=63, dst_mac=mac_of(OTHER_HOST)) / content)
        self.expect_drops()


@group("parsing")
class FragmentsTest(FabricTest):
    """Fragments have no ports: the first does not, whatever it holds, and all leave by the same port."""

    def runTest(self) -> None:
        ports = set()
        datagram = bytes(UDP(sport=5, dport=6, chksum=0, len=8 + 2000) / Raw(bytes(2000)))
        for sport in range(5, 21):
            first = sport.to_bytes(2, "big") + datagram[2:1008]
            for offset, flags, part in ((0, "MF", first), (126, 0, datagram[1008:])):
                header = IP(src=HOST, dst=REMOTE, id=9, flags=flags, frag=offset, proto="udp", ttl=9)
                self.send(HOST_PORT, Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / header / Raw(part))
                port, frame = self.receive()
                header.ttl = 8
                self.assertEqual(bytes(header / Raw(part)), frame[IPV4_START:])
                ports.add(port)
        self.assertEqual(1, len(ports))
        self.expect_drops()


@group("parsing")
class TruncatedTest(FabricTest):
    """A frame that ends inside any of its headers is malformed."""

    broken = 0

    def cut(self, port: int, frame: Packet, start: int, end: int) -> None:
        """Every stump of a frame that ends in [start, end) is dropped."""
        data = bytes(frame)
        for length in range(start, end):
            self.send(port, data[:length])
            self.broken += 1
            if self.broken % BURST == 0 or length == end - 1:
                self.eventually({"MALFORMED": self.broken}, self.drops)
        self.nothing_else()

    def runTest(self) -> None:
        self.cut(HOST_PORT, ip_packet() / ICMP(), IPV4_START, IPV4_START + 20)
        self.cut(HOST_PORT, ip_packet() / UDP(sport=1, dport=2), UDP_START, UDP_START + 8)
        self.cut(HOST_PORT, ip_packet() / TCP(sport=1, dport=2), UDP_START, UDP_START + 4)
        self.cut(HOST_PORT, roce(LOCAL), UDP_START, UDP_START + 8 + 12)
        self.cut(HOST_PORT, ip_packet() / nic_data(), UDP_START, UDP_START + 8 + 8 + 12)
        shim = shimmed(roce(FROM_FABRIC), 2, [(1, 2), (3, 4)])
        self.cut(DOWNLINK, shim, IPV4_START, IPV4_START + 4 + 2 * 6 + 20 + 8 + 12)
        ack = flowcut_ack(LOCAL, frame_bytes=100, hops=2, stamps=[(1, 2), (3, 4)])
        self.cut(DOWNLINK, ack, IPV4_START, len(ack))


@group("parsing")
class BadIpv4Test(FabricTest):
    """Options, another version, a wrong header checksum."""

    def runTest(self) -> None:
        udp = UDP(sport=1, dport=2, chksum=0)
        self.send(HOST_PORT, ip_packet(options=[IPOption_Router_Alert()]) / udp)
        self.send(HOST_PORT, ip_packet(version=6) / udp)
        self.send(HOST_PORT, ip_packet(ihl=4) / udp)
        good = bytes(roce(LOCAL))
        for bit in (0, 7, 8, 15):
            bad = bytearray(good)
            bad[IPV4_START + 10 + bit // 8] ^= 1 << bit % 8
            self.send(HOST_PORT, bytes(bad))
        self.expect_drops(MALFORMED=7)


@group("parsing")
class UnsupportedTest(FabricTest):
    """EtherTypes that no block handles: VLAN, ARP, IPv6, anything unknown, and an IEEE 802.3 length."""

    def runTest(self) -> None:
        for inner in (UNKNOWN_ETHER_TYPE, 0x0806, 0x86DD, 46):
            self.send(HOST_PORT, Ether(src=mac_of(HOST), dst=GATEWAY_MAC, type=inner) / Raw(bytes(46)))
        tagged_frame = Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / Dot1Q(vlan=5) / roce(LOCAL)[IP].copy()
        self.send(HOST_PORT, tagged_frame)
        self.send(DOWNLINK, tagged_frame)
        self.expect_drops(UNSUPPORTED=6)


@group("parsing")
class TooManyStampsTest(FabricTest):
    """More stamps than the program has room for are refused by the parser, in data and in ACKs."""

    program = "flowcut"

    def runTest(self) -> None:
        for more in (1, 15 - self.number("stamps")):
            stamps = [(1, 1)] * (self.number("stamps") + more)
            self.send(DOWNLINK, shimmed(roce(FROM_FABRIC), 15, stamps))
            self.send(DOWNLINK, flowcut_ack(LOCAL, frame_bytes=1, hops=15, stamps=stamps))
        self.expect_drops(MALFORMED=4)


@group("parsing")
class StrangeShimTest(FabricTest):
    """A shim in front of anything but IPv4, and IPv4 behind a shim that is broken."""

    program = "flowcut"

    def runTest(self) -> None:
        strange = shimmed(roce(FROM_FABRIC), 1, [(1, 1)])
        strange["DataShim"].next_type = UNKNOWN_ETHER_TYPE
        self.send(DOWNLINK, strange)
        self.expect_drops(UNSUPPORTED=1)
        broken = shimmed(roce(FROM_FABRIC), 1, [(1, 1)])
        broken[IP].chksum = 1
        self.send(DOWNLINK, broken)
        self.expect_drops(UNSUPPORTED=1, MALFORMED=1)


@group("parsing")
class ShimWithoutFlowcutTest(FabricTest):
    """A program that knows no Flowcut drops its frames, also between switches."""

    def runTest(self) -> None:
        self.send(DOWNLINK, shimmed(roce(FROM_FABRIC), 1, [(1, 1)]))
        self.send(DOWNLINK, flowcut_ack(LOCAL, frame_bytes=1, hops=1, stamps=[(1, 1)]))
        self.expect_drops(UNSUPPORTED=2)
