# SPDX-License-Identifier: Apache-2.0
"""What the tests of program `spritz` stand on: the leaf switch of ptf_tests.fabric in a Dragonfly.

2, 3 lead to switches of the same group, 4, 5 to other groups

10.0.2.0/24   another group                10.0.8.0/24   another group, the default port is the slow one
10.0.6.0/24   the switch behind port 2     10.0.7.0/24   the one behind port 3
10.0.3.0/24   the switch behind the slow port, in the same group
"""

from __future__ import annotations

from scapy.packet import Packet

from ptf_tests.base import Keys
from ptf_tests.fabric import (
    HOST,
    HOST_PORT,
    MIXED_REMOTE,
    OTHER_HOST,
    REMOTE,
    SLOW_REMOTE,
    FabricTest,
)
from ptf_tests.frames import Flow, number_of, roce, tagged
from tailrace.codec.layers.bth import AETH
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.numbers import Opcode

LOCALS, GLOBALS = (2, 3), (4, 5)
NEAR, OTHER_NEAR = "10.0.6.2", "10.0.7.2"
NEAR_GROUP, OTHER_NEAR_GROUP = 6, 7
FAR_DEFAULT = GLOBALS[1]
NEAR_LINKS, FAR_LINKS, DETOUR_LINKS = 1, 3, 5
FIRST_FAR, FIRST_NEAR, SECOND_FAR, CLASS_FIRST, CLASS_SECOND = range(1, 6)  # lists
ACK, NAK = AETH(syndrome=0x1F, msn=1), AETH(syndrome=0x60, msn=1)
LOCAL = Flow(HOST, OTHER_HOST)


def steered(ev: int, src: str = HOST, dst: str = REMOTE) -> Flow:
    """A flow of packets with an entropy value."""
    return Flow(src, dst, sport=ev)


def kinds(flow: Flow, ttl: int = 64, tag: int = 0) -> list[Packet]:
    """What of RoCE is steered: data, ACK, NAK, CNP."""
    return [
        roce(flow, ttl=ttl, tag=tag),
        roce(flow, ttl=ttl, tag=tag, opcode=Opcode.ACK, payload=bytes(ACK)),
        roce(flow, ttl=ttl, tag=tag, opcode=Opcode.ACK, payload=bytes(NAK)),
        roce(flow, ttl=ttl, tag=tag, opcode=Opcode.CNP, payload=bytes(16)),
    ]


def after(flow: Flow, port: int, tag: int = 0, ttl: int = 64, dscp: int = Dscp.DEFAULT) -> Packet:
    """Data as it leaves by a port to another switch."""
    return roce(flow, ttl=ttl - 1, tag=tagged(tag, port), dscp=dscp)


class SpritzTest(FabricTest):
    """The switch, with its default table and the lists of both roles."""

    program = "spritz"
    mode = "STEERED"

    def setUp(self) -> None:
        super().setUp()
        self.set_mode(self.mode)
        self.add_group(NEAR, NEAR_GROUP, LOCALS[:1])
        self.add_group(OTHER_NEAR, OTHER_NEAR_GROUP, LOCALS[1:])
        self.add_destination(REMOTE, FAR_DEFAULT, FAR_LINKS)
        self.add_destination(MIXED_REMOTE, self.slow_port, FAR_LINKS)
        self.add_destination(NEAR, LOCALS[0], NEAR_LINKS, near=1)
        self.add_destination(OTHER_NEAR, LOCALS[1], NEAR_LINKS, near=1)
        for address, port in ((NEAR, LOCALS[0]), (OTHER_NEAR, LOCALS[1])):
            key: Keys = {"ingress_port": port, "src": (number_of(address) >> 8 << 8, 24)}
            self.add_entry("second_role", key, self.action("second"))
        self.add_destination(SLOW_REMOTE, self.slow_port, NEAR_LINKS, near=1)
        self.add_lists()

    def add_lists(self) -> None:
        """The lists of a Dragonfly."""
        self.add_list(FIRST_FAR, "FIRST", LOCALS + GLOBALS, goes_on=LOCALS)
        self.add_list(FIRST_NEAR, "FIRST", LOCALS, near=1)
        self.add_list(SECOND_FAR, "SECOND", GLOBALS)

    def set_mode(self, mode: str, *, host_marks: bool = True) -> None:
        """Set a mode of SpritzMode_t, and whether hosts may mark packets as STEERED."""
        number = self.enum("SpritzMode_t", mode)
        self.set_default("spritz_config", self.action("set_spritz", mode=number, host_marks=int(host_marks)))

    def add_destination(self, address: str, port: int, links: int, near: int = 0) -> None:
        """The default table's entry of the /24 that holds the address."""
        action = self.action("destination", near=near, links=links, port=port)
        self.add_entry("destinations", {"dst": (number_of(address) >> 8 << 8, 24)}, action)

    def add_list(
        self,
        number: int,
        role: str,
        ports: tuple[int, ...],
        *,
        near: int = 0,
        path_class: str = "ALL",
        goes_on: tuple[int, ...] = (),
    ) -> None:
        """A list of ports for a role of Role_t and a class of PathClass_t."""
        for slot, port in enumerate(ports):
            link = self.action("path_slot", port=port, goes_on=int(port in goes_on), links=DETOUR_LINKS)
            self.add_entry("path_slots", {"list": number, "slot": slot}, link)
        key: Keys = {
            "role": self.enum("Role_t", role),
            "near": near,
            "class": self.enum("PathClass_t", path_class),
        }
        self.add_entry("path_lists", key, self.action("path_list", list=number, size=len(ports)))

    def expect_by(self, in_port: int, flow: Flow, port: int, dscp: int = Dscp.DEFAULT) -> None:
        """Data of a flow that comes in by one port leaves by another one."""
        self.send(in_port, roce(flow, dscp=dscp))
        self.expect(port, after(flow, port, dscp=dscp))


__all__ = [
    "ACK",
    "FAR_DEFAULT",
    "GLOBALS",
    "HOST_PORT",
    "LOCAL",
    "LOCALS",
    "NEAR",
    "OTHER_NEAR",
    "SpritzTest",
    "after",
    "kinds",
    "steered",
]
