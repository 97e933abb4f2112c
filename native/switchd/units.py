# SPDX-License-Identifier: Apache-2.0
"""Rates, times and sizes with units, as the command line takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_NUMBER = re.compile(r"^(\d+(?:\.\d+)?)\s*([A-Za-z/]*)$")
_BPS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9, "tbps": 10**12}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip


class UnitError(ValueError):
    """A text that is no such quantity."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in bits/s or in packets/s; the other one is 0."""

    bps: int = 0
    pps: int = 0


@dataclass(frozen=True, slots=True)
class PfcSpec:
    """PFC of all ports: lossless priorities, and thresholds in bytes."""

    priorities: tuple[int, ...]
    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    quanta: int = 0xFFFF


def _split(text: str) -> tuple[Decimal, str]:
    match = _NUMBER.match(text.strip())
    if match is None:
        raise UnitError(text)
    return Decimal(match[1]), match[2]


def _whole(value: Decimal, text: str) -> int:
    if value != int(value):
        raise UnitError(text)
    return int(value)


def parse_rate(text: str) -> Rate:
    """A rate such as 100Mbps or 1000pps; a bare number is bits/s."""
    value, unit = _split(text)
    if unit.lower() == "pps":
        return Rate(pps=_whole(value, text))
    factor = _BPS.get(unit.lower() or "bps")
    if factor is None:
        raise UnitError(text)
    return Rate(bps=_whole(value * factor, text))


def parse_delay_ns(text: str) -> int:
    """A time such as 10us, in ns; a bare number is ns."""
    value, unit = _split(text)
    factor = _TIMES.get(unit or "ns")
    if factor is None:
        raise UnitError(text)
    return _whole(value * factor, text)


def parse_bytes(text: str) -> int:
    """A size such as 100KiB, in bytes; a bare number is bytes."""
    value, unit = _split(text)
    factor = _SIZES.get(unit or "B")
    if factor is None:
        raise UnitError(text)
    return _whole(value * factor, text)


def parse_depth(text: str) -> tuple[int, int]:
    """A queue depth as (packets, bytes): 64 and 64pkts are packets, 100KiB is bytes; 0 is no limit."""
    value, unit = _split(text)
    if unit in ("", "pkts", "packets"):
        return _whole(value, text), 0
    return 0, parse_bytes(text)


def parse_pfc(text: str) -> PfcSpec:
    """PFC settings, as 3,4:xoff=96KiB,xon=64KiB,headroom=48KiB, perhaps with ,quanta=N."""
    numbers, colon, rest = text.partition(":")
    if not colon:
        raise UnitError(text)
    priorities = tuple(int(number) for number in numbers.split(","))
    values = dict(item.split("=", 1) for item in rest.split(","))
    quanta = int(values.pop("quanta", "65535"))
    if set(values) != {"xoff", "xon", "headroom"} or not all(0 <= p < 8 for p in priorities):
        raise UnitError(text)
    sizes = {name: parse_bytes(value) for name, value in values.items()}
    if sizes["xon"] > sizes["xoff"] or not 0 < quanta <= 0xFFFF:
        raise UnitError(text)
    return PfcSpec(priorities, sizes["xoff"], sizes["xon"], sizes["headroom"], quanta)
