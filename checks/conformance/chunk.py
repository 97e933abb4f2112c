# SPDX-License-Identifier: Apache-2.0
"""A header of a generated packet, with valid IPv4 and UDP lengths and checksums; and values of the integer
expressions of a BMv2 JSON parser, as far as the packet generator needs them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from checks.conformance.program import Json
from tailrace.codec.checksum import ipv4_checksum

IPV4_FIELDS = {"version", "ihl", "total_len", "protocol", "checksum", "src", "dst"}
UDP_FIELDS = {"src_port", "dst_port", "length", "checksum"}


@dataclass(slots=True)
class Chunk:
    """A header, or skipped bytes: fields in order with their widths in bits, and their values."""

    header_type: str
    widths: list[tuple[str, int]]
    values: dict[str, int]

    @property
    def bits(self) -> int:
        """Width of the whole header."""
        return sum(width for _, width in self.widths)

    def encode(self) -> bytes:
        """The bytes of the header; its widths add up to whole bytes."""
        number = 0
        for name, width in self.widths:
            number = number << width | self.values[name] & (1 << width) - 1
        return number.to_bytes(self.bits // 8, "big")


def repair(chunks: Sequence[Chunk], payload: bytes) -> None:
    """Sets, in place, the checksum of the first IPv4 header, and lengths and checksum of a UDP header before
    the payload. Does nothing without an IPv4 header.
    """
    ipv4 = next((chunk for chunk in chunks if chunk.values.keys() >= IPV4_FIELDS and chunk.bits == 160), None)
    if ipv4 is None:
        return
    if chunks[-1].values.keys() >= UDP_FIELDS and chunks[-1].bits == 64:
        udp = chunks[-1]
        udp.values["length"] = 8 + len(payload)
        udp.values["checksum"] = 0
        ipv4.values["total_len"] = 28 + len(payload)
        addresses = ipv4.values["src"].to_bytes(4, "big") + ipv4.values["dst"].to_bytes(4, "big")
        pseudo = addresses + bytes([0, ipv4.values["protocol"]]) + udp.values["length"].to_bytes(2, "big")
        even = 20 + len(payload) + len(payload) % 2  # with the pseudo header of 12 bytes
        udp.values["checksum"] = ipv4_checksum((pseudo + udp.encode() + payload).ljust(even, b"\0"))
    ipv4.values["checksum"] = 0
    ipv4.values["checksum"] = ipv4_checksum(ipv4.encode())


Node = Any
Reader = Callable[[Json], int]

BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}


class UnknownValueError(Exception):
    """The expression uses something that the generator does not track."""


def evaluate(node: Node, read: Reader) -> int:
    """Value of an expression; `read` returns the value of a leaf that is neither constant nor operator."""
    kind, value = node.get("type"), node.get("value")
    if kind == "hexstr":
        return int(value, 16)
    if kind == "bool":
        return int(value)
    if kind == "expression":
        return evaluate(value, read)
    if kind is not None:
        return read(node)
    return _operate(node, read)


def _operate(node: Node, read: Reader) -> int:
    name = node["op"]
    if name == "?":
        return evaluate(node["left"] if evaluate(node["cond"], read) else node["right"], read)
    if name in ("d2b", "b2d"):
        return evaluate(node["right"], read)
    if name == "not":
        return int(not evaluate(node["right"], read))
    if name in BINARY and node.get("left") is not None:
        return BINARY[name](evaluate(node["left"], read), evaluate(node["right"], read))
    raise UnknownValueError(name)
