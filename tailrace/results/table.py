# SPDX-License-Identifier: Apache-2.0
"""Results as a table: columns for the axes (parameters in which the runs differ) and for metrics, one row per
group of runs that differ only in the seed.

With several seeds a row has means with their intervals, and ratios are paired by seed (estimates.py). A cell
is highlighted if no scheme with the same values on the other axes is significantly better. The axis *case* is
the name of a run's faults. The *rank* of a column is its place in the order in which a narrow terminal drops
columns: those of the highest rank first. A Column with `key` identifies a row; with `grouped` it leaves a
cell blank that equals the cell above; with `data` it is in data formats only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import UnsetType

from tailrace.experiments.plan.axes import CASE, SCHEME
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.experiments.workloads.classes import CLASSES
from tailrace.p4rt.values import Value
from tailrace.results.estimates import (
    CONFIDENCE,
    RATIOS,
    Group,
    SummaryRow,
    fewest_flows,
    summarise,
    tail_metric,
    why_none,
)
from tailrace.results.metrics import BUILT_IN, CLASS, METRICS, metric, metrics
from tailrace.results.queues import queue_lines
from tailrace.results.statistics import TAILS, tail_note, tail_percent
from tailrace.results.steady import steady_lines
from tailrace.results.summary import Summary
from tailrace.results.units import UNITS, ratio_text
from tailrace.spec.units import format_bytes
from tailrace.tables.listing import Column, Listing, Row

if TYPE_CHECKING:
    from tailrace.results.result import Result

DOUBTFUL = "(!) not to be relied on: flows did not finish, or the machine could not keep up"

SHOWN = {
    "fct_mean": 0,
    "fct_p50": 5,
    "fct_p99": 2,
    "slowdown_p99": 2,
    "slowdown_mean": 0,
    "out_of_order_share": 0,
    "out_of_order_raw_share": 5,
    "lost": 8,
    "marked_share": 3,
    "ping_rtt_mean": 0,
    "ping_rtt_p99": 2,
    "ping_lost_share": 0,
    "timeouts": 4,
    "retransmitted": 3,
    "path_changes": 3,
    "drains": 4,
    "pauses": 2,
    "warnings": 6,
    "recirculations": 7,
    "pause_mean": 8,
    "flowlets": 3,
    "stretched": 4,
    "throughput": 9,
    "utilisation": 9,
    "imbalance": 8,
    "queue_p99": 9,
    "paused_share": 9,
    "fct_fair": 8,
}
"""Metrics that the printed table shows if they were observed, with the rank of the column. Other metrics are
in data formats only, or shown on request. With few flows p95 or the maximum replaces p99. Metrics of plug-ins
are shown, too.
"""

_RATIO_RANKS = dict(zip(RATIOS, (0, 2), strict=True))

ABOUT = {
    "flowcut": ("drains",),
    "pfc": ("pauses",),
    "rlb": ("pauses", "warnings", "recirculations"),
    "hf2t": ("flowlets", "stretched"),
}
"""The metrics that characterise a scheme, by the scheme's key in the summary. A narrow terminal drops these
columns last if at least 1 / ABOUT_SHARE of the runs have the key.
"""

ABOUT_SHARE = 3

_FCT = "fct"
LOW, HIGH, RATIO = "_low", "_high", "_ratio"
"""Endings of the names of columns: ends of the interval of a value, ratio to another scheme."""

_BEST = "best"
_FLOWLETS = ("flowlets", "stretched")
"""Metrics that are shown only if NICs stretch gaps."""


def metric_column(name: str, rank: int = 0, *, data: bool = False) -> Column:
    """The column of a metric. All completion times of flows share one unit, which the table chooses."""
    entry = metric(name)
    if entry.unit == "us":
        shared_unit = _FCT if name.startswith("fct_") else ""
        return Column(name, is_time=True, unit_of=shared_unit, title=entry.title, rank=rank, data=data)
    return Column(name, title=entry.titled, show=UNITS[entry.unit].without_name, rank=rank, data=data)


COLUMNS = (Column(CASE, key=True), Column(SCHEME, key=True), *map(metric_column, SHOWN))
"""The columns of the table of a comparison."""


def make_table(
    groups: Sequence[Group], first: str | None = None, rows: Sequence[SummaryRow] | None = None
) -> Listing:
    """The table of groups, one row each: its values on the axes, its metrics and, with `first`, their ratios
    to the scheme of that name.

    `rows` is the result of `summarise` for these groups, if the caller has it already.
    """
    rows = summarise(groups, first) if rows is None else rows
    percent = tail_percent(fewest_flows(groups))
    axes = tuple(
        # a narrow terminal hides the case if all rows have the same
        Column(name, key=True, grouped=name == CASE, rank=2 if name == CASE else 0)
        for name in (groups[0].key if groups else (CASE, SCHEME))
    )
    cells = [_axis_cells(group) | _cells(row) for group, row in zip(groups, rows, strict=True)]
    measured = dict.fromkeys(name for row in rows for name in row.metrics)
    columns = (
        *axes,
        *_metric_columns(tuple(measured), [result for group in groups for result in group.results], percent),
        *(_ratio_columns(first, percent) if first is not None else ()),
    )
    return Listing(
        "results",
        with_ends(columns, cells),
        tuple(cells),
        title=_title(groups),
        caption=tuple(_caption(groups, columns)),
        best=_BEST,
    )


def possible_columns(axes: Sequence[str] = (CASE, SCHEME)) -> tuple[Column, ...]:
    """Every column that a table of runs with these axes can have, whatever their results are."""
    of_classes = [
        f"{name}{CLASS}{each}"
        for name, definition in metrics().items()
        if definition.by_class
        for each in CLASSES
    ]
    columns = [*(Column(name, key=True) for name in axes), *map(metric_column, (*METRICS, *of_classes))]
    for percent in TAILS:
        columns += _ratio_columns("", percent)
    ends = [Column(f"{column.name}{end}") for column in columns for end in (LOW, HIGH)]
    return tuple({column.name: column for column in (*columns, *ends, Column(_BEST))}.values())


def _axis_cells(group: Group) -> dict[str, Value]:
    """The values of the axes, with a mark after the last one if a run is not to be relied on."""
    cells: dict[str, Value] = dict(group.key)
    if mark := max(map(flag, group.results)):
        last = list(cells)[-1]
        cells[last] = f"{cells[last]}{mark}"
    return cells


def _cells(row: SummaryRow) -> dict[str, Value]:
    """Values and ends of intervals by column, and the metrics in which the group is among the best."""
    cells: dict[str, Value] = {}
    ratios = {f"{name}{RATIO}": value for name, value in row.ratios.items()}
    for name, value in (row.metrics | ratios).items():
        cells[name] = value.value
        if value.ends is not None:
            cells[f"{name}{LOW}"], cells[f"{name}{HIGH}"] = value.ends
    if row.best:
        cells[_BEST] = row.best
    return cells


def _metric_columns(names: Sequence[str], results: Sequence[Result], percent: int) -> list[Column]:
    """The columns of observed metrics; those that the printed table shows come first."""
    stretching = any(not isinstance(result.summary.hf2t, UnsetType) for result in results)
    ranks = {tail_metric(name, percent): rank for name, rank in SHOWN.items()}
    ranks |= {name: 1 for name in names if name in METRICS and name not in BUILT_IN}
    characteristic = _characteristic(results)
    shown = [
        metric_column(name, min(rank, 1) if name in characteristic else rank)
        for name, rank in ranks.items()
        if name in names and (stretching or name not in _FLOWLETS)
    ]
    rest = [name for name in names if name not in {column.name for column in shown}]
    return [*shown, *(metric_column(name, data=True) for name in rest)]


def _characteristic(results: Sequence[Result]) -> set[str]:
    """The metrics of ABOUT that characterise these runs."""
    characteristic: set[str] = set()
    for key, names in ABOUT.items():
        having = sum(not isinstance(getattr(result.summary, key), UnsetType) for result in results)
        if having and ABOUT_SHARE * having >= len(results):
            characteristic |= set(names)
    return characteristic


def _ratio_columns(first: str, percent: int) -> list[Column]:
    names = {tail_metric(name, percent): rank for name, rank in _RATIO_RANKS.items()}
    return [
        Column(f"{name}{RATIO}", title=f"{name.partition('_')[2]} /{first}", show=ratio_text, rank=rank)
        for name, rank in names.items()
    ]


def with_interval(column: Column) -> Column:
    """The column, whose values may have intervals."""
    return replace(column, ends=(f"{column.name}{LOW}", f"{column.name}{HIGH}"))


def with_ends(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns; after each one, the columns of its interval's ends if a row has an interval."""
    seen = {name for row in rows for name in row}
    extended: list[Column] = []
    for column in map(with_interval, columns):
        extended += [column, *(Column(name, data=True) for name in column.ends if name in seen)]
    return (*extended, Column(_BEST, data=True)) if _BEST in seen else tuple(extended)


def flag(result: Result) -> str:
    """The mark after the name of a run that is not to be relied on; empty for other runs."""
    return "" if result.complete and not result.summary.overloaded else " (!)"


def _title(groups: Sequence[Group]) -> str:
    """Network and traffic if they are the same in all runs; else empty."""
    summaries = [result.summary for group in groups for result in group.results]
    titles = {f"{summary.topology}   {summary.workload}" for summary in summaries}
    return titles.pop() if len(titles) == 1 else ""


def _caption(groups: Sequence[Group], columns: Sequence[Column]) -> list[str]:
    results = [result for group in groups for result in group.results]
    if not results:
        return []
    doubts = [DOUBTFUL] if any(map(flag, results)) else []
    return [
        *_about_runs(results),
        *_about_seeds(groups),
        *_transports(results),
        *queue_lines(results),
        *_measured_flows(results, columns),
        *_not_applied(results),
        *_of_user(results),
        *doubts,
    ]


def _measured_flows(results: Sequence[Result], columns: Sequence[Column]) -> list[str]:
    """Lines on measuring intervals, and the columns in which flows outside of them count; empty without."""
    lines = steady_lines(results)
    shown = [column.name for column in columns if column.name in metrics() and not column.data]
    of_all = ", ".join(metric(name).title for name in shown if metric(name).of_all)
    return [*lines[:1], f"all flows, not only these, count in: {of_all}", *lines[1:]] if lines else []


def _about_runs(results: Sequence[Result]) -> list[str]:
    """A line with flows, target (the software of the switches), time scale, and all seeds; no line if the
    first three differ between the runs.
    """
    seeds = seeds_text(list(dict.fromkeys(result.summary.seed for result in results)))
    lines = {
        f"{summary.flows} flows a run, target {summary.target}"
        + (f", {summary.time_scale:g} times slower than stated" if summary.time_scale != 1 else "")
        for summary in (result.summary for result in results)
    }
    return [f"{lines.pop()}, seed {seeds}"] if len(lines) == 1 else []


def _about_seeds(groups: Sequence[Group]) -> list[str]:
    """Lines that explain means, intervals and the tail."""
    lines = []
    if several := [group for group in groups if len(group.results) > 1]:
        why = why_none(min(len(group.results) for group in several))
        means = f"means over the seeds {seeds_text(max((group.seeds for group in several), key=len))}"
        lines = [means, why] if why else [f"{means} with their {100 * CONFIDENCE:.0f} % intervals"]
    flows = fewest_flows(groups)
    note = tail_note(flows) if flows else ""
    return [*lines, note] if note else lines


def _not_applied(results: Sequence[Result]) -> list[str]:
    """A line for each setting that a target did not apply as requested, with the runs if not all have it."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        for text in result.summary.not_applied or ():
            groups.setdefault(f"not as asked on {result.summary.target}, {text}", []).append(result)
    lines = []
    for text, concerned in groups.items():
        names = dict.fromkeys(f"{result.case}, {result.label}" for result in concerned)
        lines.append(text if len(concerned) == len(results) else f"{text} ({'; '.join(names)})")
    return lines


def _of_user(results: Sequence[Result]) -> list[str]:
    """A line if runs of a user's program lack metrics, and for each change by hand during a run."""
    foreign = any(result.summary.queues and result.summary.queues.program_marks for result in results)
    why = (
        "no slowdown and no fair sharing for program: both assume shortest paths, its entries may use others"
    )
    changes = [text for result in results for text in result.summary.changes or ()]
    return [why] * foreign + [
        f"changed by hand, which the command does not repeat: {each}" for each in changes
    ]


def _transports(results: Sequence[Result]) -> list[str]:
    """A line with the transport and the window of the runs. If they differ, the line has the most common ones
    first, and then the schemes that use others.
    """
    labels: dict[str, list[str]] = {}
    for result in results:
        labels.setdefault(_transport(result.summary), []).append(result.label)
    most = max(labels, key=lambda text: len(labels[text]))
    rest = [f"{text}: {', '.join(dict.fromkeys(names))}" for text, names in labels.items() if text != most]
    return [f"transport {most}, but {'; '.join(rest)}" if rest else f"transport {most}"]


def _transport(summary: Summary) -> str:
    """The transport of a run and the window of a flow."""
    name, window = summary.transport, summary.window_bytes
    if isinstance(name, UnsetType):
        return "unknown"
    size = "no window" if isinstance(window, UnsetType) else f"window {format_bytes(window)}"
    return f"{name} ({size})"
