# SPDX-License-Identifier: Apache-2.0
"""The one place where an experiment is slowed down to what software can hold.

With a time scale s everything takes s times as long: rates are divided by it, delays, timeouts, gaps and
ages are multiplied. Sizes stay, so bandwidth-delay products, window sizes and queue limits in bytes stay,
and so do slow-downs and counts of packets: that is what makes the small network an image of the large one.
Which fields of a dataclass or a msgspec struct are times or rates is read from the units in their names
(`_ns`, `_bps`, `ns_per_...`).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from tailrace.spec.errors import SpecError
from tailrace.spec.units import MOST_NS, format_time

T = TypeVar("T")

_UNSCALED = (str, bytes, bool, Fraction, type(None))
"""What has no unit."""

_UNITS = ("_ns", "_bps")


def scaled(value: T, scale: float) -> T:
    """The same dataclass or struct with all its times and rates, also those inside it, at the scale.

    None stays None; integers are rounded, and rates stay at least 1 bit/s.

    Raises:
        SpecError: a time is more than MOST_NS then.
        TypeError: the value is neither, or holds something of which nobody knows how it scales.
    """
    # also where nothing is to change, so that no scale is needed to find out
    if not _has_fields(value):
        raise TypeError(f"{type(value).__name__} has no fields that could be scaled")
    return value if scale == 1 else _scaled("", value, Fraction(scale))


def scaled_ns(name: str, time_ns: int, scale: float) -> int:
    """A time at the scale; `name` is for the message.

    Raises:
        SpecError: it is more than MOST_NS then.
    """
    return int(_number(f"{name}_ns", time_ns, Fraction(scale)))


def _has_fields(value: object) -> bool:
    return isinstance(value, msgspec.Struct) or (is_dataclass(value) and not isinstance(value, type))


def _scaled(name: str, value: Any, scale: Fraction) -> Any:
    """A value that stands under a name."""
    if isinstance(value, _UNSCALED):
        return value
    if isinstance(value, int | float):
        return _number(name, value, scale)
    if isinstance(value, tuple | frozenset):
        return type(value)(_scaled(name, item, scale) for item in value)
    if isinstance(value, dict) and not name.endswith(_UNITS):
        return {key: _scaled(key, item, scale) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        kept = value.__struct_fields__
        return msgspec.structs.replace(
            value, **{key: _scaled(key, getattr(value, key), scale) for key in kept}
        )
    if _has_fields(value):
        kept = tuple(field.name for field in fields(value) if field.init)
        return replace(value, **{key: _scaled(key, getattr(value, key), scale) for key in kept})
    raise TypeError(f"{name}: nobody knows how a {type(value).__name__} scales")


def _number(name: str, value: Any, scale: Fraction) -> Any:
    if name.endswith("_ns") or name.startswith("ns_per_"):
        exact = Fraction(value) * scale
        if exact > MOST_NS and not name.startswith("ns_per_"):
            shown = format_time(value)
            raise SpecError(f"time scale {float(scale):g}: {name[:-3]} {shown} is more than 100 days then")
        return float(exact) if isinstance(value, float) else round(exact)
    if name.endswith("_bps"):
        return max(1, round(Fraction(value) / scale))
    return value
