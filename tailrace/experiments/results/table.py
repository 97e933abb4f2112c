# SPDX-License-Identifier: Apache-2.0
"""Results as a listing: a row a run, what was measured in the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from tailrace.controller.listing.listing import Column, Listing, Row
from tailrace.controller.listing.texts import texts_of
from tailrace.experiments.results.comparison import p99_ratio
from tailrace.experiments.results.metrics import Metric, added
from tailrace.experiments.results.summary import FLOWLETS_AT_LEAVES, Summary
from tailrace.experiments.results.units import UNITS
from tailrace.p4rt.values import ABSENT, Value

if TYPE_CHECKING:
    from tailrace.experiments.results.result import Result

DOUBTFUL = "(!) not to be relied on: flows did not finish, or the machine could not keep up"
_FCT = "fct"


def _count(value: int) -> str:
    return f"{value:,}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


LOSSLESS = (
    Column("pauses", title="PFC pauses", show=_count, rank=2),
    Column("warnings", title="warnings", show=_count, rank=6),
    Column("recirculations", title="recirculations", show=_count, rank=7),
)
"""Where a run has PFC: pauses that were asked for, warnings that switches gave, and recirculations."""

FLOWLETS = (
    Column("flowlets", title="flowlets", show=_count, rank=3),
    Column("stretched", title="stretched gaps", show=_count, rank=4),
)
"""Where NICs stretch gaps: flowlets that began at switches with hosts, and gaps that were stretched."""

_GBPS = UNITS["Gb/s"]

SAMPLED = (
    Column("throughput_bps", title=f"throughput ({_GBPS.name})", show=_GBPS.plain, rank=9),
    Column("utilisation", title="links used (%)", show=_percent, rank=9),
    Column("imbalance", title="imbalance", show=_two, rank=8),
    Column("queue_p99_bytes", title="queue p99 (B)", show=_count, rank=9),
    Column("paused_share", title="time paused (%)", show=_percent, rank=9),
)
"""Where samples were taken: means over time, and the 99th percentile of queues (sampled.py)."""

COLUMNS = (
    Column("case", key=True, grouped=True),
    Column("scheme", key=True),
    Column("fct_mean_ns", is_time=True, unit_of=_FCT, title="FCT mean"),
    Column("fct_p50_ns", is_time=True, unit_of=_FCT, title="FCT p50", rank=5),
    Column("fct_p99_ns", is_time=True, unit_of=_FCT, title="FCT p99"),
    Column("slowdown_p99", title="slowdown p99", show=_two, rank=1),
    Column("slowdown_mean", title="slowdown mean", show=_two, rank=6),
    Column("out_of_order", title="out of order", show=_count, rank=7),
    Column("out_of_order_share", title="out of order (%)", show=_percent),
    Column("out_of_order_raw_share", title="out of order, raw (%)", show=_percent, rank=5),
    Column("dropped_data", title="lost", show=_count, rank=8),
    Column("timeouts", title="timeouts", show=_count, rank=4),
    Column("retransmitted", title="sent again", show=_count, rank=2),
    Column("path_changes", title="path changes", show=_count, rank=3),
    Column("drains", title="drains", show=_count, rank=4),
    *LOSSLESS,
    Column("pause_mean_ns", is_time=True, title="mean pause", rank=8),
    *FLOWLETS,
    *SAMPLED,
    Column("fct_floor_ns", is_time=True, unit_of=_FCT, title="FCT floor", rank=8),
    Column("p99_ratio", title="p99 ratio", show=_two),
)
"""All that is shown of runs; of these those in which something was observed. Shares are from 0 to 1."""


def make_table(results: Sequence[Result], first: str | None = None) -> Listing:
    """A row a run; with `first`, the last column is each p99 over that of the scheme so labelled in the same
    case.
    """
    own = own_metrics(results)
    rows = [
        {
            "case": result.case,
            "scheme": result.label + flag(result),
            **measured(result.summary, own),
            "p99_ratio": None if first is None else p99_ratio(result, results, first),
        }
        for result in results
    ]
    stretching = any(not isinstance(result.summary.hf2t, UnsetType) for result in results)
    shown = [column for column in COLUMNS[:-1] if stretching or column not in FLOWLETS]
    columns = (*shown, *_metric_columns(own), replace(COLUMNS[-1], title=f"p99 /{first}"))
    title = f"{results[0].summary.topology}   {results[0].summary.workload}" if results else ""
    return Listing("results", columns, tuple(rows), title=title, caption=tuple(_caption(results)))


def make_sweep_table(found: Sequence[tuple[dict[str, str], Result]]) -> Listing:
    """A row a point of a sweep: the values of its axes by key, and what was measured."""
    own = own_metrics([result for _, result in found])
    axes = [Column(key, key=True) for key in found[0][0]] if found else []
    columns = (*axes, *(column for column in COLUMNS[2:-1] if column not in FLOWLETS))
    rows = []
    for settings, result in found:
        row: dict[str, Value] = {**measured(result.summary, own), **settings}
        row[axes[-1].name] = f"{row[axes[-1].name]}{flag(result)}"
        rows.append(row)
    caption = (DOUBTFUL,) if any(flag(result) for _, result in found) else ()
    return Listing("results", (*columns, *_metric_columns(own)), tuple(rows), caption=caption)


def flag(result: Result) -> str:
    """What is put behind the name of a run that is not to be relied on."""
    return "" if result.complete and not result.summary.overloaded else " (!)"


def own_metrics(results: Sequence[Result]) -> dict[str, Metric]:
    """The metrics from outside that these runs have, by name."""
    seen = {name for result in results for name in result.summary.metrics or ()}
    return {name: one for name, one in added().items() if name in seen}


def _metric_columns(metrics: dict[str, Metric]) -> list[Column]:
    return [
        Column(name, title=one.titled, show=UNITS[one.unit].plain, rank=1) for name, one in metrics.items()
    ]


def measured(summary: Summary, metrics: dict[str, Metric] | None = None) -> Row:
    """What was measured in a run, by the names of COLUMNS and of metrics; None what was not observed."""
    times, factors, packets = summary.fct_ns, summary.slowdown, summary.packets
    stretched = None if isinstance(summary.hf2t, UnsetType) else summary.hf2t["stretched"]
    flowlets = None if isinstance(summary.flowlets, UnsetType) else summary.flowlets[FLOWLETS_AT_LEAVES]
    seen: dict[str, object] = {
        **{f"fct_{name}_ns": getattr(times, name, None) for name in ("mean", "p50", "p99")},
        **{f"slowdown_{name}": getattr(factors, name, None) for name in ("mean", "p99")},
        "out_of_order": packets.out_of_order,
        "out_of_order_share": packets.out_of_order_fraction,
        "out_of_order_raw_share": packets.out_of_order_raw_fraction,
        "dropped_data": packets.dropped_data,
        "timeouts": summary.timeouts,
        "retransmitted": packets.retransmitted,
        "path_changes": summary.path_changes,
        "drains": summary.drains,
        **dict(zip((column.name for column in LOSSLESS), lossless_counts(summary), strict=True)),
        "pause_mean_ns": None if isinstance(summary.pfc, UnsetType) else summary.pfc.get("mean_pause_ns"),
        **_of_samples(summary),
        "fct_floor_ns": None if isinstance(summary.floor, UnsetType) else summary.floor.fct_mean_ns,
        "flowlets": flowlets,
        "stretched": stretched,
        **{name: (summary.metrics or {}).get(name) for name in metrics or ()},
    }
    return {name: value if isinstance(value, (int, float)) else None for name, value in seen.items()}


def _of_samples(summary: Summary) -> dict[str, object]:
    """The values of SAMPLED."""
    seen = summary.sampled
    if isinstance(seen, UnsetType):
        return {column.name: None for column in SAMPLED}
    uneven = None if isinstance(seen.imbalance, UnsetType) else seen.imbalance.mean
    values = (
        seen.throughput_bps.mean,
        seen.utilisation.mean,
        uneven,
        seen.queue_bytes.p99,
        seen.paused_share,
    )
    return dict(zip((column.name for column in SAMPLED), values, strict=True))


def _caption(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    summary = results[0].summary
    scale = f", {summary.time_scale:g} times slower than stated" if summary.time_scale != 1 else ""
    doubtful = [DOUBTFUL] if any(map(flag, results)) else []
    about = f"{summary.flows} flows a run, target {summary.target}{scale}, seed {summary.seed}"
    return [about, *_transports(results), *doubtful]


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


def has_pfc(results: Sequence[Result]) -> bool:
    """Whether one of these runs was in a lossless network."""
    return any(not isinstance(result.summary.pfc, UnsetType) for result in results)


def lossless_counts(summary: Summary) -> tuple[int | UnsetType, ...]:
    """The values of LOSSLESS."""
    pauses = UNSET if isinstance(summary.pfc, UnsetType) else int(summary.pfc["pauses"])
    warnings = UNSET if isinstance(summary.rlb, UnsetType) else summary.rlb["warnings_sent"]
    rounds = summary.recirculations
    return pauses, warnings, UNSET if isinstance(rounds, UnsetType) else rounds.total


def markdown(listing: Listing) -> str:
    """The listing as a table in Markdown, its title and caption below."""
    columns = [one for one in texts_of(listing) if set(one.cells) != {ABSENT}]
    lines = [[one.title for one in columns], ["---"] * len(columns)]
    lines += [list(row) for row in zip(*(one.cells for one in columns), strict=True)]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + "".join(f"\n{line}\n" for line in (listing.title, *listing.caption) if line)
