# SPDX-License-Identifier: Apache-2.0
"""What lies below a folder of results: single runs, comparisons, sweeps, figures of papers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tailrace.papers.document import RESULT, Document, read_document
from tailrace.papers.grid import RUNS
from tailrace.results.comparison import COMPARISON
from tailrace.results.result import SUMMARY, Result, open_result
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.limits import refuse_above
from tailrace.study.compare import open_comparison
from tailrace.study.sweep import SWEEP, open_sweep

MOST_FOLDERS = 1 << 18
"""That are looked through for results."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that belong together, in their order; `folder` as the user named it, `command` runs them again."""

    kind: str
    folder: Path
    results: tuple[Result, ...]
    failed: tuple[str, ...] = ()
    command: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """All that a report is about; documents with their files."""

    groups: tuple[Group, ...]
    documents: tuple[tuple[Path, Document], ...]


def collect(folder: Path) -> Found:
    """Everything below a folder.

    Raises:
        SpecError: there is nothing.
        FileError: a file is not what its name says.
    """
    if not folder.is_dir():
        raise SpecError(f"{folder}: not a folder")
    folders = _walk(folder)
    groups = tuple(_groups(folders))
    files = [below / RESULT for below in folders if (below / RESULT).exists()]
    documents = [(file, read_document(file)) for file in files]
    if not groups and not documents:
        raise SpecError(f"{folder}: no results; expected what tailrace run, compare, sweep or paper writes")
    return Found(groups, tuple(sorted(documents, key=lambda found: _place(found[1]))))


def _place(document: Document) -> tuple[str, str, str, int]:
    """Sorts figures before tables, and Fig. 7 before Fig. 10."""
    digits = "".join(letter if letter.isdigit() else " " for letter in document.name).split()
    name = document.name.rstrip("0123456789_")
    return document.scale, document.paper, name, int(digits[0]) if digits else 0


def _walk(folder: Path) -> list[Path]:
    """A folder and all below it, in order; links to folders are not followed, for they may lead anywhere.

    Raises:
        FileError: one cannot be read.
        SpecError: there are too many.
    """

    def refuse(error: OSError) -> None:
        raise FileError(Path(error.filename or folder), "", error.strerror or str(error)) from error

    found = []
    try:
        for place, below, _ in os.walk(folder, onerror=refuse):
            below.sort()
            found.append(Path(place))
            refuse_above(f"report {folder}", "folders", len(found), MOST_FOLDERS)
    except RecursionError:
        raise SpecError(f"{folder}: folders are nested too deeply") from None
    return found


def _groups(folders: Sequence[Path]) -> Iterator[Group]:
    """The runs of folders; those within a comparison or a sweep belong to it, and the runs of papers are told
    by their figures.
    """
    done: Path | None = None
    for folder in folders:
        if done is not None and folder.is_relative_to(done):
            continue
        done = None
        if folder != folders[0] and (folder.name == RUNS.name or folder.name.startswith(".")):
            done = folder
            continue
        for group in _group(folder):
            done = folder
            yield group


def _group(folder: Path) -> Iterator[Group]:
    """The runs that a folder itself is about, if it is about any."""
    if (folder / COMPARISON).exists():
        yield _comparison(folder)
    elif (folder / SWEEP).exists():
        yield _sweep(folder)
    elif (folder / SUMMARY).exists():
        yield Group("run", folder, (open_result(folder),))


def _comparison(folder: Path) -> Group:
    found = open_comparison(folder)
    failed, left_out = tuple(map(str, found.failed)), tuple(map(str, found.left_out))
    return Group("comparison", folder, found.results, failed, found.command, left_out)


def _sweep(folder: Path) -> Group:
    found = open_sweep(folder)
    kept = [key for key in found.axes if not (found.over_seeds and key == "seed")]
    results = tuple(
        replace(result, case="sweep", label=", ".join(f"{key}={settings[key]}" for key in kept))
        for settings, result in found.found
    )
    return Group("sweep", folder, results, found.failed, found.command)
