# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison: a section a case, a row a scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from msgspec import UNSET, UnsetType
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from tailrace.experiments.results.comparison import p99_ratio
from tailrace.experiments.results.metrics import Metric, added
from tailrace.experiments.results.summary import FLOWLETS_AT_LEAVES, Summary
from tailrace.experiments.results.units import UNITS

if TYPE_CHECKING:
    from tailrace.experiments.results.result import Result

NOT_OBSERVED = "-"
_MS_NS = 1e6
DOUBTFUL = "(!) not to be relied on: flows did not finish, or the machine could not keep up"
COLUMNS = (
    "FCT mean\n(ms)", "p50\n(ms)", "p99\n(ms)", "slowdown\nmean", "slowdown\np99",
    "out of\norder", "out of\norder (%)", "retrans-\nmitted", "path\nchanges", "drains", "p99\nratio",
)  # fmt: skip
"""Titles of what `figures` gives, and of the ratio."""

LOSSLESS_COLUMNS = ("PFC\npauses", "warn-\nings", "recircu-\nlations")
"""Titles of what `lossless_counts` gives; shown before the ratio where a run has PFC."""

FLOWLET_COLUMNS = ("flow-\nlets", "stretched\ngaps")
"""Titles of what `flowlet_counts` gives; shown where NICs stretch gaps in a run."""


def make_table(results: Sequence[Result], first: str) -> Table:
    """The table; the last column is each p99 over that of the scheme labelled `first` in the same case."""
    title = f"{results[0].summary.topology}   {results[0].summary.workload}" if results else None
    table = Table(
        title=title, title_style="", header_style="bold", caption=_caption(results), caption_style=""
    )
    table.add_column("case")
    table.add_column("scheme")
    more = [one for one in _MORE if one.shown(results)]
    own = own_metrics(results)
    titles = (title for one in more for title in one.titles)
    for name in (*COLUMNS[:-1], *titles, *(metric_titles(own)), COLUMNS[-1]):
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
            *(_count(value) for one in more for value in one.counts(result.summary)),
            *metric_cells(result.summary, own),
            NOT_OBSERVED if ratio is None else f"{ratio:.2f}",
        )
        previous = result.case
    return table


def own_metrics(results: Sequence[Result]) -> dict[str, Metric]:
    """The metrics from outside that these runs have, by name."""
    seen = {name for result in results for name in result.summary.metrics or ()}
    return {name: one for name, one in added().items() if name in seen}


def metric_titles(metrics: Mapping[str, Metric]) -> list[str]:
    """The columns of metrics."""
    return [one.titled.replace(" ", "\n") for one in metrics.values()]


def metric_cells(summary: Summary, metrics: Mapping[str, Metric]) -> list[str]:
    """The cells of a run in those columns."""
    seen = summary.metrics or {}
    return [
        UNITS[one.unit].text(seen[name], with_name=False) if name in seen else NOT_OBSERVED
        for name, one in metrics.items()
    ]


def _caption(results: Sequence[Result]) -> str | None:
    if not results:
        return None
    summary = results[0].summary
    scale = f", {summary.time_scale:g} times slower than stated" if summary.time_scale != 1 else ""
    doubtful = any(not result.complete or result.summary.overloaded for result in results)
    text = f"{summary.flows} flows a run, target {summary.target}{scale}, seed {summary.seed}"
    text += "".join(f"\n{line}" for line in _transports(results))
    return f"{text}\n{DOUBTFUL}" if doubtful else text


def _transports(results: Sequence[Result]) -> list[str]:
    """A line for each transport and who goes over it, where they differ."""
    found: dict[str, list[str]] = {}
    for result in results:
        name = result.summary.transport
        found.setdefault("unknown" if isinstance(name, UnsetType) else name, []).append(result.label)
    if len(found) < 2:
        return []
    most = max(found, key=lambda name: len(found[name]))
    own = [f"{name}: {', '.join(dict.fromkeys(labels))}" for name, labels in found.items() if name != most]
    return [f"transport {most}, but {'; '.join(own)}"]


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


def has_stretching(results: Sequence[Result]) -> bool:
    """Whether NICs stretched gaps in one of these runs (HF2T)."""
    return any(not isinstance(result.summary.hf2t, UnsetType) for result in results)


def flowlet_counts(summary: Summary) -> tuple[int | UnsetType, ...]:
    """Flowlets that began at switches with hosts, and gaps that NICs stretched for one to begin."""
    flowlets = UNSET if isinstance(summary.flowlets, UnsetType) else summary.flowlets[FLOWLETS_AT_LEAVES]
    return flowlets, UNSET if isinstance(summary.hf2t, UnsetType) else summary.hf2t["stretched"]


@dataclass(frozen=True, slots=True)
class _More:
    """Columns that are there for some results only."""

    titles: tuple[str, ...]
    shown: Callable[[Sequence[Result]], bool]
    counts: Callable[[Summary], tuple[int | UnsetType, ...]]


_MORE = (
    _More(LOSSLESS_COLUMNS, has_pfc, lossless_counts),
    _More(FLOWLET_COLUMNS, has_stretching, flowlet_counts),
)


def _count(value: int | UnsetType) -> str:
    return NOT_OBSERVED if isinstance(value, UnsetType) else f"{value:,}"


def markdown(table: Table) -> str:
    """The table in Markdown, without columns in which nothing was observed."""
    columns = [
        (" ".join(str(column.header).replace("-\n", "").split()), list(map(str, column.cells)))
        for column in table.columns
    ]
    seen = [(title, cells) for title, cells in columns if set(cells) != {NOT_OBSERVED}]
    lines = [[title for title, _ in seen], ["---"] * len(seen)]
    lines += [list(row) for row in zip(*(cells for _, cells in seen), strict=True)]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    notes = [line for part in (table.title, table.caption) if part for line in str(part).split("\n")]
    return text + "".join(f"\n{line}\n" for line in notes)


def show(table: Table, file: IO[str]) -> None:
    """Print the table; where its file is no terminal, as wide as it needs to be."""
    console = Console(file=file)
    if not console.is_terminal:
        console.width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.print(table)
