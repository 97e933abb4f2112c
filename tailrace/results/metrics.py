# SPDX-License-Identifier: Apache-2.0
"""Metrics: numbers computed from a result, by name; those from outside are shown wherever results are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailrace.results.units import UNITS
from tailrace.spec import SpecError, plugins
from tailrace.spec.registry import check_name
from tailrace.spec.text import one_line

if TYPE_CHECKING:
    from tailrace.results.result import Result

MOST_TITLE = 60
"""Characters of a title."""

Compute = Callable[["Result"], "float | None"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its title, the unit in which it is shown (units.py), and how it is computed from a run.

    `compute` gives None where the run has no such value, and is None itself for what no run measures.
    """

    title: str
    unit: str
    compute: Compute | None = None

    @property
    def titled(self) -> str:
        """The title with the unit in brackets, if it has one."""
        unit = UNITS[self.unit].name
        return f"{self.title} ({unit})" if unit else self.title


_added: dict[str, Metric] = {}
_taken: set[str] = set()


def reserve(names: Sequence[str]) -> None:
    """Keep names from being taken: those of the metrics of papers."""
    _taken.update(names)


def register(name: str, title: str, unit: str = "") -> Callable[[Compute], Compute]:
    """Register a function that computes a metric of a run; used as its decorator.

    Args:
        name: as files and claims write it; a key of summary.json's `metrics`.
        title: of a column or an axis.
        unit: one of units.py: times are ns, sizes bytes, shares 0 to 1.

    Raises:
        SpecError: it is no name, or taken, or the unit is not known.
    """
    check_name("metric", name)
    if name in _taken or name in _added:
        raise SpecError(f"metric {name!r} is registered twice")
    if unit not in UNITS:
        known = ", ".join(each or "''" for each in UNITS)
        raise SpecError(f"metric {name!r}: unit {unit!r} is not known; expected one of {known}")
    if not title.strip() or one_line(title, MOST_TITLE) != title:
        raise SpecError(f"metric {name!r}: expected a title on one line of at most {MOST_TITLE} characters")

    def add(compute: Compute) -> Compute:
        _added[name] = Metric(title, unit, compute)
        return compute

    return add


def added() -> dict[str, Metric]:
    """The metrics from outside, by name."""
    plugins.load()
    return dict(_added)


def measured(result: Result) -> dict[str, float]:
    """What metrics from outside say of a run; those that have no value for it are absent.

    Raises:
        SpecError: one failed, or gave what is no number; the line names its file.
    """
    found = {}
    for name, one in added().items():
        assert one.compute is not None, "whoever registers one says how it is computed"
        with plugins.blamed(f"metric {name}", one.compute):
            value: Any = one.compute(result)
        if value is None:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not abs(value) <= sys.float_info.max:
            place = plugins.place_of(one.compute)
            problem = f"expected a finite number or None, found {one_line(repr(value), 80)}"
            raise SpecError(f"metric {name}: {problem}{place and f' ({place})'}")
        found[name] = float(value)
    return found


def remove(name: str) -> None:
    """Forget a metric, as tests do with what they have registered."""
    _added.pop(name, None)
