# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures of runs: of `tailrace plot`, `tailrace.figure` and reports, in their order there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from matplotlib.figure import Figure

from tailrace.report import network_figures, run_figures, sweep_figures, topology_map
from tailrace.report.figures import figure
from tailrace.report.figures.kind import Kind
from tailrace.report.figures.names import Labels, named
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.report.networks import misfit
from tailrace.results.results import Results
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError

NO_LABELS: Labels = MappingProxyType({})

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for module in (figure, sweep_figures, run_figures, network_figures, topology_map)
    for kind in vars(module).values()
    if isinstance(kind, Kind)
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
        figure = kind.draw(replace(results, runs=tuple(run for run in runs if run.result is first)), look)
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
