# SPDX-License-Identifier: Apache-2.0
"""What a benchmark found, and the table of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Result:
    """One measured figure.

    `value` is in `unit`; `goal` in the same unit, or None where nothing was promised. `better` says which
    side of the goal is the good one. `note` tells what the reader must know, the spread of the runs for one.
    `runs` are the single runs of which `value` is the median; empty where there was but one.
    """

    group: str
    name: str
    value: float
    unit: str
    goal: float | None = None
    better: Literal["more", "less"] = "more"
    note: str = ""
    runs: tuple[float, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The row of bench.json: the fields, whether the goal was met, and the spread of the runs."""
        row: dict[str, object] = asdict(self) | {"met": self.met()}
        return row | ({"min": min(self.runs), "max": max(self.runs)} if self.runs else {})

    def met(self) -> bool | None:
        """Whether the goal was reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.better == "more" else self.value <= self.goal


def _number(value: float) -> str:
    """Three significant digits at least, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _verdict(result: Result) -> str:
    if result.goal is None:
        return ""
    sign = ">=" if result.better == "more" else "<="
    return f"{sign} {_number(result.goal)}: {'yes' if result.met() else 'NO'}"


def table(results: Sequence[Result]) -> str:
    """All results as lines of aligned columns, a heading for each group."""
    name_width = max((len(result.name) for result in results), default=0)
    unit_width = max((len(result.unit) for result in results), default=0)
    lines: list[str] = []
    group = ""
    for result in results:
        if result.group != group:
            group = result.group
            lines += ["", group]
        cells = f"  {result.name:<{name_width}}  {_number(result.value):>12} {result.unit:<{unit_width}}"
        lines.append(f"{cells}  {_verdict(result):<18}  {result.note}".rstrip())
    return "\n".join(lines).lstrip("\n")
