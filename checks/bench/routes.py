# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' router: tests/programs/basic_l3.p4, its routes and the frames that match them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path

from checks.bench.program import ProgramCase
from tailrace.codec.checksum import ipv4_checksum
from tailrace.p4rt import programs
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program

JSON = Path(__file__).resolve().parents[2] / "tests" / "programs" / "build" / "basic_l3.json"
EGRESS_PORT = 1
MIN_FRAME_BYTES = 42  # Ethernet, IPv4 and UDP headers

_NEXT_HOP, _SOURCE_MAC = 0x020000000001, 0x020000000004
_SOURCE = 0x0A000001
_FIRST_NETWORK = 0x0B000000
_UDP, _ROCE_PORT, _FIRST_PORT, _PORTS = 17, 4791, 49152, 16384


def program() -> P4Program:
    """The compiled router. Raises P4ProgramError without its files."""
    return programs.read(JSON)


def network(index: int) -> int:
    """The address of route `index` (0 to 65535): a /24 network."""
    return _FIRST_NETWORK + (index << 8)


def _insert(table: str, match: Mapping[str, object], action: P4TableAction) -> p4r.Update:
    entry = P4TableEntry(table, match=P4TableMatch(match), action=action)
    return p4r.Update(type=p4r.Update.INSERT, entity=encode(program(), [entry])[0])


def updates(count: int) -> list[p4r.Update]:
    """Inserts of `count` routes to /24 networks, all through EGRESS_PORT."""
    forward = P4TableAction("forward", next_hop=_NEXT_HOP, port=EGRESS_PORT)
    networks = (f"{IPv4Address(network(index))}/24" for index in range(count))
    return [_insert("route", {"dst": each}, forward) for each in networks]


def case(count: int, frames: Sequence[bytes] = ()) -> ProgramCase:
    """The router with `count` routes and the MAC address of EGRESS_PORT, and `frames` to send."""
    address = _insert("port_mac", {"port": EGRESS_PORT}, P4TableAction("rewrite_source", src=_SOURCE_MAC))
    return ProgramCase(program(), p4r.WriteRequest(updates=[*updates(count), address]), frames)


def frame(flow: int, length_bytes: int, routes: int = 1 << 16) -> bytes:
    """A UDP frame of a flow to one of `routes` routes; flows differ in the route and the source port.

    Raises:
        ValueError: the frame is shorter than MIN_FRAME_BYTES.
    """
    if length_bytes < MIN_FRAME_BYTES:
        raise ValueError(f"a frame of {length_bytes} bytes is too short for its headers")
    before_checksum = struct.pack("!BBHHHBB", 0x45, 0, length_bytes - 14, 0, 0x4000, 64, _UDP)
    addresses = struct.pack("!II", _SOURCE, network(flow % routes) + 2)
    checksum = struct.pack("!H", ipv4_checksum(before_checksum + b"\0\0" + addresses))
    udp = struct.pack("!HHHH", _FIRST_PORT + flow % _PORTS, _ROCE_PORT, length_bytes - 34, 0)
    ethernet = bytes.fromhex("020000000001 020000000002 0800")
    return (ethernet + before_checksum + checksum + addresses + udp).ljust(length_bytes, b"\0")
