# SPDX-License-Identifier: Apache-2.0
"""What `tailrace paper` does after its options are parsed."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tailrace.cli.experiment_command import interruptible
from tailrace.cli.figures import draw_alone
from tailrace.cli.options import OutputFormat, View, view_of
from tailrace.cli.output import TABLES, show
from tailrace.experiments.plan.seeds import parse_seeds
from tailrace.papers import quick
from tailrace.papers.claims.claims import headline, other_kinds, tally
from tailrace.papers.document import Document
from tailrace.papers.harness import check_scale, prepare, run_paper
from tailrace.papers.model import names, paper_of, read_paper, select
from tailrace.report.figures.beside import draw_beside, files_of
from tailrace.report.paper.page import write_page
from tailrace.report.paper.summary import documents_in, write_pages
from tailrace.report.paper.table import claims_table, explanations, measured_table, quick_table
from tailrace.results.atomic_folder import check_place
from tailrace.results.estimates import why_none
from tailrace.sim.errors import RunError
from tailrace.spec import SpecError
from tailrace.study.pool import Where
from tailrace.study.progress import Display
from tailrace.study.store.store import Store, usual_folder
from tailrace.tables.listing import Column, Listing

# `rank`: a narrow terminal hides the columns of the highest rank first
COLUMNS = (Column("name", key=True), Column("paper", rank=1), Column("figure", rank=2), Column("title"))

OUT = Path("out") / "paper"
"""The folder for results without --out."""

_QUICK_COLUMNS = 80
"""Width of the table of quick verdicts where standard output is no terminal."""


def list_papers(view: View) -> None:
    """Lists the figures and tables that can be repeated.

    Raises:
        SpecError: there is no such column.
    """
    rows = [
        {"name": name, "paper": file.paper, "figure": file.figure, "title": file.title}
        for name in names()
        for file in [read_paper(name)]
    ]
    show(Listing("figures", COLUMNS, tuple(rows)), view)


def _is_file(page: Path) -> bool:
    """Whether --page names one page; else it is a folder for one page per paper."""
    return bool(page.suffix) and not page.is_dir()


def folder_of(page: Path | None) -> Path | None:
    """The folder of --page, which also stores finished runs."""
    return page.parent if page is not None and _is_file(page) else page


def _check_page(page: Path, wanted: str, chosen: Sequence[str]) -> None:
    """Raises SpecError if the pages of --page cannot be written; checked before the runs."""
    papers = {read_paper(name).paper for name in chosen}
    if _is_file(page) and len(papers) > 1:
        raise SpecError(f"--page: {wanted} are figures of several papers, expected those of one, or a folder")
    pages = [page] if _is_file(page) else [page / f"{paper_of(name)}.md" for name in chosen]
    try:
        for path in pages:
            check_place(path.with_suffix(""))
    except SpecError as error:
        raise SpecError(f"--page: {error}") from error


def seeds_of(seed: str | None) -> tuple[int, ...]:
    """The seeds of --seed; empty if it is not given. Raises SpecError if it is invalid."""
    try:
        return () if seed is None else parse_seeds(seed)
    except SpecError as error:
        raise SpecError(f"--seed: {error}") from error


def run_papers(args: Namespace) -> None:
    """Run every figure and table that a name selects, one after the other, and show their results.

    Args:
        args: the command line of cli.paper.

    Raises:
        SpecError: an invalid name, scale, seed, output format or file, or one page for several papers.
        RunError: runs failed.
        StoppedError: they were interrupted.
    """
    draw_alone()
    check_scale(args.scale)
    seeds, view, page = seeds_of(args.seed), view_of(args), args.page
    if view.format not in (*TABLES, OutputFormat.JSON) or view.columns or view.sort_by:
        raise SpecError("paper: expected -o table, wide or json; --columns and --sort-by go with paper list")
    display = Display(sys.stderr)
    chosen = select(args.name)
    if page is not None:
        _check_page(page, args.name, chosen)
    documents = []
    folder = args.store or folder_of(page)
    store = Store(folder) if folder else None
    root, where = args.out or OUT, Where(args.workers, args.cluster)
    out, scale, beside = root / args.scale, args.scale, args.beside
    prepared = prepare(chosen, scale, seeds, beside)
    with interruptible("finished runs are kept, and are not repeated next time"):
        for name, (file, grid) in zip(chosen, prepared, strict=True):
            display.say(f"{name}: {file.paper} {file.figure}, {file.title}")
            document = run_paper(
                name, file, grid, scale, root, where, display, again=args.again, store=store, beside=beside
            )
            documents.append(document)
            _draw(document, files_of(out / name, name), display)
            if view.format in TABLES:
                _show(document, view)
    if view.format is OutputFormat.JSON:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(documents), indent=1).decode() + "\n")
    if page is not None:
        (write_page if _is_file(page) else write_pages)(documents, out, page)
        display.say(f"page: {page}")
    _conclude(documents, display)
    display.say(f"results: {out}")


def quick_papers(args: Namespace) -> None:
    """Show PASS, WARN or FAIL for each claim of the figures and tables that a name selects.

    Raises:
        SpecError: an invalid name, seed or output format, or an option that --quick does not take.
        RunError: runs failed, or a claim fails that is not known to.
        StoppedError: they were interrupted.
    """
    seeds, view = seeds_of(args.seed) or quick.SEEDS, view_of(args)
    if args.page is not None or args.scale != quick.SCALE:
        raise SpecError(f"--quick: expected no --page, and no --scale but {quick.SCALE}")
    if why := why_none(len(seeds)):
        raise SpecError(f"--quick: {why}")
    display, chosen, references = Display(sys.stderr), select(args.name), quick.references()
    known = {name: references.get(name, quick.Reference()) for name in chosen}
    prepared = prepare(chosen, quick.SCALE, seeds)
    cpu_s = sum(each.cpu_s for each in known.values()) * len(seeds) / len(quick.SEEDS)
    tasks = sum(len(grid.tasks) for _, grid in prepared)
    minutes = math.ceil(cpu_s / 60 / args.workers) or 1
    display.say(f"{tasks} runs: about {minutes} min on idle cores (--workers {args.workers})")
    store, pages = Store(args.store) if args.store else None, usual_folder()
    stored = documents_in(pages, chosen) if pages is not None else ()
    out, where = args.out or (OUT if store else None), Where(args.workers, args.cluster)
    rows: list[quick.Row] = []
    failed: list[str] = []
    with interruptible("nothing is shown"):
        for name, (file, grid) in zip(chosen, prepared, strict=True):
            display.say(f"{name}: {file.paper} {file.figure}, {file.title}")
            document = run_paper(
                name, file, grid, quick.SCALE, out, where, display, again=args.again, store=store
            )
            rows += quick.rows_of(document, file.claims(quick.SCALE), known[name].fails, stored)
            failed += [f"{name}: {text}" for text in document.failed if text not in known[name].fails]
    show(quick_table(quick.joined(rows) if view.format in TABLES else rows), view, _QUICK_COLUMNS)
    display.say("in small networks: a check of the code; `tailrace results` has the numbers at paper scale")
    counts = Counter(row.result for row in rows)
    display.say(
        ", ".join(f"{counts[each]} {each}" for each in (quick.PASS, quick.WARN, quick.FAIL, quick.KNOWN))
    )
    failed += [f"{row.figure}: {row.key}: FAIL" for row in rows if row.result == quick.FAIL]
    if failed:
        raise RunError("; ".join(failed))


def _draw(document: Document, files: list[Path], display: Display) -> None:
    def draw() -> None:
        # imported only where it is needed: matplotlib loads slowly
        from tailrace.report.paper.charts import draw_document

        draw_document(document, files)

    draw_beside(files, draw, display.warn)


def _show(document: Document, view: View) -> None:
    if document.cells:
        show(measured_table(document), view)
    sys.stdout.write("\n")
    show_claims(document, view)
    for text in document.reductions:
        sys.stdout.write(f"reduced: {text}\n")
    sys.stdout.write("\n")


def show_claims(document: Document, view: View) -> None:
    """Shows a figure's claims, then the explanations of those that differ."""
    if document.claims:
        show(claims_table(document), view)
    for index, text in enumerate(explanations(document), start=1):
        sys.stdout.write(f"({index}) {text}\n")


def _conclude(documents: list[Document], display: Display) -> None:
    counts = tally(document.claims for document in documents)
    display.say(headline(counts) or "no numbers or rankings of papers were graded")
    if rest := other_kinds(counts):
        display.say(f"other claims: {rest}")
    failed = [f"{document.name}: {text}" for document in documents for text in document.failed]
    if failed:
        raise RunError("; ".join(failed))
