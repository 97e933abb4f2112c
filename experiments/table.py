# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison: a section a case, a row a scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from msgspec import UNSET, UnsetType
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from experiments.result import Result, p99_ratio
from experiments.summary import Summary
from experiments.sweep import Point

NOT_OBSERVED = "-"
_MS_NS = 1e6
_DOUBTFUL = "(!) not to be relied on: flows did not finish, or the machine could not keep up"
COLUMNS = (
    "FCT mean\n(ms)", "p50\n(ms)", "p99\n(ms)", "slowdown\nmean", "slowdown\np99",
    "out of\norder", "out of\norder (%)", "retrans-\nmitted", "path\nchanges", "drains", "p99\nratio",
)  # fmt: skip
"""Titles of what `figures` gives, and of the ratio."""

LOSSLESS_COLUMNS = ("PFC\npauses", "warn-\nings", "recircu-\nlations")
"""Titles of what `lossless_counts` gives; shown before the ratio where a run has PFC."""


def make_table(results: Sequence[Result], first: str) -> Table:
    """The table; the last column is each p99 over that of the scheme labelled `first` in the same case."""
    title = f"{results[0].summary.topology}   {results[0].summary.workload}" if results else None
    table = Table(
        title=title, title_style="", header_style="bold", caption=_caption(results), caption_style=""
    )
    table.add_column("case")
    table.add_column("scheme")
    lossless = has_pfc(results)
    for name in (*COLUMNS[:-1], *(LOSSLESS_COLUMNS if lossless else ()), COLUMNS[-1]):
        table.add_column(name, justify="right", no_wrap=True)
    previous = ""
    for result in results:
        if previous and result.case != previous:
            table.add_section()
        ratio = p99_ratio(result, results, first)
        flag = "" if result.complete and not result.summary.overloaded else " (!)"
        table.add_row(
            result.case if result.case != previous else "",
            result.label + flag,
            *figures(result.summary),
            *(map(_count, lossless_counts(result.summary)) if lossless else ()),
            NOT_OBSERVED if ratio is None else f"{ratio:.2f}",
        )
        previous = result.case
    return table


def make_sweep_table(found: Sequence[tuple[Point, Result]]) -> Table:
    """A row a point of a sweep: the values of its axes, and what was measured."""
    table = Table(header_style="bold", caption_style="")
    for key in found[0][0].settings:
        table.add_column(key)
    for name in COLUMNS[:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    for point, result in found:
        values = list(point.settings.values())
        if not result.complete or result.summary.overloaded:
            values[-1] += " (!)"
            table.caption = _DOUBTFUL
        table.add_row(*values, *figures(result.summary))
    return table


def _caption(results: Sequence[Result]) -> str | None:
    if not results:
        return None
    summary = results[0].summary
    scale = f", {summary.time_scale:g} times slower than stated" if summary.time_scale != 1 else ""
    doubtful = any(not result.complete or result.summary.overloaded for result in results)
    text = f"{summary.flows} flows a run, target {summary.target}{scale}, seed {summary.seed}"
    return f"{text}\n{_DOUBTFUL}" if doubtful else text


def figures(summary: Summary) -> list[str]:
    """The cells between the scheme and the ratio."""
    times, factors, packets = summary.fct_ns, summary.slowdown, summary.packets
    cells = [NOT_OBSERVED] * 3
    if not isinstance(times, UnsetType):
        cells = [f"{value / _MS_NS:.3f}" for value in (times.mean, times.p50, times.p99)]
    if isinstance(factors, UnsetType):
        cells += [NOT_OBSERVED] * 2
    else:
        cells += [f"{factors.mean:.2f}", f"{factors.p99:.2f}"]
    share = packets.out_of_order_fraction
    cells.append(_count(packets.out_of_order))
    cells.append(NOT_OBSERVED if isinstance(share, UnsetType) else f"{100 * share:.2f}")
    return [*cells, *map(_count, (packets.retransmitted, summary.path_changes, summary.drains))]


def has_pfc(results: Sequence[Result]) -> bool:
    """Whether one of these runs was in a lossless network."""
    return any(not isinstance(result.summary.pfc, UnsetType) for result in results)


def lossless_counts(summary: Summary) -> tuple[int | UnsetType, ...]:
    """Pauses that were asked for, warnings of them that switches gave, and recirculations."""
    pauses = UNSET if isinstance(summary.pfc, UnsetType) else int(summary.pfc["pauses"])
    warnings = UNSET if isinstance(summary.rlb, UnsetType) else summary.rlb["warnings_sent"]
    rounds = summary.recirculations
    return pauses, warnings, UNSET if isinstance(rounds, UnsetType) else rounds.total


def _count(value: int | UnsetType) -> str:
    return NOT_OBSERVED if isinstance(value, UnsetType) else f"{value:,}"


def show(table: Table, file: IO[str]) -> None:
    """Print the table; where its file is no terminal, as wide as it needs to be."""
    console = Console(file=file)
    if not console.is_terminal:
        console.width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.print(table)
