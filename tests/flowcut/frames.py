# SPDX-License-Identifier: Apache-2.0
"""Frames on the wires of a Flowcut network, read and made byte by byte from the format's diagrams.

Written without codec.layers and without the P4 parser, so that a mistake there cannot hide here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address

ETHERTYPE_IPV4, ETHERTYPE_TAILRACE, ETHERTYPE_MAC_CONTROL = 0x0800, 0x88B5, 0x8808
SHIM, ACK, PAUSE = 1, 2, 3
XOFF, XOFF_CREDIT, XON = 1, 2, 3
UDP, TCP = 17, 6
ROCE, NIC_DATA, NIC_ACK = 4791, 4793, 4794
DATA_OPCODES = (0x06, 0x07, 0x08, 0x0A)
_KEY = struct.Struct(">4s4sHHB")
_STAMP = struct.Struct(">IH")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_ETHERNET_BYTES, _SUBTYPE_BYTES, _SHIM_BYTES, _IPV4_BYTES = 14, 1, 3, 20
_ETHER_TYPE_AT = 12

Key = tuple[str, str, int, int, int]
"""src, dst, sport, dport, protocol"""


class Kind(Enum):
    DATA = "data"
    ACK = "ack"
    PAUSE = "pause"
    PFC = "pfc"
    """Of the class of data."""
    REPLY = "reply"
    """Of one NIC to another: ACK, NAK or CNP of RoCEv2, or the ACK of a NIC that does Flowcut (§II-D)."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Stamp:
    ticks: int
    in_port: int
    moved: bool = False
    untracked: bool = False
    drained: bool = False


@dataclass(frozen=True, slots=True)
class Parsed:
    """One frame; `nbytes` of data is its length without what switches added, with its virtual bytes."""

    kind: Kind
    nbytes: int
    key: Key = ("", "", 0, 0, 0)
    shim: bool = False
    hops: int = 0
    stamps: tuple[Stamp, ...] = ()
    packet: int = -1
    left: int = 0
    acked_bytes: int = 0
    congested: bool = False
    hops_back: int = 0
    op: int = 0
    credit_bytes: int = 0
    quanta: int = 0
    wire_bytes: int = 0


def _address(raw: bytes) -> str:
    return f"{raw[0]}.{raw[1]}.{raw[2]}.{raw[3]}"


def _key(raw: tuple[bytes, bytes, int, int, int]) -> Key:
    return _address(raw[0]), _address(raw[1]), raw[2], raw[3], raw[4]


def _stamps(frame: bytes, at: int, count: int) -> tuple[Stamp, ...]:
    return tuple(_stamp(*_STAMP.unpack_from(frame, at + i * _STAMP.size)) for i in range(count))


def _stamp(ticks: int, rest: int) -> Stamp:
    assert rest >> 9 & 0b1111 == 0, "reserved bits"
    return Stamp(ticks, rest & 0x1FF, bool(rest >> 15), bool(rest >> 14 & 1), bool(rest >> 13 & 1))


def parse(frame: bytes, virtual_bytes: int = 0) -> Parsed:
    """What a frame says."""
    ether_type = int.from_bytes(frame[_ETHER_TYPE_AT:_ETHERNET_BYTES], "big")
    wire = len(frame) + virtual_bytes
    if ether_type == ETHERTYPE_IPV4:
        return _parse_ipv4(frame, _ETHERNET_BYTES, virtual_bytes, False, 0, ())
    if ether_type == ETHERTYPE_MAC_CONTROL:
        return _parse_pfc(frame, wire)
    if ether_type != ETHERTYPE_TAILRACE:
        return Parsed(Kind.OTHER, wire)
    at = _ETHERNET_BYTES + _SUBTYPE_BYTES
    subtype = frame[_ETHERNET_BYTES]
    if subtype == SHIM:
        hops, stamps = frame[at] >> 4, frame[at] & 15
        stamp_values = _stamps(frame, at + _SHIM_BYTES, stamps)
        assert int.from_bytes(frame[at + 1 : at + 3], "big") == ETHERTYPE_IPV4
        start = at + _SHIM_BYTES + stamps * _STAMP.size
        return _parse_ipv4(frame, start, virtual_bytes, True, hops, stamp_values)
    key = _key(_KEY.unpack_from(frame, at))
    at += _KEY.size
    if subtype == ACK:
        nbytes = int.from_bytes(frame[at : at + 3], "big")
        hops, stamps, flags = frame[at + 3] >> 4, frame[at + 3] & 15, frame[at + 4]
        assert flags >> 5 == 0, "reserved bits"
        end = at + 5 + stamps * _STAMP.size
        assert len(frame) == end, "an ACK ends with its stamps"
        assert virtual_bytes == 0
        stamp_values = _stamps(frame, at + 5, stamps)
        congested, back = bool(flags & 1), flags >> 1 & 15
        return Parsed(
            Kind.ACK, wire, key, False, hops, stamp_values, -1, 0, nbytes, congested, back, wire_bytes=wire
        )
    if subtype == PAUSE:
        op, credit = struct.unpack_from(">BI", frame, at)
        return Parsed(Kind.PAUSE, wire, key, op=op, credit_bytes=credit, wire_bytes=wire)
    return Parsed(Kind.OTHER, wire)


def _parse_pfc(frame: bytes, wire: int) -> Parsed:
    opcode, classes, quanta = struct.unpack_from(">HHH", frame, _ETHERNET_BYTES)
    assert frame[:6] == bytes.fromhex("0180c2000001"), "no bridge forwards it"
    assert (opcode, classes) == (0x0101, 1), "IEEE 802.1Qbb, of priority 0"
    assert len(frame) == 60 and not any(frame[_ETHERNET_BYTES + 6 :]), "nothing is said of other priorities"
    return Parsed(Kind.PFC, wire, quanta=quanta, wire_bytes=wire)


def _parse_ipv4(
    frame: bytes, at: int, virtual_bytes: int, shim: bool, hops: int, stamps: tuple[Stamp, ...]
) -> Parsed:
    header = _IPV4.unpack_from(frame, at)
    protocol, src, dst = header[6], header[8], header[9]
    added = at - _ETHERNET_BYTES
    wire = len(frame) + virtual_bytes
    if protocol not in (UDP, TCP):
        return Parsed(Kind.OTHER, wire)
    at += _IPV4_BYTES
    sport, dport = struct.unpack_from(">HH", frame, at)
    left, body = 0, at + 4
    if protocol == UDP:
        body = at + 8
        if dport == NIC_ACK:
            return Parsed(Kind.REPLY, wire)
        if dport == ROCE:
            if frame[body] not in DATA_OPCODES:
                return Parsed(Kind.REPLY, wire)
            left = frame[body + 8] & 0x7F
            body += 12
    packet = int.from_bytes(frame[body : body + 4], "big")
    key = _address(src), _address(dst), sport, dport, protocol
    return Parsed(Kind.DATA, wire - added, key, shim, hops, stamps, packet, left, wire_bytes=wire)


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def make(key: Key, nbytes: int, packet: int, left: int = 0) -> bytes:
    """A data frame of `nbytes` as a host sends it: RoCEv2, other UDP, or TCP by the key; at least 64 bytes."""
    src, dst, sport, dport, protocol = key
    bth = b""
    if protocol == UDP:
        ports = struct.pack(">HHHH", sport, dport, nbytes - _ETHERNET_BYTES - _IPV4_BYTES, 0)
        if dport == ROCE:
            bth = struct.pack(">BBHBBHI", DATA_OPCODES[3], 0, 0xFFFF, 0, 0, 1, left << 24 | packet & 0xFFFFFF)
    else:
        ports = struct.pack(">HH", sport, dport)
    total = nbytes - _ETHERNET_BYTES
    fields = [0x45, 0, total, 0, 0, 64, protocol, 0, IPv4Address(src).packed, IPv4Address(dst).packed]
    fields[7] = _checksum(_IPV4.pack(*fields))
    head = bytes.fromhex("0200000000fe020000000001") + ETHERTYPE_IPV4.to_bytes(2, "big")
    frame = head + _IPV4.pack(*fields) + ports + bth + packet.to_bytes(4, "big")
    return frame + bytes(nbytes - len(frame))
