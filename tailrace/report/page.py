# SPDX-License-Identifier: Apache-2.0
"""The page: what was found, as HTML with everything in it."""

from __future__ import annotations

import itertools
import os
import platform
import random
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.experiments.faults.parse import parse_fault
from tailrace.papers.claims.claims import Tally, headline, other_kinds, tally
from tailrace.papers.claims.kinds import FAIR, GOOD, NOT_MEASURED
from tailrace.papers.document import Document
from tailrace.report.collect import Collected, Study
from tailrace.report.figures.plot import inline_svg
from tailrace.report.map import topology_figure
from tailrace.report.network_figures import (
    flow_throughput_figure,
    imbalance_figure,
    queue_cdf_figure,
    throughput_figure,
)
from tailrace.report.networks import misfit, network
from tailrace.report.paper.charts import document_figure, search_figure
from tailrace.report.paper.table import cell_text
from tailrace.report.run_figures import (
    completion_figure,
    order_figure,
    path_figure,
    queue_figure,
    slowdown_figure,
)
from tailrace.results.metrics import metric
from tailrace.results.result import Result
from tailrace.results.results import Results
from tailrace.results.summary import Summary
from tailrace.results.units import UNITS
from tailrace.sim.link_faults import LinkDown, LinkSlow
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.text import printable
from tailrace.study.command import PROGRAM, RUN, checked
from tailrace.study.run import installed_version
from tailrace.tables.cell_text import ColumnTexts, texts_of
from tailrace.topology import Topology

_TEMPLATE = "page.html.j2"
_HASH_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with what is said below it."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group of runs as the page shows it."""

    anchor: str
    title: str
    facts: dict[str, str]
    command: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    pictures: tuple[Picture, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaperView:
    """A figure or table of a paper as the page shows it."""

    anchor: str
    document: Document
    command: str
    numbers: str
    other_kinds: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    pictures: tuple[Picture, ...]


def render(collected: Collected, title: str) -> str:
    """The whole page.

    Raises:
        FileError: results that cannot be shown.
    """
    numbers = itertools.count(1)
    # files may have changed since the last page
    network.cache_clear()
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).resolve().parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    papers, groups = [], []
    for file, document in collected.documents:
        with _located(file):
            papers.append(_paper(document, numbers))
    for study in collected.studies:
        with _located(study.folder):
            groups.append(_group(study, numbers))
    return environment.get_template(_TEMPLATE).render(
        title=title,
        papers=papers,
        groups=groups,
        tallies=_tallies([document for _, document in collected.documents]),
        badge=_badge,
        machine=machine(),
        version=installed_version() or "not installed",
    )


@contextmanager
def _located(place: Path) -> Iterator[None]:
    """Within the block whatever is wrong with results that can be read becomes a line that says where they
    are: files that others wrote can contradict each other in more ways than are looked for.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise FileError(place, "", f"cannot be shown: {type(error).__name__}: {error}") from error


def _tallies(documents: Sequence[Document]) -> list[tuple[str, str, str]]:
    """Of each scale: its name, its numbers and rankings, its other claims."""
    rows = []
    for scale in dict.fromkeys(document.scale for document in documents):
        counts: Tally = tally(document.claims for document in documents if document.scale == scale)
        rows.append((scale, headline(counts), other_kinds(counts)))
    return rows


def _badge(verdict: str) -> str:
    """How a verdict looks."""
    if verdict in GOOD:
        return "good"
    return "" if verdict in (*FAIR, NOT_MEASURED) else "differs"


def machine() -> dict[str, str]:
    """What the page was made on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": str(os.cpu_count() or 1),
        "Python": platform.python_version(),
    }


def _pictures(figures: Sequence[tuple[Figure | None, str]], numbers: Iterator[int]) -> tuple[Picture, ...]:
    """The figures that there are, each with ids of its own."""
    return tuple(
        Picture(Markup(inline_svg(figure, f"f{next(numbers)}", caption)), caption)  # noqa: S704 - our own
        for figure, caption in figures
        if figure is not None
    )


# ---- papers ----


def _paper(document: Document, numbers: Iterator[int]) -> PaperView:
    counts = tally([document.claims])
    titles = []
    for name in document.metrics:
        unit = UNITS[metric(name).unit].name
        titles.append(f"{metric(name).title} ({unit})" if unit else metric(name).title)
    rows = []
    for cell in document.cells:
        values = [cell_text(cell, name) for name in document.metrics]
        label = f"{cell.label} ({cell.value})" if cell.value else cell.label
        rows.append(
            (document.cases.get(cell.case) or cell.case, label + (" *" if cell.note else ""), *values)
        )
    return PaperView(
        anchor=f"{document.scale}-{document.name}",
        document=document,
        command=_quoted(document.command),
        numbers=headline(counts),
        other_kinds=other_kinds(counts),
        head=("case", "scheme", *titles),
        rows=tuple(rows),
        notes=(
            *document.notes,
            *dict.fromkeys(f"* {cell.note}" for cell in document.cells if cell.note),
        ),
        pictures=_pictures(
            [
                (document_figure(document), f"{document.figure}: {document.title}"),
                (search_figure(document), "Mean FCT for every flowlet gap that was tried"),
            ],
            numbers,
        ),
    )


# ---- runs ----


def _group(study: Study, numbers: Iterator[int]) -> GroupView:
    results = study.results.results
    figures: list[tuple[Figure | None, str]] = []
    facts, command = {}, ""
    table = study.results.table
    misfits = [misfit(result) for result in results]
    columns = texts_of(table) if results else []
    if results:
        fitting = [result for result, problem in zip(results, misfits, strict=True) if not problem]
        facts, command = _facts(results), _command(study.results)
        figures = [
            (completion_figure(results), "Flow completion times"),
            (
                slowdown_figure(results),
                "Slowdown: completion time over that of the flow alone in the network",
            ),
            (order_figure(results), "First transmissions that arrived out of order"),
            (throughput_figure(fitting), "Throughput: what switches send to hosts"),
            (imbalance_figure(fitting), "Imbalance of a switch's uplinks in an interval between samples"),
            (queue_cdf_figure(fitting), "Queues, over all ports that sent, and all samples"),
        ]
        for group in study.results.groups:
            result = group.results[0]
            of_seed = f", seed {result.summary.seed}" if len(group.results) > 1 else ""
            name = f"{result.case}, {result.label}{of_seed}"
            figures.append((queue_figure(result), f"The longest queues: {name}"))
            figures.append((path_figure(result), f"Paths of watched flows: {name}"))
            if any(result is each for each in fitting):
                figures.append((flow_throughput_figure(result), f"Throughput of watched flows: {name}"))
        if fitting:
            figures.append((_map(fitting), f"The network: {fitting[0].summary.topology}"))
    return GroupView(
        anchor=f"runs-{next(numbers)}",
        title=f"Results: {study.folder}",
        facts=facts,
        command=command,
        head=tuple(column.title for column in columns),
        rows=tuple(zip(*map(_cells, columns), strict=True)),
        notes=(
            *table.caption,
            *(f"no figures of the network: {each}" for each in dict.fromkeys(misfits) if each),
        ),
        pictures=_pictures(figures, numbers),
        failed=study.results.failed,
    )


def _cells(texts: ColumnTexts) -> list[str]:
    """The cells of a column; what stands out is bold."""
    return [
        Markup("<b>{}</b>").format(cell) if strong else cell
        for cell, strong in zip(texts.cells, texts.strong, strict=True)
    ]


def _map(results: Sequence[Result]) -> Figure:
    """The network of the first run."""
    topology = network(results[0].summary.topology)
    faulty = {pair for result in results for pair in _faulty(result.summary, topology)}
    return topology_figure(topology, faulty)


def _facts(results: Sequence[Result]) -> dict[str, str]:
    """What all runs have in common; where they differ, every value."""
    facts: dict[str, str] = {}
    for key in ("topology", "workload", "target", "seed", "transport", "window_bytes", "mtu_bytes", "flows"):
        values = [getattr(result.summary, key) for result in results]
        texts = dict.fromkeys(
            f"{value:,}" if key.endswith("bytes") else str(value)
            for value in values
            if not isinstance(value, UnsetType)
        )
        facts[key.replace("_bytes", " (bytes)")] = ", ".join(texts)
    facts["faults"] = ", ".join(dict.fromkeys(fault for result in results for fault in result.summary.faults))
    for key in ("version", "p4_sha256", "trace_sha256"):
        values = [getattr(result.summary, key) for result in results]
        texts = dict.fromkeys(value[:_HASH_DIGITS] for value in values if isinstance(value, str))
        facts[key.replace("_", " ")] = ", ".join(texts)
    return {key: text for key, text in facts.items() if text}


def _quoted(command: str) -> str:
    """A command of a file, so that a shell takes it for one command; empty if it is none of ours."""
    try:
        arguments = shlex.split(command)
    except ValueError:
        return ""
    return printable(shlex.join(arguments)) if arguments[:1] == ["tailrace"] else ""


def _command(results: Results) -> str:
    """A command that runs the same again; where no single one can say it, one for each run."""
    runs = (checked(f"{PROGRAM} {RUN} {result.summary.option_string}") for result in results.results)
    return checked(results.command) or "\n".join(dict.fromkeys(filter(None, runs)))


def _faulty(summary: Summary, topology: Topology) -> Iterator[frozenset[str]]:
    """The ends of the links that the faults of a run hit, drawn as the run has drawn them."""
    for number, fault in enumerate(summary.faults):
        try:
            hits = parse_fault(fault).resolve(topology, random.Random(f"fault {number} {summary.seed}"))
        except SpecError:
            continue
        for hit in hits:
            if isinstance(hit, LinkSlow | LinkDown):
                yield frozenset((hit.a, hit.b))
