# SPDX-License-Identifier: Apache-2.0
"""One switch that runs `spritz`, with the lists that a test gives it, and what it must do with a packet, by Spritz §III.

REMOTE is in another group; NEAR is in this one, behind DOWNLINK, whose packets make this switch ECMP 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.switch.core import SentFrame
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import (
    DOWNLINK,
    HOST,
    HOST_PORT,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
    Rig,
    address_number,
    enum_of,
)

NEAR, ELSEWHERE = "10.0.6.2", "10.0.7.2"
NEAR_GROUP = 2
FAR_DEFAULT, NEAR_DEFAULT = UPLINKS[-1], DOWNLINK
OTHER_VID = 99
TRIMMED_IP_BYTES, TRIMMED_UDP_BYTES, BTH_BYTES = 40, 20, 12
STEERED = (Dscp.STEERED, Dscp.TRIMMED_STEERED, Dscp.DEMOTED_STEERED)
MODES = ("MINIMAL", "STEERED", "CLASS", "RANDOM", "UGAL_L")


def vid(name: str) -> int:
    """The VLAN number of a class."""
    return enum_of("spritz", "VlanId_t", name)


def classed(frame: Packet, number: int) -> Packet:
    """A frame with a VLAN tag."""
    return Ether(src=frame.src, dst=frame.dst) / Dot1Q(vlan=number) / frame[Ether].payload.copy()


def cut(frame: Packet, dscp: int = Dscp.TRIMMED) -> bytes:
    """What trimming leaves of a frame: all that is in front of the BTH's end, with honest lengths."""
    left = frame.copy()
    left[IP].tos = dscp << DSCP_SHIFT | left[IP].tos & 3
    left[IP].len, left[UDP].len, left[UDP].chksum = TRIMMED_IP_BYTES, TRIMMED_UDP_BYTES, 0
    return bytes(left)[: len(left) - len(left[IP]) + TRIMMED_IP_BYTES]


@dataclass(frozen=True)
class Slot:
    """A link of a list."""

    port: int
    goes_on: bool = False
    links: int = 5


@dataclass(frozen=True)
class Sent:
    """A packet of RoCE: where it comes in, and what the switch looks at."""

    in_port: int = HOST_PORT
    src: str = HOST
    dst: str = REMOTE
    ev: int = 1
    tag: int | None = None
    dscp: int = Dscp.DEFAULT
    size: int = 7

    def frame(self, ttl: int = 64, path_tag: int = 0) -> Packet:
        """The packet, without its tag."""
        payload = bytes(self.size)
        tos = self.dscp << DSCP_SHIFT
        return roce(self.ev, src=self.src, dst=self.dst, payload=payload, ttl=ttl, tos=tos, resv6=path_tag)

    def on_wire(self) -> Packet:
        """The packet, with its tag."""
        return self.frame() if self.tag is None else classed(self.frame(), self.tag)


@dataclass(frozen=True)
class Way:
    """A port, and the VLAN number that the packet leaves with."""

    port: int
    tag: int | None = None


@dataclass(frozen=True)
class Lists:
    """The lists of a switch by role and nearness; ECMP 2 has none for its own group."""

    first_far: tuple[Slot, ...]
    first_near: tuple[Slot, ...]
    second: tuple[Slot, ...]
    minimal_links: int = 3
    numbers: dict[str, int] = field(
        default_factory=lambda: {"first_far": 1, "first_near": 2, "second": 3}, compare=False
    )


class SpritzRig(Rig):
    """The switch: default table, roles, lists; class ALL and class NONMINIMAL have the same ones."""

    def __init__(self, lists: Lists, mode: str = "STEERED", *, seed: int = 1, marks: bool = True) -> None:
        super().__init__("spritz", seed=seed)
        self.lists, self.mode, self.marks = lists, mode, marks
        self.default("spritz_config", mode=enum_of("spritz", "SpritzMode_t", mode), host_marks=int(marks))
        self.group(NEAR, NEAR_GROUP, (DOWNLINK,))
        for address, port, near in ((REMOTE, FAR_DEFAULT, 0), (NEAR, NEAR_DEFAULT, 1)):
            links = 1 if near else lists.minimal_links
            self.prefix("destinations", (), address, "destination", near=near, links=links, port=port)
        self.prefix("second_role", (DOWNLINK,), NEAR, "second")
        for name, role, near in (("first_far", 1, 0), ("first_near", 1, 1), ("second", 2, 0)):
            self._list(name, role, near, getattr(lists, name))
        for name in ("MINIMAL", "NONMINIMAL"):
            path_class = enum_of("spritz", "PathClass_t", name)
            self.insert("vlan_classes", (vid(name),), "vlan_class", **{"class": path_class})

    def prefix(self, table: str, key: tuple[int, ...], address: str, action: str, **arguments: int) -> None:
        """An entry for the /24 of an address, behind a key that is exact."""
        prefix = address_number(address) >> 8 << 8
        fields = next(t for t in self.model.tables if t.name.rsplit(".", 1)[-1] == table).key
        exact_bits = 8 * sum(part.nbytes for part in fields[:-1])
        self.insert(table, (*key, prefix), action, prefix_bits=exact_bits + 24, **arguments)

    def _list(self, name: str, role: int, near: int, slots: tuple[Slot, ...]) -> None:
        number = self.lists.numbers[name]
        for index, slot in enumerate(slots):
            arguments = {"port": slot.port, "goes_on": int(slot.goes_on), "links": slot.links}
            self.insert("path_slots", (number, index), "path_slot", **arguments)
        for path_class in ("ALL", "NONMINIMAL"):
            key = (role, near, enum_of("spritz", "PathClass_t", path_class))
            self.insert("path_lists", key, "path_list", list=number, size=len(slots))

    def way_of(self, output: SentFrame) -> Way:
        """How a frame left."""
        frame = Ether(output.data)
        return Way(output.port, frame[Dot1Q].vlan if Dot1Q in frame else None)

    def dscp(self, sent: Sent) -> int:
        """What a packet says behind this switch: of marks of hosts those that they may give."""
        if sent.in_port != HOST_PORT:
            return sent.dscp
        trimmed: dict[int, int] = {Dscp.TRIMMED: Dscp.DEFAULT, Dscp.TRIMMED_STEERED: Dscp.STEERED}
        steered: dict[int, int] = {Dscp.STEERED: Dscp.DEFAULT, Dscp.DEMOTED_STEERED: Dscp.DEMOTED}
        kept = trimmed.get(sent.dscp, sent.dscp)
        if self.marks:
            return kept
        return steered.get(kept, kept)

    # ---- what the paper says ----

    def ways(self, sent: Sent) -> set[Way]:
        """The ways that the packet may take; one where nothing is drawn. No queue waits."""
        near = sent.dst == NEAR
        default = Way(NEAR_DEFAULT if near else FAR_DEFAULT)
        first = sent.in_port == HOST_PORT
        second = sent.in_port == DOWNLINK and sent.src == NEAR
        if not first and not second:
            return {default}
        slots = self._slots(first, near)
        if self.mode == "STEERED" or self.dscp(sent) in STEERED:
            return self._picked(slots, sent.ev >> 8 if first else sent.ev & 0xFF, default, sent)
        if self.mode == "RANDOM" or (self.mode == "UGAL_L" and second and sent.tag == vid("NONMINIMAL")):
            every = [self._picked(slots, index, default, sent) for index in range(max(1, len(slots)))]
            return set().union(*every)
        if self.mode == "CLASS" and sent.tag == vid("MINIMAL"):
            return {Way(self._ecmp(sent, near))}
        if self.mode == "CLASS" and sent.tag == vid("NONMINIMAL"):
            value = flow_hash(sent.frame())
            picked = self._picked(slots, value, default, sent)
            keeps = first and slots and slots[value % len(slots)].goes_on
            return {Way(way.port, sent.tag) for way in picked} if keeps else picked
        return {default}

    def _slots(self, first: bool, near: bool) -> tuple[Slot, ...]:
        if first:
            return self.lists.first_near if near else self.lists.first_far
        return () if near else self.lists.second

    def _picked(self, slots: tuple[Slot, ...], value: int, default: Way, sent: Sent) -> set[Way]:
        if not slots:
            return {default}
        port = slots[value % len(slots)].port
        return {default if sent.in_port == DOWNLINK == port else Way(port)}

    def _ecmp(self, sent: Sent, near: bool) -> int:
        ports = (DOWNLINK,) if near else UPLINKS
        return ports[flow_hash(sent.frame()) % len(ports)]


__all__ = ["UPLINK_GROUP", "Lists", "Sent", "Slot", "SpritzRig", "Way"]
