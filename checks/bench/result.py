# SPDX-License-Identifier: Apache-2.0
"""Benchmark results and their table."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal

from checks.bench.noise import Noise, remark
from tailrace.spec.errors import Error

WIDTH = 80
_NAME, _VALUE, _UNIT, _SPREAD, _GOAL, _RIVAL = 28, 8, 9, 6, 12, 7  # widths of columns


class BenchError(Error):
    """A benchmark cannot run here, or what it measures failed; the message is one line."""


@dataclass(frozen=True, slots=True)
class Rival:
    """The figure of other software, in the same unit.

    `name` is the software's name. If its figure was not measured, `value` is None and `name` is instead a
    text with the reason, such as "htsim is not on PATH". The legend of the table prints `name` in both cases.
    """

    name: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One measured figure.

    `value` is in `unit`; `goal` in the same unit, None if there is none. `better` says whether
    more or less than the goal is good. `note` is a remark for the reader. `runs` are the single runs of which
    `value` is the median; empty if there was only one. `rival` is the figure of other software. `noise` is
    the load by other processes during each run.
    """

    group: str
    name: str
    value: float
    unit: str
    goal: float | None = None
    better: Literal["more", "less"] = "more"
    note: str = ""
    runs: tuple[float, ...] = ()
    rival: Rival | None = None
    noise: tuple[Noise, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The row of bench.json: fields, goal met, machine quiet, least and greatest value of the runs."""
        row: dict[str, object] = asdict(self) | {"met": self.reaches_goal(), "quiet": self.quiet()}
        return row | ({"min": min(self.runs), "max": max(self.runs)} if self.runs else {})

    def reaches_goal(self) -> bool | None:
        """Whether the goal was reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.better == "more" else self.value <= self.goal

    def quiet(self) -> bool | None:
        """Whether the machine was otherwise idle; None if that was not measured."""
        return all(noise.quiet for noise in self.noise) if self.noise else None


def spread(runs: Sequence[float]) -> float:
    """Half of the difference between the best and the worst run, as a share of the median."""
    middle = statistics.median(runs)
    return (max(runs) - min(runs)) / 2 / middle if middle else 0.0


def _number(value: float) -> str:
    """Three significant digits at least, in at most six characters up to a billion."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.{0 if abs(value) >= 1e8 else 1 if abs(value) >= 1e7 else 2}f}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.{0 if abs(value) >= 1e5 else 1}f}k"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(result: BenchResult) -> str:
    if result.goal is None:
        return ""
    sign = ">=" if result.better == "more" else "<="
    return f"{sign}{_number(result.goal)} {'yes' if result.reaches_goal() else 'NO'}"


def _rival_cell(figure: Rival | None) -> str:
    if figure is None:
        return ""
    return "none" if figure.value is None else _number(figure.value)


def _row(result: BenchResult) -> list[str]:
    percent = f"±{spread(result.runs):.0%}" if len(result.runs) > 1 else ""
    loud = "!" if result.quiet() is False else ""
    cells = (
        f"{_number(result.value):>{_VALUE}} {result.unit:<{_UNIT}}{percent + loud:>{_SPREAD}}"
        f" {_verdict(result):<{_GOAL}}{_rival_cell(result.rival):>{_RIVAL}}"
    )
    name = f"  {result.name}"
    fits = len(name) <= _NAME
    lines = [f"{name:<{_NAME}}{cells}".rstrip()] if fits else [name, f"{'':<{_NAME}}{cells}".rstrip()]
    return lines + _wrapped(result.note, "      ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _legend(results: Sequence[BenchResult]) -> list[str]:
    """The names of the rivals of a group."""
    names = list(dict.fromkeys(result.rival.name for result in results if result.rival is not None))
    return _wrapped(f"rival: {'; '.join(names)}", "  ") if names else []


def table(results: Sequence[BenchResult]) -> str:
    """All results in at most WIDTH columns: for each group a heading, its rows, and the rivals' names.

    The last line says if the machine was not quiet.
    """
    head = (
        f"{'':<{_NAME}}{'figure':>{_VALUE}} {'':<{_UNIT}}{'spread':>{_SPREAD}}"
        f" {'goal':<{_GOAL}}{'rival':>{_RIVAL}}"
    )
    lines: list[str] = []
    for group, rows in groupby(results, key=lambda result: result.group):
        group_rows = list(rows)
        lines += ["", f"{group:<{_NAME}}{head[_NAME:]}" if len(group) < _NAME else group]
        lines += [line for result in group_rows for line in _row(result)] + _legend(group_rows)
    text = remark([noise for result in results for noise in result.noise])
    return "\n".join(lines + (["", *_wrapped(f"! {text}", "")] if text else [])).lstrip("\n")
