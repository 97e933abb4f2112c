# SPDX-License-Identifier: Apache-2.0
"""Spritz, coarse-grained: a VLAN tag names the class of paths, ordinary ECMP picks one of them, the switch
that chooses last clears the tag.

Run one case: scripts/run_ptf.py --target native test_spritz_tags.NonminimalTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE
from ptf_tests.frames import GATEWAY_MAC, classed, mac_of, roce
from ptf_tests.spritz import (
    CLASS_FIRST,
    CLASS_SECOND,
    FAR_DEFAULT,
    FIRST_NEAR,
    GLOBALS,
    LOCALS,
    NEAR,
    SpritzTest,
    after,
    steered,
)

UNKNOWN_VID = 77
FLOWS = 48


class TagTest(SpritzTest):
    """A switch of the coarse mode; its lists have no entry for class ALL where a test does not add it."""

    mode = "CLASS"

    def setUp(self) -> None:
        super().setUp()
        self.minimal, self.nonminimal = (self.enum("VlanId_t", name) for name in ("MINIMAL", "NONMINIMAL"))
        self.vids = (self.minimal, self.nonminimal, UNKNOWN_VID)
        self.add_class(self.minimal, "MINIMAL")
        self.add_class(self.nonminimal, "NONMINIMAL")

    def add_lists(self) -> None:
        non_minimal = "NONMINIMAL"
        self.add_list(CLASS_FIRST, "FIRST", LOCALS + GLOBALS, path_class=non_minimal, goes_on=LOCALS)
        self.add_list(FIRST_NEAR, "FIRST", LOCALS, near=1, path_class=non_minimal)
        self.add_list(CLASS_SECOND, "SECOND", GLOBALS, path_class=non_minimal)

    def add_class(self, vid: int, name: str) -> None:
        """A VLAN number that names a class of PathClass_t."""
        action = self.action("vlan_class", **{"class": self.enum("PathClass_t", name)})
        self.add_entry("vlan_classes", {"vid": vid}, action)

    def ports_by_flow(
        self, in_port: int, vid: int | None, src: str = HOST, dst: str = REMOTE, keeps: tuple[int, ...] = ()
    ) -> set[int]:
        """Ports of many flows with a tag, each the same twice; the tag is left by the ports that keep it."""
        seen = set()
        for sport in range(1, FLOWS + 1):
            flow = steered(sport, src, dst)
            ports = set()
            for _ in range(2):
                frame = roce(flow) if vid is None else classed(roce(flow), vid)
                self.send(in_port, frame)
                port, left = self.receive()
                expected = after(flow, port)
                if vid is not None and port in keeps:
                    expected = classed(expected, vid)
                self.assertEqual(bytes(expected).hex(), left.hex())
                ports.add(port)
            self.assertEqual(1, len(ports))
            seen |= ports
        return seen


@group("spritz")
class NonminimalTest(TagTest):
    """ECMP 1: any path by the flow's hash; the tag is kept over a link to ECMP 2, else cleared at once."""

    def runTest(self) -> None:
        everywhere = set(LOCALS + GLOBALS)
        self.assertEqual(everywhere, self.ports_by_flow(HOST_PORT, self.nonminimal, keeps=LOCALS))
        self.assertEqual(set(LOCALS), self.ports_by_flow(HOST_PORT, self.nonminimal, dst=NEAR))
        self.expect_drops()


@group("spritz")
class ClassOfEverythingTest(TagTest):
    """A tag can name class ALL, too."""

    def runTest(self) -> None:
        self.add_class(UNKNOWN_VID, "ALL")
        self.add_list(9, "FIRST", GLOBALS)
        self.assertEqual(set(GLOBALS), self.ports_by_flow(HOST_PORT, UNKNOWN_VID))


def tcp(ttl: int) -> Packet:
    """A packet that no mode steers."""
    ip = IP(src=HOST, dst=REMOTE, ttl=ttl, id=0)
    return Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / ip / TCP(sport=1, dport=2, chksum=5) / Raw(bytes(30))


@group("spritz")
class OtherTaggedTest(TagTest):
    """Tagged TCP: the default table. Tagged, but not IPv4: dropped. Broken behind the tag: malformed."""

    def runTest(self) -> None:
        for vid in self.vids:
            self.send(HOST_PORT, classed(tcp(64), vid))
            self.expect(FAR_DEFAULT, tcp(63))
        frame = bytes(classed(roce(steered(1)), self.nonminimal))
        twice = bytes(classed(classed(roce(steered(1)), self.nonminimal), self.minimal))
        for broken in (twice, frame[:16] + b"\x88\xb5" + frame[18:]):
            self.send(HOST_PORT, broken)
        self.expect_drops(UNSUPPORTED=2)
        for broken in (frame[:20], frame[:30], frame[:28] + b"\xff\xff" + frame[30:]):
            self.send(HOST_PORT, broken)
        self.expect_drops(UNSUPPORTED=2, MALFORMED=3)
