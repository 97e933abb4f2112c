# SPDX-License-Identifier: Apache-2.0
"""Checks answer files of many students, each in a process of its own: their plug-ins share names, and may
never end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from tailrace.labs.lab import Checked, check, load_labs
from tailrace.spec.errors import Error

LIMIT_S = 600.0
"""The time of one check, which takes seconds."""


def check_each(number: int, paths: Sequence[Path]) -> Iterator[tuple[Path, Checked | str]]:
    """Each answer file of the lab `number` with the result of its check, or a line that says why not."""
    context = get_context("spawn")
    for path in paths:
        result, sent = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(sent, number, path), daemon=True)
        process.start()
        sent.close()
        try:
            checked = result.recv() if result.poll(LIMIT_S) else f"{path}: no result after {LIMIT_S:.0f} s"
        except EOFError:
            checked = f"{path}: the process of the check has died"
        process.kill()
        process.join()
        yield path, checked


def _send(sent: Connection, number: int, path: Path) -> None:
    sent.send(_check(number, path))


def _check(number: int, path: Path) -> Checked | str:
    # a student's code may print, and standard output is the table
    with redirect_stdout(sys.stderr):
        try:
            return check(load_labs()[number], path)
        except (Error, SystemExit) as error:
            return str(error)
