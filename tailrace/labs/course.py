# SPDX-License-Identifier: Apache-2.0
"""Checks answer files of many students, each in a process of its own: their plug-ins share names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path

from tailrace.labs.lab import Checked, check, load_labs
from tailrace.spec.errors import Error


def check_each(number: int, paths: Sequence[Path]) -> Iterator[tuple[Path, Checked | str]]:
    """Each answer file of the lab `number` with the result of its check, or a line that says why not."""
    for path in paths:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                yield path, pool.submit(_check, number, path).result()
            except BrokenProcessPool:
                yield path, f"{path}: the process of the check has died"


def _check(number: int, path: Path) -> Checked | str:
    # a student's code may print, and standard output is the table
    with redirect_stdout(sys.stderr):
        try:
            return check(load_labs()[number], path)
        except (Error, SystemExit) as error:
            return str(error)
