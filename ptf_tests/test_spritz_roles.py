# SPDX-License-Identifier: Apache-2.0
"""Spritz, fine-grained: which half of the entropy value a switch goes by, and who takes the default table.

Run one case: scripts/run_ptf.py --target native test_spritz_roles.FirstRoleTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.base import Keys
from ptf_tests.fabric import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, UPLINKS
from ptf_tests.frames import GATEWAY_MAC, Flow, mac_of, roce, tagged
from ptf_tests.spritz import (
    CLASS_FIRST,
    FAR_DEFAULT,
    FIRST_FAR,
    FIRST_NEAR,
    GLOBALS,
    LOCAL,
    LOCALS,
    NEAR,
    OTHER_NEAR,
    SECOND_FAR,
    SpritzTest,
    kinds,
    steered,
)

# Every value of each byte somewhere, and the two bytes never alike for long.
EVS = [high << 8 | (high * 37 + 11) % 256 for high in range(256)]
SOME_EVS = [0x0000, 0x0001, 0x0100, 0x00FF, 0xFF00, 0xFFFF, *EVS[::23]]
FIRST_LIST = LOCALS + GLOBALS


@group("spritz")
class FirstRoleTest(SpritzTest):
    """From a host: EV1 modulo the list's size, all ports for another group, those within for the own one."""

    def runTest(self) -> None:
        for ev in EVS:
            self.expect_by(HOST_PORT, steered(ev), FIRST_LIST[(ev >> 8) % len(FIRST_LIST)])
        for ev in SOME_EVS:
            self.expect_by(OTHER_HOST_PORT, steered(ev, OTHER_HOST, NEAR), LOCALS[(ev >> 8) % len(LOCALS)])
        self.expect_drops()


@group("spritz")
class SecondRoleTest(SpritzTest):
    """Straight from the source's switch: EV2 modulo the list's size; in the own group the default table."""

    def runTest(self) -> None:
        for ev in EVS:
            self.expect_by(LOCALS[0], steered(ev, NEAR), GLOBALS[ev % len(GLOBALS)])
        for ev in SOME_EVS:
            self.expect_by(LOCALS[1], steered(ev, OTHER_NEAR), GLOBALS[ev % len(GLOBALS)])
            self.expect_by(LOCALS[0], steered(ev, NEAR, OTHER_NEAR), LOCALS[1])
        self.expect_drops()


@group("spritz")
class NoRoleTest(SpritzTest):
    """The same source by another port, another one by the same port, any from another group: default."""

    def runTest(self) -> None:
        for ev in SOME_EVS:
            for port, src in (
                (LOCALS[1], NEAR),
                (LOCALS[0], OTHER_NEAR),
                (LOCALS[0], "10.0.9.2"),
                (GLOBALS[0], NEAR),
                (GLOBALS[0], "10.0.9.2"),
            ):
                self.expect_by(port, steered(ev, src), FAR_DEFAULT)
        self.expect_drops()


@group("spritz")
class ToHostTest(SpritzTest):
    """Whoever has arrived is steered no more, in whatever role."""

    def runTest(self) -> None:
        for ev in SOME_EVS:
            for port, src in ((HOST_PORT, HOST), (LOCALS[0], NEAR), (GLOBALS[0], REMOTE)):
                flow = steered(ev, src, OTHER_HOST)
                self.send(port, roce(flow))
                self.expect(OTHER_HOST_PORT, roce(flow, ttl=63, dst_mac=mac_of(OTHER_HOST)))
        self.expect_drops()


@group("spritz")
class ControlPacketsTest(SpritzTest):
    """ACK, NAK and CNP are steered as data is, in both roles."""

    def runTest(self) -> None:
        for ev in SOME_EVS:
            for in_port, src, port in (
                (HOST_PORT, HOST, FIRST_LIST[(ev >> 8) % len(FIRST_LIST)]),
                (LOCALS[0], NEAR, GLOBALS[ev % len(GLOBALS)]),
                (GLOBALS[0], NEAR, FAR_DEFAULT),
            ):
                flow = steered(ev, src)
                for packet, left in zip(
                    kinds(flow, tag=9), kinds(flow, ttl=63, tag=tagged(9, port)), strict=True
                ):
                    self.send(in_port, packet)
                    self.expect(port, left)
        self.expect_drops()


def not_roce(flow: Flow, ttl: int) -> list[Packet]:
    """What is not RoCE: other UDP, TCP, ICMP, a fragment."""
    header = {"src": flow.src, "dst": flow.dst, "ttl": ttl, "id": 0}
    contents = [
        IP(**header) / UDP(sport=flow.sport, dport=5000, chksum=0) / Raw(bytes(40)),
        IP(**header) / TCP(sport=flow.sport, dport=4791, chksum=0x1234) / Raw(bytes(40)),
        IP(**header) / ICMP() / Raw(bytes(40)),
        IP(**header, flags="MF") / UDP(sport=flow.sport, dport=4791, chksum=0) / Raw(bytes(40)),
    ]
    return [Ether(src=mac_of(flow.src), dst=GATEWAY_MAC) / content for content in contents]


@group("spritz")
class OtherPacketsTest(SpritzTest):
    """Everything but RoCE takes the default table, in all roles."""

    def runTest(self) -> None:
        for ev in (0x0000, 0x0101, 0x0201, 0x0300):
            for in_port, src in ((HOST_PORT, HOST), (LOCALS[0], NEAR), (GLOBALS[0], NEAR)):
                flow = steered(ev, src)
                for packet, left in zip(not_roce(flow, 64), not_roce(flow, 63), strict=True):
                    self.send(in_port, packet)
                    self.expect(FAR_DEFAULT, left)
        self.expect_drops()


@group("spritz")
class MinimalModeTest(SpritzTest):
    """The default table and nothing else, whatever the lists say."""

    mode = "MINIMAL"

    def runTest(self) -> None:
        for ev in SOME_EVS:
            self.expect_by(HOST_PORT, steered(ev), FAR_DEFAULT)
            self.expect_by(HOST_PORT, steered(ev, HOST, NEAR), LOCALS[0])
            self.expect_by(LOCALS[0], steered(ev, NEAR), FAR_DEFAULT)
        for packet in kinds(steered(0x0102)):
            self.send(HOST_PORT, packet)
            self.assertEqual(FAR_DEFAULT, self.receive()[0])
        self.expect_drops()


class SlimFlyTest(SpritzTest):
    """A switch without groups: every list has all ports to switches."""

    ports = LOCALS + GLOBALS

    def add_lists(self) -> None:
        for number, role in ((FIRST_FAR, "FIRST"), (SECOND_FAR, "SECOND")):
            self.add_list(number, role, self.ports, goes_on=self.ports if role == "FIRST" else ())


@group("spritz")
class NoWayBackTest(SlimFlyTest):
    """A second link that leads back to the source's switch is left out for the default one."""

    def runTest(self) -> None:
        for in_port, src in ((LOCALS[0], NEAR), (LOCALS[1], OTHER_NEAR)):
            for ev in range(0x0100, 0x0110):
                port = self.ports[ev % len(self.ports)]
                self.expect_by(in_port, steered(ev, src), FAR_DEFAULT if port == in_port else port)
        self.expect_drops()


@group("spritz")
class NoWayBackDrawnTest(SlimFlyTest):
    """The same where it is drawn."""

    mode = "RANDOM"

    def runTest(self) -> None:
        # A port is missing with a chance of (3/4)^60.
        self.assertEqual({3, 4, 5}, self.ports_of(LOCALS[0], steered(1, NEAR), 60))


@group("spritz")
class RandomTest(SpritzTest):
    """Valiant: each packet draws from the list of the role that the switch has for it, or from none."""

    mode = "RANDOM"

    def runTest(self) -> None:
        for in_port, flow, ports in (
            (HOST_PORT, steered(1), FIRST_LIST),
            (HOST_PORT, steered(1, HOST, NEAR), LOCALS),
            (LOCALS[0], steered(1, NEAR), GLOBALS),
            (LOCALS[0], steered(1, NEAR, OTHER_NEAR), LOCALS[1:]),
            (GLOBALS[0], steered(1, NEAR), (FAR_DEFAULT,)),
        ):
            self.assertEqual(set(ports), self.ports_of(in_port, flow, 60))
        self.expect_drops()


@group("spritz")
class MissingEntriesTest(SpritzTest):
    """A destination without default port, and a slot that nobody filled: dropped, not sent anywhere."""

    def runTest(self) -> None:
        self.add_group("10.0.10.0", 10, UPLINKS)
        self.send(HOST_PORT, roce(steered(0x0101, dst="10.0.10.2")))
        self.expect_drops(NO_ROUTE=1)
        role, path_class = self.enum("Role_t", "FIRST"), self.enum("PathClass_t", "ALL")
        key: Keys = {"role": role, "near": 0, "class": path_class}
        entry = self.entry("path_lists", key)
        entry.action.action.CopyFrom(self.action("path_list", list=CLASS_FIRST, size=4))
        self.modify(entry)
        self.send(HOST_PORT, roce(steered(0x0101)))
        self.expect_drops(NO_ROUTE=2)
        # An empty list is none.
        entry.action.action.CopyFrom(self.action("path_list", list=FIRST_NEAR, size=0))
        self.modify(entry)
        self.expect_by(HOST_PORT, steered(0x0101), FAR_DEFAULT)
        self.assertEqual((0, 0), self.port_queues(FAR_DEFAULT))


@group("spritz")
class LocalHostsTest(SpritzTest):
    """Hosts of one switch reach each other in every mode."""

    def runTest(self) -> None:
        for mode in ("MINIMAL", "STEERED", "CLASS", "RANDOM", "UGAL_L"):
            self.set_mode(mode)
            self.send(HOST_PORT, roce(LOCAL))
            self.expect(OTHER_HOST_PORT, roce(LOCAL, ttl=63, dst_mac=mac_of(OTHER_HOST)))
        self.expect_drops()
