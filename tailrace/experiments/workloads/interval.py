# SPDX-License-Identifier: Apache-2.0
"""The measuring interval of a workload, such as ``5ms..20ms``: the flows that start in it are measured.

Flows that start earlier only load the network (warm-up), and so do flows that start later, so that the load
lasts until the measured flows are complete.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.spec.errors import UnitError
from tailrace.spec.units import format_time, parse_time_ns

LOADED = 2
"""Without duration= flows start until this multiple of the interval's end (assumption)."""


class Interval(NamedTuple):
    """The flows that start at `from_ns` or later, but before `until_ns`."""

    from_ns: int
    until_ns: int

    def __str__(self) -> str:
        return f"{format_time(self.from_ns)}..{format_time(self.until_ns)}"

    def has(self, start_ns: int) -> bool:
        """Whether a flow that starts then is measured."""
        return self.from_ns <= start_ns < self.until_ns


def parse_interval(text: str) -> Interval:
    """The interval of FROM..UNTIL.

    Raises:
        UnitError: the text is not two times, the first of which is earlier.
    """
    first, dots, last = text.partition("..")
    if not dots:
        raise UnitError(f"{text!r} is no interval")
    interval = Interval(parse_time_ns(first), parse_time_ns(last))
    if interval.from_ns >= interval.until_ns:
        raise UnitError(f"{text!r} ends before it begins")
    return interval
