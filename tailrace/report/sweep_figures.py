# SPDX-License-Identifier: Apache-2.0
"""Figures of grids of runs: ratios to a scheme, and the influence of what a sweep varies.

The base of ratios is the first scheme; in a sweep of one scheme it is the first value. Ratios are formed seed
by seed, as in tables, since a seed gives every scheme the same traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.experiments.plan.axes import CASE, SCHEME, SEED, Setting, run_name
from tailrace.report.figures import plot
from tailrace.report.figures.kind import kind
from tailrace.report.figures.plot import NATURAL, Look, shortened
from tailrace.report.figures.ratios import NO_DIFFERENCE, panel_height, ratio_panel
from tailrace.results.estimates import Estimate, Group, SummaryRow, paired_seeds, ratio, summarise
from tailrace.results.metrics import metric
from tailrace.results.results import Results

MEAN, SLOWDOWN = "fct_mean", "slowdown_mean"
_MOST_CASES = len(plot.COLOURS)
_NAME_SHARE = 0.4
"""Maximum share of a panel's width that names of rows take."""


def groups_over_seeds(results: Results) -> tuple[Group, ...]:
    """The groups of runs that differ only in their seeds, even if the table has a row for each seed."""
    return replace(results, over_seeds=True).groups


def base_scheme(results: Results) -> str:
    """The scheme to which ratios are relative; empty if there is one scheme only."""
    schemes = results.axes.get(SCHEME, ())
    return (results.first or str(schemes[0])) if len(schemes) > 1 else ""


def ratio_rows(results: Results) -> list[SummaryRow]:
    """A row for each group, with ratios to the first scheme."""
    return summarise(groups_over_seeds(results), base_scheme(results) or None)


def case_of(settings: Mapping[str, Setting]) -> str:
    """The settings of a row except for its scheme: `clean`, or `workload.load=0.5`."""
    return run_name({key: value for key, value in settings.items() if key not in (SCHEME, SEED)})


@kind("Completion times over those of the first scheme on the same traffic", "several schemes")
def ratios(results: Results, look: Look) -> Figure | None:
    """Ratios of completion times to the first scheme's: a panel for mean and tail, a row for each scheme.

    None if there are no ratios, or more settings than colours.
    """
    base = base_scheme(results)
    rows = [row for row in ratio_rows(results) if row.ratios and row.settings.get(SCHEME) != base]
    labels = list(dict.fromkeys(str(row.settings[SCHEME]) for row in rows))
    cases = {case_of(row.settings): case_of(row.settings) for row in rows}
    if not rows or len(cases) > _MOST_CASES:
        return None
    names = list(dict.fromkeys(name for row in rows for name in row.ratios))
    with plot.style():
        height = panel_height(len(labels), len(cases)) + 0.5
        figure, axes = plot.panels(len(names), look, height=height, scaled=False)
        shown = [shortened(label, _NAME_SHARE * plot.panel_inches(axes[0])) for label in labels]
        for axis, name in zip(axes, names, strict=True):
            points = [
                (str(row.settings[SCHEME]), case_of(row.settings), _numbers(row.ratios[name]))
                for row in rows
                if name in row.ratios
            ]
            ratio_panel(axis, points, labels, cases, names=shown, line=NO_DIFFERENCE)
            axis.set_title(metric(name).title)
            axis.set_xlabel(f"ratio to {shortened(base, 2.0)}")
        plot.legend(figure, *axes)
    return figure


def _numbers(estimate: Estimate) -> Sequence[float]:
    return (estimate.value, *(estimate.ends or ()))


def swept_axis(results: Results) -> str:
    """The axis of a sweep's figure: the last that has several numbers, or else several values.

    Empty if only schemes, cases or seeds differ.
    """
    varied = [
        key for key, values in results.axes.items() if len(values) > 1 and key not in (SCHEME, CASE, SEED)
    ]
    numbers = [key for key in varied if _are_numbers(results.axes[key])]
    return next(reversed(numbers or varied), "")


@kind("Influence of what was swept", "several values of a key in a sweep")
def sensitivity(results: Results, look: Look) -> Figure | None:
    """Mean slowdown, and the ratio of mean completion times to the base, against what was swept.

    A line for each scheme, and for each combination of values on other axes, with the intervals over the
    seeds. None if nothing was swept, or if no flow finished.
    """
    key = swept_axis(results)
    groups = [group for group in groups_over_seeds(results) if MEAN in group.measured]
    if not key or not groups:
        return None
    lines: dict[str, list[Group]] = {}
    for group in groups:
        lines.setdefault(_line_name(group, key, results), []).append(group)
    first = results.axes[key][0]
    scheme = base_scheme(results)
    base = {SCHEME: scheme} if scheme else {key: first}
    with plot.style():
        figure, axes = plot.panels(2, look)
        for axis, is_ratio in zip(axes, (False, True), strict=True):
            drawn: list[float] = []
            for number, (name, of_line) in enumerate(lines.items()):
                points = [
                    (group.key[key], value)
                    for group in of_line
                    if (value := _ratio(group, groups, base) if is_ratio else _slowdown(group)) is not None
                ]
                drawn += _line(axis, points, results.axes[key], number, name)
            _swept_scale(axis, key, results.axes[key])
            to = shortened(scheme or f"{key} = {first}", 1.5)
            axis.set_ylabel(f"mean FCT, ratio to {to}" if is_ratio else metric(SLOWDOWN).titled)
            if look.is_log(drawn):
                look.scale(axis, "y", drawn)
        axes[1].axhline(1.0, color=plot.colour(-1), linewidth=1.0, label=NO_DIFFERENCE)
        plot.legend(figure, *axes)
    return figure


def _line_name(group: Group, key: str, results: Results) -> str:
    """The settings of a line: those of the axes with several values, except for the swept axis."""
    shown = {name: value for name, value in group.key.items() if name != key and len(results.axes[name]) > 1}
    return run_name(shown) or str(group.scheme) or key


def _slowdown(group: Group) -> Estimate | None:
    return group.measured[SLOWDOWN].estimate() if SLOWDOWN in group.measured else None


def _ratio(group: Group, groups: Sequence[Group], base: Mapping[str, Setting]) -> Estimate | None:
    """The ratio of mean completion times to the group that differs only in the settings `base`."""
    rival = next((each for each in groups if each.key == {**group.key, **base}), None)
    if rival is group:
        # the line of the base is that at 1
        return None if SCHEME in base else Estimate(1.0)
    if rival is None:
        return None
    return ratio(group.measured[MEAN], rival.measured[MEAN], paired_seeds(group, rival))


def _line(
    axis: Axes, points: Sequence[tuple[Setting, Estimate]], values: Sequence[Setting], number: int, name: str
) -> list[float]:
    """Draws estimates against the values of an axis: numbers with bands, others with error bars."""
    are_numbers = _are_numbers(values)
    x = [float(value) if are_numbers else float(values.index(value)) for value, _ in points]
    y, ends = [each.value for _, each in points], [each.ends for _, each in points]
    line = plot.line(number) if are_numbers else "none"
    axis.plot(x, y, color=plot.colour(number), linestyle=line, marker="o", markersize=3, label=name)
    if are_numbers:
        plot.band(axis, x, ends, number)
    else:
        for at, pair in zip(x, ends, strict=True):
            if pair is not None:
                plot.interval(axis, pair, x=at)
    return y


def _are_numbers(values: Sequence[Setting]) -> bool:
    return not any(isinstance(value, str) for value in values)


def _swept_scale(axis: Axes, key: str, values: Sequence[Setting]) -> None:
    """Labels the axis of what was swept."""
    axis.set_xlabel(key)
    if not _are_numbers(values):
        names = [shortened(str(value), 1.2) for value in values]
        axis.set_xticks(range(len(values)), names, rotation=30, ha="right")
        axis.set_xlim(-0.5, len(values) - 0.5)
    elif NATURAL.is_log(map(float, values)):
        NATURAL.scale(axis, "x", map(float, values))
