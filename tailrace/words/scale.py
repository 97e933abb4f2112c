# SPDX-License-Identifier: Apache-2.0
"""The one place where an experiment is slowed down to what software can hold.

With a time scale s everything takes s times as long: rates are divided by it, delays, timeouts, gaps and
ages are multiplied. Sizes stay, so bandwidth-delay products, window sizes and queue limits in bytes stay,
and so do slow-downs and counts of packets: that is what makes the small network an image of the large one.
Which fields of a dataclass are times or rates is read from the units in their names (`_ns`, `_bps`,
`ns_per_...`).
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

T = TypeVar("T")


def scaled(value: T, scale: float) -> T:
    """The same dataclass with all its times and rates, also those of dataclasses inside it, at the scale.

    None stays None; integers are rounded, and rates stay at least 1 bit/s.
    """
    if scale == 1 or not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for field in fields(value):
        if not field.init:
            continue
        changes[field.name] = _scaled_field(field, getattr(value, field.name), Fraction(scale))
    # mypy cannot see that `value` is an instance of a dataclass and not just of T
    copy: T = replace(value, **changes)
    return copy


def _scaled_field(field: Field[Any], value: Any, scale: Fraction) -> Any:
    if isinstance(value, tuple):
        return tuple(scaled(item, float(scale)) for item in value)
    if is_dataclass(value):
        return scaled(value, float(scale))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if field.name.endswith("_ns") or field.name.startswith("ns_per_"):
        exact = Fraction(value) * scale
        return float(exact) if isinstance(value, float) else round(exact)
    if field.name.endswith("_bps"):
        return max(1, round(Fraction(value) / scale))
    return value
