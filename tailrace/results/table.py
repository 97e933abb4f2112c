# SPDX-License-Identifier: Apache-2.0
"""Results as a listing: a row a scheme and case, what was measured in the columns.

Over several seeds a row has means, with their intervals (intervals.py); ratios are of the same seeds. In
columns of what had better be little all cells stand out that are not worse than the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from tailrace.experiments.plan.queues import queue_lines
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.p4rt.values import ABSENT, Value
from tailrace.results.intervals import CONFIDENCE, Estimate, why_none
from tailrace.results.metrics import Metric, added
from tailrace.results.over_seeds import (
    Group,
    Measure,
    flows_of,
    groups,
    is_worse,
    places_of,
    ratio,
)
from tailrace.results.statistics import TAILS, tail_name, tail_note, tail_percent
from tailrace.results.summary import FLOWLETS_AT_LEAVES, Summary
from tailrace.results.units import UNITS
from tailrace.spec.text import printable
from tailrace.tables.cell_text import texts_of
from tailrace.tables.listing import Column, Listing, Row

if TYPE_CHECKING:
    from tailrace.results.result import Result

DOUBTFUL = "(!) not to be relied on: flows did not finish, or the machine could not keep up"
_FCT = "fct"


def _count(value: float) -> str:
    """A number of things, or the mean of such numbers over seeds."""
    return f"{round(value):,}" if value >= 100 or value == round(value) else f"{value:.3g}"


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
    Column("fct_p99_ns", is_time=True, unit_of=_FCT, title="FCT p99", rank=2),
    Column("slowdown_p99", title="slowdown p99", show=_two, rank=2),
    Column("slowdown_mean", title="slowdown mean", show=_two),
    Column("out_of_order", title="out of order", show=_count, rank=7),
    Column("out_of_order_share", title="out of order (%)", show=_percent),
    Column("out_of_order_raw_share", title="out of order, raw (%)", show=_percent, rank=5),
    Column("dropped_data", title="lost", show=_count, rank=8),
    Column("timeouts", title="timeouts", show=_count, rank=4),
    Column("retransmitted", title="sent again", show=_count, rank=3),
    Column("path_changes", title="path changes", show=_count, rank=3),
    Column("drains", title="drains", show=_count, rank=4),
    *LOSSLESS,
    Column("pause_mean_ns", is_time=True, title="mean pause", rank=8),
    *FLOWLETS,
    *SAMPLED,
    Column("fct_fair_ns", is_time=True, unit_of=_FCT, title="FCT fair", rank=8),
)
"""All that is shown of runs; of these those in which something was observed. Shares are from 0 to 1.

Where there are too few flows for a p99, columns with that word have another (`tail_percent`)."""

RATIOS = {"fct_mean_ns": 1, "fct_p99_ns": 2}
"""What is compared with the first scheme, and the rank of its column."""

ABOUT = {
    "flowcut": ("drains",),
    "pfc": ("pauses",),
    "rlb": ("pauses", "warnings", "recirculations"),
    "hf2t": ("flowlets", "stretched"),
}
"""The columns that characterise a scheme, by the key of its summary. A narrow terminal drops them last where
at least one of ABOUT_SHARE runs has the key.
"""

ABOUT_SHARE = 3

_LESS_IS_BETTER = ("fct_", "slowdown_", "out_of_order", "retransmitted", "pauses")
_LOW, _HIGH, _RATIO = "_low", "_high", "_ratio"
_BEST = "best"


@dataclass(frozen=True, slots=True)
class Told:
    """A group of runs, and what is told of it.

    flows: that finished and count, over all seeds
    measured: by the names of columns
    ratios: by the names of what is compared, over the first scheme of its case
    best: the columns in which it is not worse than the best of its case
    """

    group: Group
    flows: int
    measured: dict[str, Estimate]
    ratios: dict[str, Estimate]
    best: tuple[str, ...]


def tell(found: Sequence[Group], first: str | None = None) -> list[Told]:
    """What is told of groups of runs; ratios are against the group labelled `first` of the same case."""
    percent = tail_percent(flows_of(found))
    own = own_metrics([result for group in found for result in group.results])
    known = [_measures(group, percent, own) for group in found]
    told = []
    for group, measures in zip(found, known, strict=True):
        case = [(other, seen) for other, seen in zip(found, known, strict=True) if other.case == group.case]
        base = next(((other, seen) for other, seen in case if other.label == first), None)
        ratios = {} if base is None else _ratios(group, measures, *base, percent)
        estimates = {name: measure.estimate() for name, measure in measures.items()}
        best = _best(group, measures, case)
        told.append(Told(group, group.flows, estimates, ratios, best))
    return told


def _measures(group: Group, percent: int, own: Mapping[str, Metric]) -> dict[str, Measure]:
    """What was measured in every run of a group, by the names of columns."""
    found = {
        **{f"fct_{_word(each)}_ns": group.percentile(lambda row: row.fct_ns, each) for each in (50, percent)},
        f"slowdown_{_word(percent)}": group.percentile(lambda row: row.slowdown, percent),
    }
    # what percentiles of single runs say is said of all of them together
    rows = [measured(result.summary, own) for result in group.results]
    names = [name for name in rows[0] if "_p99" not in name and name not in found] if rows else []
    for name in names:
        values = [value for row in rows if isinstance(value := row[name], (int, float))]
        found[name] = Measure(tuple((value,) for value in values)) if len(values) == len(rows) else None
    return {name: measure for name, measure in found.items() if measure is not None}


def _word(percent: int) -> str:
    return "p50" if percent == 50 else tail_name(percent)


def _of_tail(name: str, percent: int) -> str:
    """The name or title of what is measured of the tail, which is not always a p99."""
    return name.replace("p99", tail_name(percent))


def _ratios(
    group: Group, measures: Mapping[str, Measure], base: Group, of_base: Mapping[str, Measure], percent: int
) -> dict[str, Estimate]:
    # the slowest flows are those that did not finish, so the times of the others would flatter a run
    if not (group.complete and base.complete):
        return {}
    places = places_of(group, base)
    names = [_of_tail(name, percent) for name in RATIOS]
    found = {name: ratio(measures.get(name), of_base.get(name), places) for name in names}
    return {name: one if group is not base else Estimate(1.0) for name, one in found.items() if one}


def _best(
    group: Group, measures: Mapping[str, Measure], case: Sequence[tuple[Group, Mapping[str, Measure]]]
) -> tuple[str, ...]:
    """The columns in which no run of the case is better beyond the interval; none where nobody can tell."""
    whole = [(other, seen) for other, seen in case if other.complete and not why_none(len(other.results))]
    if not any(other is group for other, _ in whole) or len(whole) < 2:
        return ()
    names = [name for name in measures if name.startswith(_LESS_IS_BETTER)]
    found = []
    for name in names:
        least, seen = min(
            ((other, seen) for other, seen in whole if name in seen), key=lambda one: one[1][name].value
        )
        if least is group or not is_worse(measures[name], seen[name], places_of(group, least)):
            found.append(name)
    return tuple(found)


def make_table(
    results: Sequence[Result], first: str | None = None, told: Sequence[Told] | None = None
) -> Listing:
    """A row a scheme and case; with `first`, the last columns are the mean FCT and that of the tail over
    those of the scheme so labelled in the same case.

    `told` is what `tell` has said of them, where it was asked before.
    """
    found = groups(results)
    told = tell(found, first) if told is None else told
    rows = [
        {"case": one.group.case, "scheme": one.group.label + _flags(one.group), **_cells(one)} for one in told
    ]
    percent = tail_percent(flows_of(found))
    columns = (*COLUMNS[:2], *_measured_columns(results, percent), *_ratio_columns(first, percent))
    title = f"{results[0].summary.topology}   {results[0].summary.workload}" if results else ""
    caption = _caption(results, found)
    return Listing(
        "results", _with_ends(columns, rows), tuple(rows), title=title, caption=tuple(caption), best=_BEST
    )


def make_sweep_table(found: Sequence[tuple[dict[str, str], Result]], *, over_seeds: bool = False) -> Listing:
    """A row a point of a sweep: the values of its axes by key, and what was measured.

    With `over_seeds` the last axis is the seed, and a row is about all of them.
    """
    points: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for settings, result in found:
        point = tuple(settings.items())[: -1 if over_seeds else None]
        points.setdefault(point, []).append(result)
    made = [
        Group("", ",".join(f"{key}={value}" for key, value in point), tuple(own))
        for point, own in points.items()
    ]
    axes = [Column(key, key=True) for key, _ in next(iter(points), ())]
    rows = []
    for point, one in zip(points, tell(made), strict=True):
        row: dict[str, Value] = {**_cells(one), **dict(point)}
        row[axes[-1].name] = f"{row[axes[-1].name]}{_flags(one.group)}"
        rows.append(row)
    results = [replace(result, label=group.label) for group in made for result in group.results]
    columns = (*axes, *_measured_columns(results, tail_percent(flows_of(made)), flowlets=False))
    return Listing(
        "results",
        _with_ends(columns, rows),
        tuple(rows),
        caption=(*_about_seeds(made), *queue_lines(results), *_not_applied(results), *_doubts(made)),
        best=_BEST,
    )


def possible_columns(axes: Sequence[str] = ()) -> tuple[Column, ...]:
    """Every column that a table of runs, or of a sweep with some axes, can have, whatever comes of them."""
    keys = [Column(name, key=True) for name in axes] or COLUMNS[:2]
    found = [*keys, *FLOWLETS, *_metric_columns(added()), Column(_BEST)]
    for percent in TAILS:
        found += [*_measured_columns([], percent), *_ratio_columns("", percent)]
    ends = [Column(f"{column.name}{end}") for column in found for end in (_LOW, _HIGH)]
    return tuple({column.name: column for column in (*found, *ends)}.values())


def _cells(told: Told) -> dict[str, Value]:
    """A row: values by the names of columns, the ends of intervals, and where it is among the best."""
    row: dict[str, Value] = {}
    for name, one in (
        *told.measured.items(),
        *((_ratio_name(name), one) for name, one in told.ratios.items()),
    ):
        row[name] = one.value
        if one.ends is not None:
            row[f"{name}{_LOW}"], row[f"{name}{_HIGH}"] = one.ends
    if told.best:
        row[_BEST] = told.best
    return row


def _measured_columns(results: Sequence[Result], percent: int, *, flowlets: bool = True) -> list[Column]:
    stretching = flowlets and any(not isinstance(result.summary.hf2t, UnsetType) for result in results)
    about = _about(results)
    found = [
        replace(
            column,
            name=_of_tail(column.name, percent),
            title=_of_tail(column.title, percent),
            rank=min(column.rank, 1) if column.name in about else column.rank,
        )
        for column in COLUMNS[2:]
        if stretching or column not in FLOWLETS
    ]
    return [*found, *_metric_columns(own_metrics(results))]


def _about(results: Sequence[Result]) -> set[str]:
    """The names of columns that these runs are about."""
    found: set[str] = set()
    for key, names in ABOUT.items():
        having = sum(not isinstance(getattr(result.summary, key), UnsetType) for result in results)
        if having and ABOUT_SHARE * having >= len(results):
            found |= set(names)
    return found


def _ratio_columns(first: str | None, percent: int) -> list[Column]:
    if first is None:
        return []
    return [
        Column(_ratio_name(name), title=f"{_word_of(name)} /{first}", show=_two, even=1.0, rank=rank)
        for name, rank in ((_of_tail(name, percent), rank) for name, rank in RATIOS.items())
    ]


def _word_of(name: str) -> str:
    """What of the FCT a column has: mean, p99."""
    return name.split("_")[1]


def _ratio_name(name: str) -> str:
    return f"{_word_of(name)}{_RATIO}"


def _with_ends(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns, each followed by those of its interval where rows have one."""
    seen = {name for row in rows for name in row}
    found = []
    for column in columns:
        ends = (f"{column.name}{_LOW}", f"{column.name}{_HIGH}")
        if ends[0] in seen:
            found += [replace(column, ends=ends), *(Column(name, data=True) for name in ends)]
        else:
            found.append(column)
    return (*found, Column(_BEST, data=True)) if _BEST in seen else tuple(found)


def _flags(group: Group) -> str:
    """What is put behind the name of runs of which one is not to be relied on."""
    return max(map(flag, group.results))


def _about_seeds(found: Sequence[Group]) -> list[str]:
    """What a reader must know of means, intervals and the tail."""
    several = [len(group.results) for group in found if len(group.results) > 1]
    lines = []
    if several:
        why = why_none(min(several))
        means = f"means over the seeds {seeds_text(max((group.seeds for group in found), key=len))}"
        with_them = f" with their {100 * CONFIDENCE:.0f} % intervals"
        lines.append(f"{means}{'' if why else with_them}; percentiles are of the flows of all seeds together")
        lines += [why] if why else []
    note = tail_note(flows_of(found)) if any(group.results for group in found) else ""
    return [*lines, note] if note else lines


def _doubts(found: Sequence[Group]) -> list[str]:
    return [DOUBTFUL] if any(map(_flags, found)) else []


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


def measured(summary: Summary, metrics: Mapping[str, Metric] | None = None) -> Row:
    """What was measured in a run, by the names of COLUMNS and of metrics; None what was not observed."""
    times, factors, packets = summary.fct_ns, summary.slowdown, summary.packets
    stretched = None if isinstance(summary.hf2t, UnsetType) else summary.hf2t.get("stretched")
    flowlets = None if isinstance(summary.flowlets, UnsetType) else summary.flowlets.get(FLOWLETS_AT_LEAVES)
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
        "fct_fair_ns": None if isinstance(summary.fair, UnsetType) else summary.fair.fct_mean_ns,
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


def _caption(results: Sequence[Result], found: Sequence[Group]) -> list[str]:
    if not results:
        return []
    summary = results[0].summary
    scale = f", {summary.time_scale:g} times slower than stated" if summary.time_scale != 1 else ""
    seeds = seeds_text(list(dict.fromkeys(result.summary.seed for result in results)))
    about = f"{summary.flows} flows a run, target {summary.target}{scale}, seed {seeds}"
    return [
        about,
        *_about_seeds(found),
        *_transports(results),
        *queue_lines(results),
        *_not_applied(results),
        *_doubts(found),
    ]


def _not_applied(results: Sequence[Result]) -> list[str]:
    """What a target did not apply as asked, a line each, with the runs where it is not all of them."""
    found: dict[str, list[Result]] = {}
    for result in results:
        for text in result.summary.not_applied or ():
            found.setdefault(f"not as asked on {result.summary.target}, {text}", []).append(result)
    lines = []
    for text, concerned in found.items():
        names = dict.fromkeys(f"{result.case}, {result.label}" for result in concerned)
        lines.append(text if len(concerned) == len(results) else f"{text} ({'; '.join(names)})")
    return lines


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
    pauses = UNSET if isinstance(summary.pfc, UnsetType) else summary.pfc.get("pauses", UNSET)
    warnings = UNSET if isinstance(summary.rlb, UnsetType) else summary.rlb.get("warnings_sent", UNSET)
    rounds = summary.recirculations
    pauses = pauses if isinstance(pauses, UnsetType) else int(pauses)
    return pauses, warnings, UNSET if isinstance(rounds, UnsetType) else rounds.total


def markdown(listing: Listing) -> str:
    """The listing as a table in Markdown, its title and caption below."""
    columns = [one for one in texts_of(listing) if set(one.cells) != {ABSENT}]
    lines = [[one.title for one in columns], ["---"] * len(columns)]
    for number in range(len(listing.rows)):
        lines.append(
            [f"**{one.cells[number]}**" if one.strong[number] else one.cells[number] for one in columns]
        )
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + "".join(f"\n{printable(line)}\n" for line in (listing.title, *listing.caption) if line)
