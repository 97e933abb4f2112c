# SPDX-License-Identifier: Apache-2.0
"""Units that only the switch's command line has; spec.units has the common ones."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.spec.units import exact_integer, parse_bytes, parse_rate_bps, split


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in bits/s or in packets/s; the other value is 0."""

    bps: int = 0
    pps: int = 0


def parse_rate(text: str) -> Rate:
    """Parses a rate such as 100Mbps or 1000pps; a number without a unit is in bits/s."""
    value, unit = split(text)
    if unit.lower() == "pps":
        return Rate(pps=exact_integer(value, text))
    return Rate(bps=parse_rate_bps(text))


def parse_depth(text: str) -> tuple[int, int]:
    """Parses a queue depth to (packets, bytes): 64 and 64pkts are packets, 100KiB is bytes; 0: no limit."""
    value, unit = split(text)
    if unit in ("", "pkts", "packets"):
        return exact_integer(value, text), 0
    return 0, parse_bytes(text)
