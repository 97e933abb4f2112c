# SPDX-License-Identifier: Apache-2.0
"""Collects all results below a folder: single runs, results of grids, figures of papers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.experiments.plan.axes import CASE, SCHEME, SEED, Setting
from tailrace.papers.document import RESULT, Document, read_document
from tailrace.papers.grid import RUNS
from tailrace.results.result import SUMMARY, Result, open_result
from tailrace.results.results import RESULTS, Results, Run, open_results
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.limits import refuse_above

MOST_FOLDERS = 1 << 18
"""Maximum number of folders that are searched for results."""


@dataclass(frozen=True, slots=True)
class Study:
    """A grid of runs or a single run, with its folder as a path below the folder that the user has given."""

    folder: Path
    results: Results


@dataclass(frozen=True, slots=True)
class Collected:
    """All results of a report: studies, papers' figures (documents) with their files, and error messages."""

    studies: tuple[Study, ...]
    documents: tuple[tuple[Path, Document], ...]
    problems: tuple[str, ...] = ()


def collect(folder: Path) -> Collected:
    """Collects all results below a folder. The error of an invalid file is added to `problems`.

    Raises:
        SpecError: there are no results.
        FileError: no result can be read; the error is that of the first invalid file.
    """
    if not folder.is_dir():
        raise SpecError(f"{folder}: not a folder")
    studies: list[Study] = []
    documents: list[tuple[Path, Document]] = []
    errors: list[FileError] = []
    folders = _walk(folder)
    for study_folder in _studies(folders):
        try:
            studies.append(Study(study_folder, open_study(study_folder)))
        except FileError as error:
            errors.append(error)
    for each in folders:
        file = each / RESULT
        if file.exists():
            try:
                documents.append((file, read_document(file)))
            except FileError as error:
                errors.append(error)
    if not studies and not documents:
        if errors:
            raise errors[0]
        raise SpecError(f"{folder}: no results; expected what tailrace run, compare, sweep or paper writes")
    documents.sort(key=lambda entry: _sort_key(entry[1]))
    return Collected(tuple(studies), tuple(documents), tuple(map(str, errors)))


def _sort_key(document: Document) -> tuple[str, str, str, int]:
    """The key that sorts figures before tables, and Fig. 7 before Fig. 10."""
    digits = "".join(letter if letter.isdigit() else " " for letter in document.name).split()
    name = document.name.rstrip("0123456789_")
    return document.scale, document.paper, name, int(digits[0]) if digits else 0


def _walk(folder: Path) -> list[Path]:
    """A folder and all folders below it, sorted; links are not followed, since they may lead outside.

    Raises:
        FileError: a folder cannot be read.
        SpecError: there are too many folders.
    """

    def refuse(error: OSError) -> None:
        raise FileError(Path(error.filename or folder), "", error.strerror or str(error)) from error

    folders = []
    try:
        for path, below, _ in os.walk(folder, onerror=refuse):
            below.sort()
            folders.append(Path(path))
            refuse_above(f"report {folder}", "folders", len(folders), MOST_FOLDERS)
    except RecursionError:
        raise SpecError(f"{folder}: folders are nested too deeply") from None
    return folders


def _studies(folders: Sequence[Path]) -> Iterator[Path]:
    """The folders of studies and single runs; excludes runs within a study, and runs of papers' figures."""
    skipped: Path | None = None
    for folder in folders:
        if skipped is not None and folder.is_relative_to(skipped):
            continue
        skipped = None
        if folder != folders[0] and (folder.name == RUNS.name or folder.name.startswith(".")):
            skipped = folder
        elif (folder / RESULTS).exists() or (folder / SUMMARY).exists():
            skipped = folder
            yield folder


def open_study(folder: Path) -> Results:
    """The results in a folder, of one command; a single run is a grid of one run.

    Raises:
        FileError: a file is missing or invalid.
    """
    return open_results(folder) if (folder / RESULTS).exists() else as_results(open_result(folder))


def as_results(result: Result) -> Results:
    """A single run as a grid of one run."""
    settings: dict[str, Setting] = {CASE: result.case, SCHEME: result.label, SEED: result.summary.seed}
    axes = {key: (value,) for key, value in settings.items()}
    return Results(axes, (Run(settings, "", result),))
