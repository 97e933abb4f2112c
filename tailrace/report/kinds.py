# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures of runs: of `tailrace plot`, `tailrace.figure` and reports, in their order there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tailrace.experiments.faults.parse import parse_fault
from tailrace.report import network_figures, run_figures, sweep_figures
from tailrace.report.figures.figure import comparison_figure
from tailrace.report.figures.names import Labels, named
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.report.map import topology_figure
from tailrace.report.networks import misfit, network
from tailrace.results.results import Results
from tailrace.sim.link_faults import LinkDown, LinkSlow
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tailrace.results.result import Result
    from tailrace.results.summary import Summary
    from tailrace.topology import Topology

NO_LABELS: Labels = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of figures.

    name: of the kind, and of its files
    title: what the figure shows, as its caption
    needs: the results of which there is such a figure
    draw: draws the figure; None if these results have no such data, or if all values are 0
    of_network: whether the figure needs the network, which is built again from its spec
    of_one_run: whether the figure shows one run; a report has a figure of each group's first run
    """

    name: str
    title: str
    needs: str
    draw: Callable[[Results, Look], Figure | None]
    of_network: bool = False
    of_one_run: bool = False


def _of_all(
    draw: Callable[[Sequence[Result], Look], Figure | None],
) -> Callable[[Results, Look], Figure | None]:
    return lambda results, look: draw(results.results, look)


def _of_first(draw: Callable[[Result, Look], Figure | None]) -> Callable[[Results, Look], Figure | None]:
    return lambda results, look: draw(results.results[0], look)


def _map(results: Results, look: Look) -> Figure:
    """The picture of the first run's network, with the faulty links of all runs."""
    topology = network(results.results[0].summary.topology)
    faulty = {pair for result in results.results for pair in _faulty(result.summary, topology)}
    return topology_figure(topology, faulty, look)


def _faulty(summary: Summary, topology: Topology) -> Iterator[frozenset[str]]:
    """The ends of the faulty links of a run; random links are drawn with the same generator as in the run."""
    for number, fault in enumerate(summary.faults):
        try:
            rng = random.Random(f"fault {number} {summary.seed}")
            link_faults = parse_fault(fault).resolve(topology, rng)
        except SpecError:
            continue
        for link_fault in link_faults:
            if isinstance(link_fault, LinkSlow | LinkDown):
                yield frozenset((link_fault.a, link_fault.b))


COMPARISON = Kind(
    "comparison",
    "Completion times, packets out of order, PFC pauses, metrics of plug-ins",
    "finished flows",
    _of_all(comparison_figure),
)
"""The figure that `tailrace compare` draws; a report has its panels as figures of other kinds."""

_SAMPLES, _FOLLOWED = "samples: --sample", "followed flows: --follow"

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        COMPARISON,
        Kind(
            "ratios",
            "Completion times over those of the first scheme on the same traffic",
            "several schemes",
            sweep_figures.ratios_figure,
        ),
        Kind(
            "sensitivity",
            "Influence of what was swept",
            "several values of a key in a sweep",
            sweep_figures.sensitivity_figure,
        ),
        Kind("cdf", "Flow completion times", "finished flows", _of_all(run_figures.completion_figure)),
        Kind(
            "slowdown-by-size",
            "Slowdown: completion time over that of the flow alone in the network",
            "finished flows",
            _of_all(run_figures.slowdown_figure),
        ),
        Kind(
            "order",
            "First transmissions that arrived out of order",
            "packets out of order",
            _of_all(run_figures.order_figure),
        ),
        Kind(
            "throughput",
            "Throughput: what switches send to hosts",
            _SAMPLES,
            _of_all(network_figures.throughput_figure),
            of_network=True,
        ),
        Kind(
            "imbalance",
            "Imbalance of a switch's uplinks in an interval between samples",
            _SAMPLES,
            _of_all(network_figures.imbalance_figure),
            of_network=True,
        ),
        Kind(
            "queues",
            "Queues, over all ports that sent, and all samples",
            _SAMPLES,
            _of_all(network_figures.lengths_figure),
            of_network=True,
        ),
        Kind(
            "longest-queues",
            "The longest queues",
            _SAMPLES,
            _of_first(run_figures.queue_figure),
            of_one_run=True,
        ),
        Kind(
            "paths", "Paths of followed flows", _FOLLOWED, _of_first(run_figures.path_figure), of_one_run=True
        ),
        Kind(
            "flow-throughput",
            "Throughput of followed flows",
            _FOLLOWED,
            _of_first(network_figures.flow_throughput_figure),
            of_network=True,
            of_one_run=True,
        ),
        Kind("network", "The network: faulty links are red", "the network's spec", _map, of_network=True),
    )
}
"""The kinds by name."""


def possible(results: Results) -> list[Kind]:
    """The kinds of which these results have a figure."""
    return [kind for kind in KINDS.values() if len(list(draw_each(results, kind))) == 1]


def draw_each(results: Results, kind: Kind, look: Look = NATURAL) -> Iterator[tuple[Figure, str]]:
    """The figures of a kind with their captions: one; of a kind of one run, one for each group of runs.

    A run whose network is unknown (networks.py) is left out where the network is needed.
    """
    runs = [run for run in results.runs if run.result is not None]
    if kind.of_network:
        runs = [run for run in runs if run.result is not None and not misfit(run.result)]
    chosen = replace(results, runs=tuple(runs))
    if not kind.of_one_run:
        figure = kind.draw(chosen, look) if runs else None
        if figure is not None:
            yield figure, kind.title
        return
    for group in chosen.groups:
        first = group.results[0]
        figure = kind.draw(replace(results, runs=tuple(r for r in runs if r.result is first)), look)
        if figure is not None:
            of_seed = f", seed {first.summary.seed}" if len(group.results) > 1 else ""
            yield figure, f"{kind.title}: {first.case}, {first.label}{of_seed}"


def draw(results: Results, name: str, look: Look = NATURAL, labels: Labels = NO_LABELS) -> Figure:
    """The figure of a kind.

    Raises:
        SpecError: there is no such kind, or no such figure of these results; a label is invalid.
    """
    renamed = named(results, labels)
    kind = KINDS.get(name)
    figures = [] if kind is None else [figure for figure, _ in draw_each(renamed, kind, look)]
    if not figures:
        problem = f"{name[:40]!r} is not known" if kind is None else f"{name}: no data; it needs {kind.needs}"
        others = ", ".join(each.name for each in possible(renamed)) or "no results of finished runs"
        raise SpecError(f"figure {problem}; expected {others}")
    if len(figures) > 1:
        folder = results.runs[0].folder or "the folder of a run"
        raise SpecError(f"figure {name}: shows one run; expected a folder of one, such as {folder}")
    [figure] = figures
    if look.height is not None:
        figure.set_figheight(look.height)
    return figure


@contextmanager
def located(path: Path, *kept: type[Exception]) -> Iterator[None]:
    """Within the block every error, except for those `kept`, becomes a FileError of `path`, since files of
    other people may contain contradictions that are not checked.
    """
    passed: tuple[type[BaseException], ...] = (MemoryError, *kept)
    try:
        yield
    except passed:
        raise
    except Exception as error:
        raise FileError(path, "", f"cannot be shown: {type(error).__name__}: {error}") from error
