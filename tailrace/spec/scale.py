# SPDX-License-Identifier: Apache-2.0
"""Time scaling: slows an experiment down to the rates that software switches can process.

With a time scale s everything takes s times as long: rates are divided by s; delays, timeouts, gaps and ages
are multiplied by s. Sizes in bytes are not scaled, so bandwidth-delay products, windows and queue limits stay
the same, and so do slowdowns and counts of packets: the scaled network behaves like the original one. The
unit in the name of a field of a dataclass or msgspec struct (`_ns`, `_bps`, `ns_per_...`) shows whether the
field is a time or a rate.
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
"""Types of values without a unit."""

_UNITS = ("_ns", "_bps")


def scaled(value: T, scale: float) -> T:
    """A copy of a dataclass or struct with all times and rates scaled, including those of nested structs.

    None stays None; integers are rounded, and rates are at least 1 bit/s.

    Raises:
        SpecError: a scaled time would be more than MOST_NS.
        TypeError: the value is no dataclass or struct, or has a part of a type that cannot be scaled.
    """
    # checked also with scale 1, so that such errors do not depend on the scale
    if not _has_fields(value):
        raise TypeError(f"{type(value).__name__} has no fields that could be scaled")
    return value if scale == 1 else _scaled("", value, Fraction(scale))


def scaled_ns(name: str, time_ns: int, scale: float) -> int:
    """A scaled time; `name` is for the message.

    Raises:
        SpecError: the scaled time would be more than MOST_NS.
    """
    return int(_number(f"{name}_ns", time_ns, Fraction(scale)))


def _has_fields(value: object) -> bool:
    return isinstance(value, msgspec.Struct) or (is_dataclass(value) and not isinstance(value, type))


def _scaled(name: str, value: Any, scale: Fraction) -> Any:
    """The scaled value of a field or key with this name."""
    if isinstance(value, _UNSCALED):
        return value
    if isinstance(value, int | float):
        return _number(name, value, scale)
    if isinstance(value, tuple | frozenset):
        return type(value)(_scaled(name, item, scale) for item in value)
    if isinstance(value, dict) and not name.endswith(_UNITS):
        return {key: _scaled(key, item, scale) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return msgspec.structs.replace(
            value, **{key: _scaled(key, getattr(value, key), scale) for key in names}
        )
    if _has_fields(value):
        names = tuple(field.name for field in fields(value) if field.init)
        return replace(value, **{key: _scaled(key, getattr(value, key), scale) for key in names})
    raise TypeError(f"{name}: it is not known how a {type(value).__name__} scales")


def _number(name: str, value: Any, scale: Fraction) -> Any:
    if name.endswith("_ns") or name.startswith("ns_per_"):
        exact = Fraction(value) * scale
        if exact > MOST_NS and not name.startswith("ns_per_"):
            shown = format_time(value)
            raise SpecError(f"time scale {float(scale):g}: {name[:-3]} {shown} becomes more than 100 days")
        return float(exact) if isinstance(value, float) else round(exact)
    if name.endswith("_bps"):
        return max(1, round(Fraction(value) / scale))
    return value
