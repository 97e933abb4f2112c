# SPDX-License-Identifier: Apache-2.0
"""The results of a paper's figures as one page of Markdown, with the figures and the trace hashes beside it.

PAGE.md, and a folder PAGE/ with a picture of each figure, its numbers as JSON (document.py), and
`traces.csv`: a row a run, with the words by which `tailrace run` repeats it and the hash that shows that it
was repeated bit by bit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import jinja2
import msgspec

from tailrace.experiments.plan.seeds import seeds_text
from tailrace.papers.claims.claims import headline, other_kinds, tally
from tailrace.papers.claims.kinds import GOOD
from tailrace.papers.document import Cell, Cost, Document, as_lines
from tailrace.papers.model import paper_of, read_paper, select
from tailrace.report.paper.table import (
    cell_text,
    explanations,
    ratio_names,
    ratio_text,
    ratio_title,
    reran,
)
from tailrace.results.metrics import metric
from tailrace.results.result import SUMMARY, read_summary
from tailrace.results.units import UNITS
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import FileError

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


def templates() -> jinja2.Environment:
    """The templates of pages."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tailrace.report.paper", ""),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(),
    )


def page_text(documents: Sequence[Document], folder: Path) -> str:
    """The page, for which `shown_by` of each figure is enough; `folder` is where the pictures are."""
    shown = [document.name for document in documents]
    paper = paper_of(documents[0].name)
    every = select(paper)
    # a page of its own has its own words before the figures
    return (
        templates()
        .select_template([f"{paper}.md.j2", "page.md.j2"])
        .render(
            wanted=paper if set(shown) == set(every) else ",".join(shown),
            missing=[read_paper(name).figure for name in every if name not in shown],
            documents=documents,
            folder=folder.name,
            traces=TRACES,
            scale=documents[0].scale,
            paper=documents[0].paper,
            found=tally(document.claims for document in documents),
            tally=lambda document: tally([document.claims]),
            headline=headline,
            other_kinds=other_kinds,
            good=GOOD,
            seeds=seeds_text,
            picture=lambda document: _picture(document, folder),
            settings=_settings,
            setting_text=lambda setting: ", ".join(f"`{key} = {value}`" for key, value in setting.items()),
            header=_header,
            rows=_rows,
            notes=_notes,
            explanations=explanations,
            reran=reran,
            shared=_shared(documents),
            ratio=partial(ratio_of, documents),
            cost=cost_text,
            costs=[document.cost for document in documents if document.cost],
        )
    )


def ratio_of(documents: Sequence[Document], figure: str, case: str, label: str) -> str:
    """The first drawn metric of a cell over the base's, as a page's own words have it.

    Args:
        figure: its name, or what the paper calls it, if all documents are of one.
    """
    cell = _cell(documents, figure, case, label)
    return ratio_text(cell, next(iter(cell.ratios)))


def metric_of(documents: Sequence[Document], figure: str, case: str, label: str, name: str) -> str:
    """A metric of a cell in its unit, without it, as a page's own words have it; the rest as for ratios."""
    return cell_text(_cell(documents, figure, case, label), name)


def claim_of(documents: Sequence[Document], figure: str, text: str, case: str) -> str:
    """What a claim of a figure came to in a case, with its unit, as a page's own words have it."""
    claims = next(document.claims for document in documents if document.name == figure)
    return next(claim.shown for claim in claims if (claim.text, claim.case) == (text, case))


def _cell(documents: Sequence[Document], figure: str, case: str, label: str) -> Cell:
    cells = next(document.cells for document in documents if figure in (document.name, document.figure))
    return next(cell for cell in cells if (cell.case, cell.label) == (case, label))


def cost_text(costs: Sequence[Cost]) -> str:
    """What runs took together; those of several figures count in each."""
    hours = sum(cost.cpu_s for cost in costs) / _HOUR_S
    memory = UNITS["MiB"].text(max(cost.memory_bytes for cost in costs))
    machines = ", ".join(dict.fromkeys(name for cost in costs for name in cost.machines))
    runs = sum(cost.runs for cost in costs)
    return f"{runs} runs, {hours:.2g} core-hours, {memory} at most a process ({machines})"


def _picture(document: Document, folder: Path) -> str:
    name = document.name + PICTURE
    return name if (folder / name).exists() else ""


def _settings(document: Document) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What all runs of a figure have in common, and what each of several cases has of its own."""
    common, by_case = {}, {case: dict[str, str]() for case in document.cases}
    for name, value in document.setting.items():
        case, _, key = name.rpartition(": ")
        if case in by_case and len(by_case) > 1:
            by_case[case][key] = value
        else:
            common[key] = value
    return common, {case: own for case, own in by_case.items() if own}


def _shared(documents: Sequence[Document]) -> list[str]:
    """The assumptions of more than one figure, once each."""
    every = [text for document in documents for text in document.assumptions]
    return [text for text in dict.fromkeys(every) if every.count(text) > 1]


def _header(document: Document) -> list[str]:
    ratios = [ratio_title(document, name) for name in ratio_names(document)]
    titles = [metric(name).titled for name in document.metrics]
    return (["case"] if len(document.cases) > 1 else []) + ["scheme", *ratios, *titles]


def _rows(document: Document) -> Iterator[list[str]]:
    """The cells of a figure; a heat map's are in its picture and in result.json."""
    for cell in document.cells:
        label = f"{cell.label} ({cell.value})" if cell.value else cell.label
        values = [ratio_text(cell, name) for name in ratio_names(document)]
        values += [cell_text(cell, name) for name in document.metrics]
        star = " \\*" if cell.note else ""
        yield ([cell.case] if len(document.cases) > 1 else []) + [label + star, *values]


def _notes(document: Document) -> list[str]:
    return list(dict.fromkeys(cell.note for cell in document.cells if cell.note))
