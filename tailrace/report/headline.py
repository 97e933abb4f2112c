# SPDX-License-Identifier: Apache-2.0
"""The headline of results in a report: which scheme or value was fastest, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.experiments.plan.axes import SCHEME
from tailrace.report.sweep_figures import MEAN, base_scheme, case_of, groups_over_seeds
from tailrace.results.estimates import Estimate, Group, SummaryRow, summarise
from tailrace.results.metrics import metric
from tailrace.results.results import Results
from tailrace.results.units import UNITS

_MOST_LINES = 8
"""Maximum number of settings for which the headline says which scheme was fastest."""


def headline(results: Results) -> list[str]:
    """A line for each setting in which schemes were compared; else one line on the fastest value.

    Runs in which flows did not finish are left out, since their completion times are those of few flows.
    """
    complete = [group for group in groups_over_seeds(results) if group.complete]
    groups = [group for group in complete if MEAN in group.measured]
    if not groups:
        return ["In no run did every flow finish."] if results.results else []
    base = base_scheme(results)
    rows = summarise(groups, base or None)
    if not base:
        return [_fastest(groups, rows)]
    by_case: dict[str, list[SummaryRow]] = {}
    for row in rows:
        by_case.setdefault(case_of(row.settings), []).append(row)
    lines = [line for case, of_case in by_case.items() for line in _compared(case, of_case, base)]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"The table has {more} more settings."] if more > 0 else lines


def _compared(case: str, rows: Sequence[SummaryRow], base: str) -> Iterator[str]:
    """Which scheme of a setting has the smallest mean completion time relative to the base."""
    rivals = [row for row in rows if MEAN in row.ratios and row.settings[SCHEME] != base]
    if not rivals or len(rivals) == len(rows):
        return
    best = min(rivals, key=lambda row: row.ratios[MEAN].value)
    ratio, where = best.ratios[MEAN], f"{case}: " if case else ""
    scheme = best.settings[SCHEME]
    if ratio.ends is not None and ratio.ends[0] <= 1 <= ratio.ends[1]:
        yield f"{where}no scheme differs from {base} beyond chance; {scheme} has {_times(ratio)} its FCT."
    elif ratio.value < 1:
        yield f"{where}{scheme} is fastest, with {_times(ratio)} the mean FCT of {base}."
    else:
        yield f"{where}{base} is fastest; {scheme}, the next, has {_times(ratio)} its mean FCT."


def _fastest(groups: Sequence[Group], rows: Sequence[SummaryRow]) -> str:
    """The mean completion time, that of the fastest group if there are several."""
    number = min(range(len(rows)), key=lambda index: rows[index].metrics[MEAN].value)
    unit = UNITS[metric(MEAN).unit]
    value = rows[number].metrics[MEAN].scaled(unit.factor)
    text = f"mean FCT {unit.shown(value.value)} {unit.name}{_interval(value)}"
    return f"{groups[number].label}: {text}" + (f", the smallest of {len(rows)}." if len(rows) > 1 else ".")


def _times(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} times{_interval(ratio, '.2f')}"


def _interval(value: Estimate, form: str = ".3g") -> str:
    """The ends of the 95 % interval in brackets; empty without an interval."""
    return "" if value.ends is None else f" ({value.ends[0]:{form}} to {value.ends[1]:{form}})"
