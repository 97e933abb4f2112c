# SPDX-License-Identifier: Apache-2.0
"""The results of a paper's figures as one page of Markdown, with the figures and the trace hashes beside it.

PAGE.md, and a folder PAGE/ with a picture of each figure, its numbers as JSON (document.py), and
`traces.csv`: a row a run, with the words by which `tailrace run` repeats it and the hash that shows that it
was repeated bit by bit.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from markupsafe import Markup

from tailrace.experiments.plan.command import PROGRAM
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.p4rt.values import Value
from tailrace.papers.claims.claims import headline, other_kinds, tally
from tailrace.papers.claims.kinds import GOOD
from tailrace.papers.document import Cell, Document, as_lines
from tailrace.papers.model import paper_of, read_paper, select
from tailrace.report.paper import table
from tailrace.report.render import templates
from tailrace.results.result import SUMMARY, read_summary
from tailrace.results.units import UNITS
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import FileError
from tailrace.spec.text import printable
from tailrace.tables.markdown import bold

PICTURE = ".svg"
NUMBERS = ".json"
TRACES = "traces.csv"
_HOUR_S = 3600
_COLUMNS = ("figure", "case", "scheme", "words", "trace_sha256")


def write_page(documents: Sequence[Document], out: Path, page: Path) -> None:
    """Writes the page of some figures of one paper.

    Args:
        documents: what came of the figures, in the order in which they are to be shown.
        out: the folder in which their results are, one folder a figure, with the runs beside them.
        page: the file to write; its folder has its name without the suffix.

    Raises:
        FileError: a result is not there, or the page cannot be written.
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
            write_file(folder / (document.name + NUMBERS), as_lines(shown_by(document)))
        traces = io.StringIO()
        writer = csv.writer(traces, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(_traces(documents, out.parent))
        write_file(folder / TRACES, traces.getvalue())
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


def shown_by(document: Document) -> Document:
    """What a page shows of a figure: its own metrics, and not where the runs lie."""
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
    """The page, for which `shown_by` of each figure is enough; `folder` is where the pictures are."""
    shown = [document.name for document in documents]
    paper = paper_of(documents[0].name)
    every = select(paper)
    # a page of its own has its own words before the figures
    template = templates(FUNCTIONS).select_template([f"paper/{paper}.md.j2", "paper/page.md.j2"])
    return template.render(
        wanted=paper if set(shown) == set(every) else ",".join(shown),
        missing=[read_paper(name).figure for name in every if name not in shown],
        documents=documents,
        folder=folder.name,
        traces=TRACES,
        scale=documents[0].scale,
        paper=documents[0].paper,
        counts=tally(document.claims for document in documents),
        pictures=lambda document: _pictures(document, folder),
        shared=_shared(documents),
        verdict=_verdict,
        right="",
        most_rows=math.inf,
        ratio=partial(ratio_of, documents),
    )


def ratio_of(documents: Sequence[Document], figure: str, case: str, label: str) -> str:
    """The first drawn metric of a cell over the base's, as a page's own words have it.

    Args:
        figure: its name, or what the paper calls it, if all documents are of one.
    """
    cell = _cell(documents, figure, case, label)
    return table.ratio_text(cell, next(iter(cell.ratios)))


def metric_of(documents: Sequence[Document], figure: str, case: str, label: str, name: str) -> str:
    """A metric of a cell in its unit, without it, as a page's own words have it; the rest as for ratios."""
    return table.cell_text(_cell(documents, figure, case, label), name)


def claim_of(documents: Sequence[Document], figure: str, text: str, case: str) -> str:
    """What a claim of a figure came to in a case, with its unit, as a page's own words have it."""
    claims = next(document.claims for document in documents if document.name == figure)
    return next(claim.shown for claim in claims if (claim.text, claim.case) == (text, case))


def _cell(documents: Sequence[Document], figure: str, case: str, label: str) -> Cell:
    cells = next(document.cells for document in documents if figure in (document.name, document.figure))
    return next(cell for cell in cells if (cell.case, cell.label) == (case, label))


def _cost(documents: Iterable[Document]) -> str:
    """What runs took together, where it is known; those of several figures count in each."""
    costs = [document.cost for document in documents if document.cost]
    if not costs:
        return ""
    hours = sum(cost.cpu_s for cost in costs) / _HOUR_S
    memory = UNITS["MiB"].text(max(cost.memory_bytes for cost in costs))
    machines = ", ".join(dict.fromkeys(name for cost in costs for name in cost.machines))
    runs = sum(cost.runs for cost in costs)
    return f"{runs} runs, {hours:.2g} core-hours, {memory} at most a process ({machines})"


def quoted(command: str) -> str:
    """A command of a file, so that a shell takes it for one command; empty if it is none of ours."""
    try:
        arguments = shlex.split(command)
    except ValueError:
        return ""
    return printable(shlex.join(arguments)) if arguments[:1] == [PROGRAM] else ""


def _pictures(document: Document, folder: Path) -> list[tuple[str, str]]:
    """The caption and the place of its picture, if there is one."""
    name = document.name + PICTURE
    caption = f"{document.figure}: {document.title}"
    return [(caption, f"{folder.name}/{name}")] if (folder / name).exists() else []


def _settings(document: Document) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What all runs of a figure have in common, and what each of several cases has of its own."""
    common, by_case = {}, {case: dict[str, str]() for case in document.cases}
    for name, value in document.setting.items():
        case, _, key = name.rpartition(": ")
        if case in by_case and len(by_case) > 1:
            by_case[case][key] = value
        else:
            common[key] = value
    return common, {case: setting for case, setting in by_case.items() if setting}


def _shared(documents: Sequence[Document]) -> list[str]:
    """The assumptions of more than one figure, once each."""
    every = [text for document in documents for text in document.assumptions]
    return [text for text in dict.fromkeys(every) if every.count(text) > 1]


def _verdict(text: str) -> str:
    return text if text in GOOD else Markup(bold(text))  # noqa: S704


def _measured(document: Document) -> list[list[Value]]:
    """The titles of what was measured, and a row a case and scheme."""
    listing = table.measured_table(document)
    names = [column.name for column in listing.columns]
    return [
        [column.title for column in listing.columns],
        *(list(map(row.get, names)) for row in listing.rows),
    ]


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "cost": _cost,
    "explanations": table.explanations,
    "headline": headline,
    "measured": _measured,
    "notes": table.cell_notes,
    "other_kinds": other_kinds,
    "quoted": quoted,
    "reran": table.reran,
    "seeds": seeds_text,
    "settings": _settings,
    "tally": lambda documents: tally(document.claims for document in documents),
}
"""What templates call."""
