# SPDX-License-Identifier: Apache-2.0
"""Every kind of frame that the programs tell from others, as a host would forge it; and plain data as long.

The kinds follow from the sources (tests.guards.source): a port, an opcode, an EtherType, a subtype or a mark that is
added there is sent here, short and long, without anybody thinking of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from tailrace.topology import GATEWAY_MAC, Host
from tests.guards.source import constants, members

LONG_BYTES = 1400
SHORT_PAYLOAD = 20
"""Of what follows the BTH of an ACK (8 bytes) or a CNP (20), checksum included: the longer one."""

UDP, TCP, ICMP = 17, 6, 1
PLAIN_PORT, PLAIN_FLOWS = 40_000, 6
ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES, TAG_BYTES = 14, 20, 8, 4
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_ROCE = dict(constants("UDP_"))["UDP_ROCE"]
_TYPES = dict(constants("ETHERTYPE_"))
_DATA_OPCODE = 0x07

MAC_CONTROL = "ETHERTYPE_MAC_CONTROL"
"""Pauses: whoever sends them is not beside the victim, but in front of it, so they are tested elsewhere."""


@dataclass(frozen=True)
class Ipv4:
    """What a forged IPv4 packet says; None: the truth."""

    protocol: int = UDP
    tos: int = 0
    ttl: int = 64
    flags: int = 0
    total_len: int | None = None
    udp_len: int | None = None
    src: str | None = None
    sport: int = 0x0101
    dport: int = _ROCE


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(src: Host, ether_type: int, body: bytes) -> bytes:
    """A frame that a host sends to its switch."""
    return _mac(GATEWAY_MAC) + _mac(src.mac) + struct.pack(">H", ether_type) + body


def ipv4(src: Host, dst: Host, says: Ipv4, payload: bytes) -> bytes:
    """An IPv4 packet, with a UDP header where it is UDP."""
    if says.protocol == UDP:
        length = UDP_BYTES + len(payload) if says.udp_len is None else says.udp_len
        payload = struct.pack(">HHHH", says.sport, says.dport, length, 0) + payload
    elif says.protocol == TCP:
        payload = struct.pack(">HH", says.sport, says.dport) + payload
    total = IPV4_BYTES + len(payload) if says.total_len is None else says.total_len
    addresses = (IPv4Address(says.src or src.ip).packed, IPv4Address(dst.ip).packed)
    fields = [0x45, says.tos, total, 0, says.flags, says.ttl, says.protocol, 0, *addresses]
    fields[7] = _checksum(_IPV4.pack(*fields))
    return _IPV4.pack(*fields) + payload


def bth(opcode: int, size: int) -> bytes:
    """A BTH, and so many bytes behind it."""
    return struct.pack(">BBHBBHI", opcode, 0, 0xFFFF, 0, 0, 1, 2) + bytes(size)


def roce_data(frame_bytes: int) -> Kind:
    """RoCE data of honest lengths, which switches of Spritz may send by other paths than other data."""
    payload = bth(_DATA_OPCODE, max(0, frame_bytes - ETHERNET_BYTES - IPV4_BYTES - UDP_BYTES - 12))
    return _packet(f"plain-{frame_bytes}-roce", Ipv4(), payload)


Make = Callable[[Host, Host], bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of frame; `make` forges one from a host to another."""

    name: str
    make: Make = field(compare=False)

    def __str__(self) -> str:
        return self.name


def filled(packet: bytes, frame_bytes: int) -> bytes:
    """A packet with zeros behind it, for a frame of so many bytes."""
    return packet + bytes(max(0, frame_bytes - ETHERNET_BYTES - len(packet)))


def plain(frame_bytes: int, dport: int = PLAIN_PORT) -> Kind:
    """Data that no program knows more of than its ports."""
    payload = bytes(max(0, frame_bytes - ETHERNET_BYTES - IPV4_BYTES - UDP_BYTES))
    return _packet(f"plain-{frame_bytes}-{dport}", Ipv4(dport=dport), payload)


def all_plain(frame_bytes: int) -> Iterator[Kind]:
    """The same by other paths, for a host may choose its ports; and without ports, which no program balances."""
    for dport in range(PLAIN_PORT, PLAIN_PORT + PLAIN_FLOWS):
        yield plain(frame_bytes, dport)
    payload = bytes(max(0, frame_bytes - ETHERNET_BYTES - IPV4_BYTES))
    yield _packet(f"plain-{frame_bytes}-icmp", Ipv4(ICMP), payload)
    yield _packet(f"plain-{frame_bytes}-fragment", Ipv4(flags=1 << 13), payload[UDP_BYTES:])


def _packet(name: str, says: Ipv4, payload: bytes, frame_bytes: int = 0) -> Kind:
    def make(src: Host, dst: Host) -> bytes:
        return ethernet(src, _TYPES["ETHERTYPE_IPV4"], filled(ipv4(src, dst, says, payload), frame_bytes))

    return Kind(name, make)


def _sizes(head: int) -> Iterator[tuple[str, int]]:
    """Names and lengths of what follows a header of so many bytes: as short as can be, and a full frame's."""
    yield "short", SHORT_PAYLOAD
    yield "long", LONG_BYTES - ETHERNET_BYTES - IPV4_BYTES - UDP_BYTES - head


def _ports() -> Iterator[Kind]:
    for name, dport in constants("UDP_"):
        for size, length in _sizes(0):
            yield _packet(f"{name}-{size}", Ipv4(dport=dport), bytes(length))
        # the same in a long frame that says it is a short one
        yield _packet(f"{name}-dishonest", Ipv4(dport=dport), bytes(SHORT_PAYLOAD), LONG_BYTES)
        yield _packet(f"{name}-other-protocol", Ipv4(TCP, dport=dport), bytes(LONG_BYTES - 38))


def _opcodes() -> Iterator[Kind]:
    for name, opcode in (("DATA", _DATA_OPCODE), *constants("BTH_")):
        for size, length in _sizes(12):
            yield _packet(f"{name}-{size}", Ipv4(), bth(opcode, length))
        yield _packet(f"{name}-bare", Ipv4(), bth(opcode, 0))
        yield _packet(f"{name}-dishonest", Ipv4(), bth(opcode, 8), LONG_BYTES)
        yield _packet(f"{name}-dishonest-udp", Ipv4(udp_len=28), bth(opcode, LONG_BYTES - 54))
        yield _packet(f"{name}-fragment", Ipv4(flags=1 << 13), bth(opcode, 8))


def _marks() -> Iterator[Kind]:
    for name, dscp in members("Dscp_t").items():
        for ecn in (0, 3):
            tos = dscp << 2 | ecn
            yield _packet(f"dscp-{name}-{ecn}-data", Ipv4(tos=tos), bth(_DATA_OPCODE, LONG_BYTES - 54))
            yield _packet(f"dscp-{name}-{ecn}-cut", Ipv4(tos=tos), bth(_DATA_OPCODE, 0))
            yield _packet(f"dscp-{name}-{ecn}-cut-dishonest", Ipv4(tos=tos), bth(_DATA_OPCODE, 0), LONG_BYTES)
    for ecn in range(4):
        yield _packet(f"ecn-{ecn}", Ipv4(tos=ecn), bth(_DATA_OPCODE, LONG_BYTES - 54))
    for ttl in (0, 1, 2, 3, 255):
        yield _packet(f"ttl-{ttl}", Ipv4(ttl=ttl), bth(_DATA_OPCODE, LONG_BYTES - 54))
    for ev in (0x0000, 0x00FF, 0xFF00, 0xFFFF):
        yield _packet(f"ev-{ev:04x}", Ipv4(sport=ev), bth(_DATA_OPCODE, LONG_BYTES - 54))
    yield _packet("icmp", Ipv4(ICMP), bytes(LONG_BYTES - 34))


def tagged(kind: Kind, vid: int, pcp: int) -> Kind:
    """The same behind an 802.1Q tag."""

    def make(src: Host, dst: Host) -> bytes:
        frame = kind.make(src, dst)
        tag = struct.pack(">HH", _TYPES["ETHERTYPE_VLAN"], pcp << 13 | vid)
        return frame[:12] + tag + frame[12:]

    return Kind(f"vlan-{vid}-{pcp}-{kind.name}", make)


def _tags(inner: list[Kind]) -> Iterator[Kind]:
    vids = (*members("VlanId_t").values(), 0, 99)
    for kind in inner:
        for vid in vids:
            yield tagged(kind, vid, 7)


def _subtypes(inner: list[Kind]) -> Iterator[Kind]:
    """Frames of the fabric itself, with a packet behind them wherever one could be."""
    values = dict(members("Subtype_t"), UNKNOWN=99)
    # what each begins with, so that the packet is found; EtherType IPv4 ends it
    heads = {
        "DATA_SHIM": bytes([0x10]),
        "PATH_PROBE": bytes([0x80]) + bytes(18),
        "DETOUR": struct.pack(">H", 1),
    }
    for name, value in values.items():
        for kind in inner:
            head = bytes([value]) + heads.get(name, bytes(16))

            def make(src: Host, dst: Host, head: bytes = head, kind: Kind = kind) -> bytes:
                frame = kind.make(src, dst)
                return frame[:12] + struct.pack(">H", _TYPES["ETHERTYPE_TAILRACE"]) + head + frame[12:]

            yield Kind(f"tailrace-{name}-{kind.name}", make)


def _ether_types(inner: Kind) -> Iterator[Kind]:
    for name, value in (*_TYPES.items(), ("ARP", 0x0806), ("IPV6", 0x86DD), ("QINQ", 0x88A8)):
        if name == MAC_CONTROL:
            continue

        def make(src: Host, dst: Host, value: int = value) -> bytes:
            frame = inner.make(src, dst)
            return frame[:12] + struct.pack(">H", value) + frame[14:]

        yield Kind(f"{name}-{inner.name}", make)


def kinds() -> list[Kind]:
    """All of them."""
    opcodes = list(_opcodes())
    carried = [kind for kind in opcodes if kind.name.endswith(("-short", "-long"))]
    marks = list(_marks())
    cut = [kind for kind in marks if "cut" in kind.name]
    collected = [*_ports(), *opcodes, *marks, *_tags(carried + cut[:2]), *_subtypes(carried)]
    return [*collected, *_ether_types(carried[0])]
