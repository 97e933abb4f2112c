# SPDX-License-Identifier: Apache-2.0
"""Spritz, coarse-grained: a VLAN tag names the class of paths, ordinary ECMP picks one of them, the switch
that chooses last clears the tag. And DSCP STEERED, which overrules every mode.

Run one case: scripts/run_ptf.py --target native test_spritz_tags.NonminimalTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, UPLINKS
from ptf_tests.frames import GATEWAY_MAC, Flow, classed, mac_of, roce
from ptf_tests.spritz import (
    CLASS_FIRST,
    CLASS_SECOND,
    FAR_DEFAULT,
    FIRST_NEAR,
    GLOBALS,
    LOCAL,
    LOCALS,
    NEAR,
    SpritzTest,
    after,
    kinds,
    steered,
)
from tailrace.codec.layers.dscp import Dscp

UNKNOWN_VID = 77
MODES = ("MINIMAL", "STEERED", "CLASS", "RANDOM", "UGAL_L")
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
class NonminimalSecondTest(TagTest):
    """ECMP 2: any second link by the flow's hash, and the tag is gone; in the own group the default table."""

    def runTest(self) -> None:
        self.assertEqual(set(GLOBALS), self.ports_by_flow(LOCALS[0], self.nonminimal, NEAR))
        self.assertEqual({LOCALS[1]}, self.ports_by_flow(LOCALS[0], self.nonminimal, NEAR, "10.0.7.2"))
        self.expect_drops()


@group("spritz")
class MinimalClassTest(TagTest):
    """Class MINIMAL: the flow's hash over all minimal next hops, without a tag from here on."""

    def runTest(self) -> None:
        self.assertEqual(set(UPLINKS), self.ports_by_flow(HOST_PORT, self.minimal))
        self.assertEqual({LOCALS[0]}, self.ports_by_flow(HOST_PORT, self.minimal, dst=NEAR))
        self.expect_drops()


@group("spritz")
class DefaultClassTest(TagTest):
    """No tag, or one that means nothing: the default table, and no tag afterwards."""

    def runTest(self) -> None:
        for vid in (None, UNKNOWN_VID, 0):
            self.assertEqual({FAR_DEFAULT}, self.ports_by_flow(HOST_PORT, vid))
            self.assertEqual({FAR_DEFAULT}, self.ports_by_flow(LOCALS[0], vid, NEAR))
        self.expect_drops()


@group("spritz")
class NoRoleClearsTest(TagTest):
    """A switch without role clears any tag and takes its default table."""

    def runTest(self) -> None:
        for vid in self.vids:
            self.assertEqual({FAR_DEFAULT}, self.ports_by_flow(GLOBALS[0], vid, NEAR))
        self.expect_drops()


@group("spritz")
class ClassOfEverythingTest(TagTest):
    """A tag can name class ALL, too."""

    def runTest(self) -> None:
        self.add_class(UNKNOWN_VID, "ALL")
        self.add_list(9, "FIRST", GLOBALS)
        self.assertEqual(set(GLOBALS), self.ports_by_flow(HOST_PORT, UNKNOWN_VID))


@group("spritz")
class TagToHostTest(TagTest):
    """No host ever gets a tag, from whoever it comes and whatever is behind it."""

    def runTest(self) -> None:
        for port, src in ((HOST_PORT, HOST), (LOCALS[0], NEAR), (GLOBALS[0], REMOTE)):
            for vid in self.vids:
                flow = Flow(src, OTHER_HOST)
                for packet, left in zip(kinds(flow), kinds(flow, ttl=63), strict=True):
                    left[Ether].dst = mac_of(OTHER_HOST)
                    self.send(port, classed(packet, vid))
                    self.expect(OTHER_HOST_PORT, left)
        self.expect_drops()


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


@group("spritz")
class TagInOtherModesTest(TagTest):
    """In modes that know no tags, they are cleared and change nothing."""

    def runTest(self) -> None:
        self.add_list(9, "FIRST", GLOBALS[:1])
        for mode, port in (("MINIMAL", FAR_DEFAULT), ("STEERED", GLOBALS[0]), ("RANDOM", GLOBALS[0])):
            self.set_mode(mode)
            for vid in self.vids:
                self.assertEqual({port}, self.ports_by_flow(HOST_PORT, vid))
        self.expect_drops()


@group("spritz")
class SteeredByDscpTest(SpritzTest):
    """DSCP STEERED: by the EV in every mode, in both roles, without a tag; no other class of packets is."""

    def runTest(self) -> None:
        first = LOCALS + GLOBALS
        for mode in MODES:
            self.set_mode(mode)
            for ev in (0x0001, 0x0100, 0x0203, 0x0302, 0xFFFF):
                for frame_of in (lambda flow: roce(flow, dscp=Dscp.STEERED), self.tagged_frame):
                    flow = steered(ev)
                    port = first[(ev >> 8) % len(first)]
                    self.send(HOST_PORT, frame_of(flow))
                    self.expect(port, after(flow, port, dscp=Dscp.STEERED))
                    flow = steered(ev, NEAR)
                    port = GLOBALS[ev % len(GLOBALS)]
                    self.send(LOCALS[0], frame_of(flow))
                    self.expect(port, after(flow, port, dscp=Dscp.STEERED))
        self.set_mode("MINIMAL")
        for dscp in (1, 6, 8, 46, 63, Dscp.STEERED & ~1):
            self.expect_by(HOST_PORT, steered(0x0001), FAR_DEFAULT, dscp=dscp)
        self.expect_drops()

    def tagged_frame(self, flow: Flow) -> Packet:
        """The same with a tag that means nothing then."""
        return classed(roce(flow, dscp=Dscp.STEERED), self.enum("VlanId_t", "NONMINIMAL"))


@group("spritz")
class LocalTaggedTest(TagTest):
    """A tag between hosts of one switch is cleared and charged for no byte."""

    def runTest(self) -> None:
        self.send(HOST_PORT, classed(roce(LOCAL), self.nonminimal))
        self.expect(OTHER_HOST_PORT, roce(LOCAL, ttl=63, dst_mac=mac_of(OTHER_HOST)))
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
