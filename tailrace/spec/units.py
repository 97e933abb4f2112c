# SPDX-License-Identifier: Apache-2.0
"""Parses and formats rates, times and sizes with units, as in command lines and files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from tailrace.spec.errors import UnitError

MOST_INTEGER = (1 << 63) - 1
"""The largest integer in TOML, JSON, Parquet and the switches' clocks."""

MOST_COUNT = (1 << 31) - 1
"""The largest count: the narrowest integers in the switches have 32 bits."""

MOST_NS = 100 * 24 * 3600 * 10**9
"""The longest time: 100 days. Virtual time counts picoseconds in 64 bits, which is 213 days."""

MOST_BYTES = 1 << 50
"""The largest size: 1 PiB, more than any run sends."""

MOST_BPS = 10**15
"""The highest rate: at 1 Pbps the shortest frame takes half a picosecond. Virtual time counts whole
picoseconds; while a link is busy, it carries the fraction over to the next frame.
"""

_MOST_CHARACTERS = 100
_MOST_ALPHA = 1 << 10
_FACTOR = re.compile(r"[0-9]+(?:\.[0-9]+|/[0-9]+)?")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]*)")
_BPS = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_BINARY = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZES = _BINARY | {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def split(text: str) -> tuple[Decimal, str]:
    """Splits a quantity into its number and its unit, which may be empty.

    Raises:
        UnitError: the text is no number with a unit after it.
    """
    # the length is checked first, which bounds the message and the number
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        raise UnitError(f"{text[:_MOST_CHARACTERS]!r} is no number with a unit")
    return Decimal(match[1]), match[2]


def exact_integer(value: Decimal, text: str, most: int = MOST_INTEGER, shown: str = "") -> int:
    """The value as an integer; raises UnitError if it is not whole, or more than `most`. For the message,
    `text` is the user's input, and `shown` is `most` as text for people.
    """
    if value > most:
        raise UnitError(f"{text!r} is more than {shown or most}")
    if value != int(value):
        raise UnitError(f"{text!r} is no whole number of the smallest unit")
    return int(value)


def _parse(text: str, units: Mapping[str, int], what: str, smallest: str, most: int) -> int:
    value, unit = split(text)
    factor = units.get(unit or smallest)
    if factor is None:
        raise UnitError(f"{text!r} is no {what}; units are {', '.join(units)}")
    return exact_integer(value * factor, text, most, _format(most, units))


def parse_rate_bps(text: str) -> int:
    """A rate such as 200Gbps, in bits/s, at most MOST_BPS; a bare number is bits/s. The case of the unit does
    not matter.

    Raises:
        UnitError: the text is no rate.
    """
    value, unit = split(text)
    factor = {name.lower(): factor for name, factor in _BPS.items()}.get(unit.lower() or "bps")
    if factor is None:
        raise UnitError(f"{text!r} is no rate; units are {', '.join(_BPS)}")
    return exact_integer(value * factor, text, MOST_BPS, format_rate(MOST_BPS))


def parse_time_ns(text: str) -> int:
    """A time such as 10us, in ns, at most MOST_NS; a bare number is ns.

    Raises:
        UnitError: the text is no time.
    """
    return _parse(text, _TIMES, "time", "ns", MOST_NS)


def parse_bytes(text: str) -> int:
    """A size such as 8MiB, in bytes, at most MOST_BYTES; a bare number is bytes.

    Raises:
        UnitError: the text is no size.
    """
    return _parse(text, _SIZES, "size", "B", MOST_BYTES)


def parse_alpha(text: str) -> Fraction:
    """The factor alpha of a switch's dynamic thresholds, from 1/1024 to 1024, such as 1/8 or 0.5.

    Raises:
        UnitError: the text is no such factor.
    """
    # no exponents: Fraction would compute 1e999999999
    given = text.strip() if len(text) <= _MOST_CHARACTERS else ""
    try:
        alpha = Fraction(given if _FACTOR.fullmatch(given) else "")
    except (ValueError, ZeroDivisionError):
        raise UnitError(f"{text[:_MOST_CHARACTERS]!r} is no factor such as 1/8") from None
    if not Fraction(1, _MOST_ALPHA) <= alpha <= _MOST_ALPHA:
        raise UnitError(f"{text[:_MOST_CHARACTERS]!r} is not between 1/{_MOST_ALPHA} and {_MOST_ALPHA}")
    return alpha.limit_denominator(_MOST_ALPHA**2)


def _format(value: int, units: Mapping[str, int]) -> str:
    """The value in the largest unit that does not exceed it, with at most three decimals."""
    name, factor = next(
        ((name, factor) for name, factor in reversed(list(units.items())) if abs(value) >= factor),
        next(iter(units.items())),
    )
    number = f"{value / factor:.3f}".rstrip("0").rstrip(".")
    return f"{number}{name}"


def format_rate(rate_bps: int) -> str:
    """A rate for people, such as 200Gbps; rounded to three decimals."""
    return _format(rate_bps, _BPS)


def format_time(time_ns: int) -> str:
    """A time for people, such as 1.5us; rounded to three decimals."""
    return _format(time_ns, _TIMES)


_SHOWN_TIMES = (("ns", 1), ("µs", 10**3), ("ms", 10**6), ("s", 10**9))


def time_unit(typical_ns: float) -> tuple[int, str]:
    """The unit in which times of about this length are shown: its length in ns, and its name."""
    name, unit_ns = next(
        (each for each in reversed(_SHOWN_TIMES) if abs(typical_ns) >= each[1]), _SHOWN_TIMES[0]
    )
    return unit_ns, name


def significant(value: float, digits: int = 3) -> str:
    """A number for people with `digits` significant digits, without exponent: 4.50, 12.3, 31,740."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(decimals, 0), 6)}f}"


def readable_time(time_ns: float) -> str:
    """A time for people with three significant digits, such as 12.3 µs; not for parsing, unlike
    `format_time`.
    """
    unit_ns, name = time_unit(time_ns)
    return f"{significant(time_ns / unit_ns)} {name}"


def format_bytes(size_bytes: int) -> str:
    """A size for people, such as 8MiB; rounded to three decimals."""
    return _format(size_bytes, _BINARY)
