# SPDX-License-Identifier: Apache-2.0
"""What `tailrace report` does once its options are read."""

from __future__ import annotations

import sys
from pathlib import Path

from tailrace.cli.experiment_options import PAGE
from tailrace.report.collect import collect
from tailrace.report.page import render
from tailrace.results.atomic_folder import replace_file
from tailrace.spec import SpecError
from tailrace.spec.atomic import write_file
from tailrace.study.progress import Display


def write_report(folder: Path, out: Path | None, title: str | None) -> Path:
    """Make the page of a folder of results; returns its file, FOLDER/report.html unless `out` says another.

    A file that is not what was written is reported, and the page has the rest.

    Raises:
        SpecError: there are no results, or the page cannot be written.
    """
    collected = collect(folder)
    for problem in collected.problems:
        Display(sys.stderr).warn(problem)
    page = render(collected, title or f"Results in {folder}")
    # names of files need not be text
    content = page.encode(errors="backslashreplace")
    path = folder / PAGE if out is None else out
    try:
        if out is None:
            replace_file(path, content)
        else:
            write_file(path, content)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from error
    return path
