# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: a bar for each run, or two lines where that is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from experiments.backend import Progress, Report


class Display:
    """Shows messages and the progress of runs."""

    def __init__(self, file: IO[str], *, quiet: bool = False) -> None:
        """Writes to `file`, or nowhere but for warnings when `quiet`."""
        self._console = Console(file=file, highlight=False, soft_wrap=True)
        self._quiet = quiet

    def say(self, text: str) -> None:
        """One line about what is going on."""
        if not self._quiet:
            self._console.print(text, markup=False)

    def warn(self, text: str) -> None:
        """One line that is never left out."""
        self._console.print(f"warning: {text}", markup=False)

    @contextmanager
    def run(self, name: str) -> Iterator[Report]:
        """Shows one run: gives the callback that takes its progress."""
        if self._quiet:
            yield _nothing
        elif self._console.is_terminal:
            yield from self._bar(name)
        else:
            yield from self._lines(name)

    def _bar(self, name: str) -> Iterator[Report]:
        columns = (
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("flows"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[phase]}"),
        )
        with Bars(*columns, console=self._console) as bars:
            task = bars.add_task(name, total=None, phase="")

            def report(progress: Progress) -> None:
                bars.update(task, completed=progress.done, total=progress.flows or None, phase=progress.phase)

            yield report
            bars.update(task, phase="")

    def _lines(self, name: str) -> Iterator[Report]:
        began_s = time.monotonic()
        self.say(f"{name} ...")
        last = Progress("")

        def report(progress: Progress) -> None:
            nonlocal last
            last = progress

        yield report
        self.say(f"{name}: {last.done} of {last.flows} flows, {time.monotonic() - began_s:.1f} s")


def _nothing(_progress: Progress) -> None:
    """Progress that nobody looks at."""
