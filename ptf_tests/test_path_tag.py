# SPDX-License-Identifier: Apache-2.0
"""The path tag: every hop between switches mixes its port into six bits of the BTH that the invariant CRC
leaves out.

Run one case: scripts/run_ptf.py --target native test_path_tag.MixTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import (
    FLOW,
    HOST,
    HOST_PORT,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
    FabricTest,
)
from ptf_tests.frames import GATEWAY_MAC, mac_of, roce, tagged
from tailrace.codec.layers.nic_shim import NicShim, ShimmedBTH
from tailrace.codec.numbers import SHIM_PORT

TAGS = (0, 1, 5, 31, 32, 62, 63)


@group("path_tag")
class MixTest(FabricTest):
    """tag * 13 + port modulo 64; no other bit of the packet changes, so its invariant CRC holds."""

    def runTest(self) -> None:
        for port in UPLINKS:
            for slot in range(len(UPLINKS)):
                self.move_slot(UPLINK_GROUP, slot, port)
            for tag in TAGS:
                self.send(HOST_PORT, roce(FLOW, tag=tag))
                self.expect(port, roce(FLOW, ttl=63, tag=tagged(tag, port)))


@group("path_tag")
class CongestionBitsTest(FabricTest):
    """FECN and BECN, the two bits beside the tag, stay."""

    def runTest(self) -> None:
        for fecn, becn in ((0, 1), (1, 0), (1, 1)):
            frame = roce(FLOW, tag=63)
            frame["BTH"].fecn, frame["BTH"].becn = fecn, becn
            self.send(HOST_PORT, frame)
            port, received = self.receive()
            bth = Ether(received)["BTH"]
            self.assertEqual((fecn, becn, tagged(63, port)), (bth.fecn, bth.becn, bth.resv6))


@group("path_tag")
class NicShimTest(FabricTest):
    """The BTH behind a NIC's shim has its tag, too."""

    def frame(self, tag: int, ttl: int) -> Packet:
        ether, ip = Ether(src=mac_of(HOST), dst=GATEWAY_MAC), IP(src=HOST, dst=REMOTE, ttl=ttl)
        udp, shim = UDP(sport=5, dport=SHIM_PORT, chksum=0), NicShim(orig_sport=1, orig_dport=4791, ticks=9)
        return ether / ip / udp / shim / ShimmedBTH(opcode=7, resv6=tag) / Raw(b"payload")

    def runTest(self) -> None:
        self.send(HOST_PORT, self.frame(7, 64))
        port, received = self.receive()
        self.assertEqual(bytes(self.frame(tagged(7, port), 63)).hex(), received.hex())
