# SPDX-License-Identifier: Apache-2.0
"""Writes a page of Markdown about a paper: what it claims, what the runs show, what decides.

A paper may have a template with this text, which cites numbers of the figures; other pages show the first
figures. The tables and claims are data: `tailrace results NAME` shows them.

The page is PAGE.md. A folder PAGE/ contains a picture of each figure, the figure's numbers as JSON
(document.py), and `traces.parquet`. That file has a row per run, with the options with which `tailrace run`
repeats the run, and the run's trace hash, which is equal if the repeated run is identical.

A cell is one scheme in one case, and a case is a setting in which schemes are compared.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from tailrace.experiments.plan.command import PROGRAM
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.papers.beside import script
from tailrace.papers.claims.claims import headline, other_kinds, tally
from tailrace.papers.document import Cell, Document, as_lines
from tailrace.papers.model import paper_of, read_paper, select
from tailrace.report.paper import table
from tailrace.report.render import templates
from tailrace.results.parquet import parquet_bytes
from tailrace.results.result import SUMMARY, read_summary
from tailrace.results.units import UNITS
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import FileError
from tailrace.spec.text import printable
from tailrace.tables.arrow import TEXT, make_table
from tailrace.tables.cell_text import texts_of

PICTURE = ".svg"
NUMBERS = ".json"
TRACES = "traces.parquet"
_HOUR_S = 3600
_COLUMNS = ("figure", "case", "scheme", "words", "trace_sha256")
"""Columns of `traces.parquet`; `words` has the options of `tailrace run`, as in summary.json."""


def write_page(documents: Sequence[Document], out: Path, page: Path) -> None:
    """Writes the page of some figures of one paper.

    Args:
        documents: the results of the figures, in the order in which the page shows them.
        out: the folder of the results, with one folder per figure; the folder of runs has the same parent.
        page: the file to write; the folder of its pictures has the same name without the suffix.

    Raises:
        FileError: a result is missing, or the page cannot be written.
    """
    folder = page.with_suffix("")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for document in documents:
            picture = out / document.name / (document.name + PICTURE)
            if picture.exists():
                write_file(folder / picture.name, picture.read_bytes())
            else:
                (folder / picture.name).unlink(missing_ok=True)
            write_file(folder / (document.name + NUMBERS), as_lines(stored_part(document)))
            if commands := script(document.name, document.scale):
                write_file(folder / f"{document.name}.sh", commands)
        rows = list(_traces(documents, out.parent))
        columns = {name: [row[number] for row in rows] for number, name in enumerate(_COLUMNS)}
        write_file(folder / TRACES, parquet_bytes(make_table(columns, dict.fromkeys(_COLUMNS, TEXT))))
        write_file(page, page_text(documents, folder))
    except OSError as error:
        raise FileError(Path(error.filename or page), "", error.strerror or str(error)) from error


def _traces(documents: Sequence[Document], runs: Path) -> Iterator[tuple[str, ...]]:
    for document in documents:
        for cell in document.cells:
            for run in cell.runs:
                summary = read_summary(runs / run / SUMMARY)
                yield (
                    document.figure,
                    cell.case,
                    cell.label,
                    summary.option_string,
                    summary.trace_sha256 if isinstance(summary.trace_sha256, str) else "",
                )


def stored_part(document: Document) -> Document:
    """The part of a document that a page stores: only the figure's metrics, and no folders of runs."""
    cells = tuple(
        msgspec.structs.replace(
            cell,
            metrics={name: cell.metrics[name] for name in document.metrics if name in cell.metrics},
            runs=(),
        )
        for cell in document.cells
    )
    return msgspec.structs.replace(document, cells=cells)


def page_text(documents: Sequence[Document], folder: Path) -> str:
    """The text of the page, from documents as `stored_part` returns them; `folder` contains the pictures."""
    shown = [document.name for document in documents]
    paper = paper_of(documents[0].name)
    all_names = select(paper)
    # a paper may have its own template, with an introduction before the figures
    template = templates(FUNCTIONS).select_template([f"paper/{paper}.md.j2", "paper/page.md.j2"])
    return template.render(
        wanted=paper if set(shown) == set(all_names) else ",".join(shown),
        missing=[read_paper(name).figure for name in all_names if name not in shown],
        documents=documents,
        folder=folder.name,
        traces=TRACES,
        scale=documents[0].scale,
        paper=documents[0].paper,
        counts=tally(document.claims for document in documents),
        pictures=lambda of: [picture for document in of for picture in _pictures(document, folder)],
        **{name: partial(function, documents) for name, function in CITATIONS.items()},
    )


def ratio_of(documents: Sequence[Document], figure: str, case: str, label: str) -> str:
    """The ratio of a cell's metric to the base scheme's, as text for sentences in templates: of the metric
    that the figure shows first.

    Args:
        figure: the document's name; or, if all documents are of one paper, the figure's name, such as Fig. 8.
    """
    cell = _cell(documents, figure, case, label)
    return table.ratio_text(cell, next(iter(cell.ratios)))


def metric_of(documents: Sequence[Document], figure: str, case: str, label: str, name: str) -> str:
    """A metric of a cell in its unit, without the unit's name, for sentences in templates; see `ratio_of`."""
    return table.cell_text(_cell(documents, figure, case, label), name)


def claim_of(documents: Sequence[Document], figure: str, text: str, case: str) -> str:
    """The measured value of a claim of a figure in a case, with its unit, for sentences in templates."""
    claims = next(document.claims for document in documents if document.name == figure)
    return next(claim.shown for claim in claims if (claim.text, claim.case) == (text, case))


def _cell(documents: Sequence[Document], figure: str, case: str, label: str) -> Cell:
    cells = next(document.cells for document in documents if figure in (document.name, document.figure))
    return next(cell for cell in cells if (cell.case, cell.label) == (case, label))


def _cost_text(documents: Iterable[Document]) -> str:
    """The total cost of runs as text, or empty if it is unknown; a run counts once for each figure."""
    costs = [document.cost for document in documents if document.cost]
    if not costs:
        return ""
    hours = sum(cost.cpu_s for cost in costs) / _HOUR_S
    memory = UNITS["MiB"].text(max(cost.memory_bytes for cost in costs))
    machines = " and ".join(dict.fromkeys(name for cost in costs for name in cost.machines))
    runs = sum(cost.runs for cost in costs)
    return f"{runs:,} runs, {hours:.2g} core-hours, at most {memory} in a process ({machines})"


def quoted(command: str) -> str:
    """A command from a file, quoted so that a shell runs only this command; empty if it is not `tailrace`."""
    try:
        arguments = shlex.split(command)
    except ValueError:
        return ""
    return printable(shlex.join(arguments)) if arguments[:1] == [PROGRAM] else ""


def _pictures(document: Document, folder: Path) -> list[tuple[str, str]]:
    """The caption and the relative path of a document's picture, if it has one."""
    name = document.name + PICTURE
    caption = f"{document.figure}: {document.title}"
    return [(caption, f"{folder.name}/{name}")] if (folder / name).exists() else []


def _settings(document: Document) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The common settings of all runs of a figure; and, if there are several cases, the settings of each."""
    common, by_case = {}, {case: dict[str, str]() for case in document.cases}
    for name, value in document.setting.items():
        case, _, key = name.rpartition(": ")
        if case in by_case and len(by_case) > 1:
            by_case[case][key] = value
        else:
            common[key] = value
    return common, {case: setting for case, setting in by_case.items() if setting}


def _measured_rows(document: Document) -> list[Sequence[str]]:
    """The table of measurements: a row of titles, then one row per case and scheme."""
    listing = table.measured_table(document)
    columns = texts_of(
        replace(listing, columns=tuple(replace(each, grouped=False) for each in listing.columns))
    )
    return [[column.title for column in columns], *zip(*(column.cells for column in columns), strict=True)]


def _ratio_rows(document: Document) -> list[Sequence[str]]:
    """The table of a figure beside a peer, as `_measured_rows` has it, with the ratios alone."""
    rows = _measured_rows(document)
    shown = [title in ("case", "scheme") or " / " in title for title in rows[0]]
    return [tuple(itertools.compress(row, shown)) for row in rows]


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "cost": _cost_text,
    "explanations": table.explanations,
    "headline": headline,
    "measured": _measured_rows,
    "notes": table.cell_notes,
    "other_kinds": other_kinds,
    "quoted": quoted,
    "ratios": _ratio_rows,
    "has_reruns": table.has_reruns,
    "seeds": seeds_text,
    "settings": _settings,
    "tally": lambda documents: tally(document.claims for document in documents),
}
"""Functions that templates call, by their names in templates."""

CITATIONS: Mapping[str, Callable[..., str]] = {"ratio": ratio_of, "metric": metric_of, "claim": claim_of}
"""Functions with which sentences in templates cite numbers of documents, by their names in templates."""
