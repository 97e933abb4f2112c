# SPDX-License-Identifier: Apache-2.0
"""Quantities that only the switch's command line has; those that all share are in spec.units."""

from __future__ import annotations

from dataclasses import dataclass

from spec import UnitError
from spec.units import parse_bytes, parse_rate_bps, split, whole


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


def parse_rate(text: str) -> Rate:
    """A rate such as 100Mbps or 1000pps; a bare number is bits/s."""
    value, unit = split(text)
    if unit.lower() == "pps":
        return Rate(pps=whole(value, text))
    return Rate(bps=parse_rate_bps(text))


def parse_depth(text: str) -> tuple[int, int]:
    """A queue depth as (packets, bytes): 64 and 64pkts are packets, 100KiB is bytes; 0 is no limit."""
    value, unit = split(text)
    if unit in ("", "pkts", "packets"):
        return whole(value, text), 0
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
