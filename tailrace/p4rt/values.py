# SPDX-License-Identifier: Apache-2.0
"""Typed values of fields, their text and their JSON.

A value is one of: None, bool, int, float, str (also the name of an enum's member), IPv4Address,
IPv6Address, IPv4Network, IPv6Network, `Mac`, `SwitchPort`, `Wide`, `Masked`, `Interval`, a tuple of values,
or a dict of named values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Union

import msgspec

Value = Union[
    None,
    bool,
    int,
    float,
    str,
    IPv4Address,
    IPv6Address,
    IPv4Network,
    IPv6Network,
    "Mac",
    "SwitchPort",
    "Wide",
    "Masked",
    "Interval",
    tuple["Value", ...],
    Mapping[str, "Value"],
]
"""Any value in a row of a listing."""

ABSENT = "-"
"""Text of an absent value."""
ANY = "*"
"""Text of a field that is omitted in a match."""
_MAC = re.compile(r"[0-9a-fA-F]{1,2}([:-][0-9a-fA-F]{1,2}){5}")


class Mac(msgspec.Struct, frozen=True, order=True):
    """An Ethernet address."""

    number: int

    @classmethod
    def parse(cls, text: str) -> Mac:
        """Parses 02:00:0a:00:01:02 or 02-00-0a-00-01-02. Raises ValueError."""
        if not _MAC.fullmatch(text):
            raise ValueError(f"{text!r} is not a MAC address")
        return cls(int("".join(part.zfill(2) for part in re.split("[:-]", text)), 16))

    def __str__(self) -> str:
        return ":".join(f"{byte:02x}" for byte in self.number.to_bytes(6, "big"))


class SwitchPort(msgspec.Struct, frozen=True, order=True):
    """A port of a switch, and its neighbour (None: unknown)."""

    number: int
    peer: str | None = None

    def __str__(self) -> str:
        return str(self.number) if self.peer is None else f"{self.number}:{self.peer}"


class Wide(msgspec.Struct, frozen=True, order=True):
    """A number of more than 64 bits, which JSON parsers may truncate: shown in hexadecimal."""

    number: int

    def __str__(self) -> str:
        return hex(self.number)


class Masked(msgspec.Struct, frozen=True):
    """A ternary match: a value and the mask of the bits that must be equal.

    width: the field's width in bits
    """

    value: Value
    mask: int
    width: int

    @property
    def number(self) -> int:
        """The value as an integer."""
        return number_of(self.value)

    def covers(self, number: int) -> bool:
        """Whether a field with this number would match."""
        return number & self.mask == self.number & self.mask

    def __str__(self) -> str:
        value = hex(self.value) if isinstance(self.value, int) else text_of(self.value)
        inverse = ~self.mask & (1 << self.width) - 1
        if inverse & (inverse + 1) == 0:  # a prefix mask
            return f"{value}/{self.mask.bit_count()}"
        return f"{value}&&&{self.mask:#x}"


class Interval(msgspec.Struct, frozen=True):
    """A closed range."""

    low: Value
    high: Value

    def covers(self, number: int) -> bool:
        """Whether a field with this number would match."""
        return number_of(self.low) <= number <= number_of(self.high)

    def __str__(self) -> str:
        return f"{text_of(self.low)}..{text_of(self.high)}"


def number_of(value: Value) -> int:
    """The bits of a value as an integer. Raises TypeError for other kinds of values."""
    if isinstance(value, (Mac, SwitchPort, Wide, Masked)):
        return value.number
    if isinstance(value, (int, IPv4Address, IPv6Address)):
        return int(value)
    raise TypeError(f"{value!r} is not a number")


def text_of(value: Value, absent: str = ABSENT) -> str:
    """The text of a value in a table or CSV file."""
    if value is None:
        return absent
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    if isinstance(value, tuple):
        return " ".join(text_of(item) for item in value) or absent
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text_of(item, ANY)}" for name, item in value.items()) or absent
    return str(value)


def json_of(value: Value) -> Any:
    """A value for JSON: numbers, booleans and null as such, ports as {"port", "peer"}, the rest as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, SwitchPort):
        return {"port": value.number, "peer": value.peer}
    if isinstance(value, tuple):
        return [json_of(item) for item in value]
    if isinstance(value, Mapping):
        return {name: json_of(item) for name, item in value.items()}
    return str(value)


def sort_key(value: Value) -> tuple[int, Any]:
    """A total order of values: absent, numbers and addresses, prefixes, texts in natural order."""
    if value is None:
        return (0, 0)
    if isinstance(value, (bool, int, float)):
        return (1, value)
    if isinstance(value, (Mac, SwitchPort, Wide, IPv4Address, IPv6Address)):
        return (1, number_of(value))
    if isinstance(value, (IPv4Network, IPv6Network)):
        return (2, (value.version, int(value.network_address), value.prefixlen))
    if isinstance(value, tuple):
        return (4, tuple(sort_key(item) for item in value))
    if isinstance(value, Mapping):
        return (5, tuple((name, sort_key(item)) for name, item in value.items()))
    return (3, natural_key(str(value)))


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which leaf2 comes before leaf10."""
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"([0-9]+)", text)
    )
