# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: a bar for each run, or two lines where that is no terminal.

A bar shows how many bytes of the flows have arrived, the virtual time, events a second of real time, and how
long the rest will take if it goes on as it went so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from rich.console import Console

from tailrace.sim.outcome import Progress, Report
from tailrace.spec.text import printable
from tailrace.spec.units import readable_time

_SPEED_S = 30.0
"""The time over which the speed is averaged that tells how long the rest takes."""


_WIDE = 100
"""Columns of a terminal that has room for events a second, too."""


class Display:
    """Shows messages and the progress of runs."""

    def __init__(self, file: IO[str] | None) -> None:
        """Writes to `file`; None: nothing at all.

        A file that goes away, or is full, ends no run: what cannot be told is lost.
        """
        # a notebook's own display would go past the file
        self._console = Console(
            file=None if file is None else cast("IO[str]", _Losing(file)),
            quiet=file is None,
            highlight=False,
            soft_wrap=True,
            force_jupyter=False,
        )
        self._quiet = file is None

    def say(self, text: str) -> None:
        """A line or more about what is going on."""
        self._console.print("\n".join(map(printable, text.split("\n"))), markup=False)

    def warn(self, text: str) -> None:
        """One line about what may be wrong."""
        self.say(f"warning: {text}")

    @contextmanager
    def run(self, name: str) -> Iterator[Report]:
        """Shows one run: gives the callback that takes its progress."""
        if self._quiet:
            yield _nothing
        elif self._console.is_terminal:
            yield from self._bar(name)
        else:
            yield from self._lines(name)

    @contextmanager
    def count(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        """Shows how many of many things are done: gives the callback that takes the name of each."""
        if self._quiet or not self._console.is_terminal:
            yield self._tally(what, total)
            return
        # whoever has no terminal needs no bars
        from rich import progress as bar

        columns = (
            *(bar.TextColumn(what, markup=False), bar.BarColumn(), bar.MofNCompleteColumn()),
            *(bar.TimeElapsedColumn(), bar.TimeRemainingColumn()),
            bar.TextColumn("{task.fields[last]}", markup=False),
        )
        with bar.Progress(*columns, console=self._console, speed_estimate_period=_SPEED_S) as bars:
            task = bars.add_task(what, total=total, last="")
            yield lambda name: bars.update(task, advance=1, last=printable(name))

    def _tally(self, what: str, total: int) -> Callable[[str], None]:
        done = 0

        def one_more(name: str) -> None:
            nonlocal done
            done += 1
            self.say(f"{done} of {total} {what}: {name}")

        return one_more

    def _bar(self, name: str) -> Iterator[Report]:
        from rich import progress as bar

        columns = (
            *(
                bar.TextColumn("{task.description:<20}", markup=False),
                bar.BarColumn(),
                bar.TextColumn("{task.fields[flows]}"),
            ),
            *(bar.TextColumn("{task.fields[now]}"), bar.TimeElapsedColumn(), bar.TimeRemainingColumn()),
        )
        pace = _Pace(with_speed=self._console.width >= _WIDE)
        with bar.Progress(*columns, console=self._console, speed_estimate_period=_SPEED_S) as bars:
            task = bars.add_task(printable(name), total=None, now="", flows="")

            def report(progress: Progress) -> None:
                if progress.note:
                    self.say(progress.note)
                    return
                bars.update(
                    task,
                    completed=progress.share,
                    total=None if progress.share is None else 1.0,
                    flows=f"{progress.done}/{progress.flows} flows" if progress.flows else "",
                    now=pace.text(progress) or progress.phase,
                )

            yield report

    def _lines(self, name: str) -> Iterator[Report]:
        began_s = time.monotonic()
        self.say(f"{name} ...")
        last = Progress("")
        pace = _Pace()
        clock = ""

        def report(progress: Progress) -> None:
            nonlocal last, clock
            if progress.note:
                self.say(progress.note)
                return
            last = progress
            clock = pace.text(progress)

        yield report
        texts = [f"{last.done} of {last.flows} flows", f"{time.monotonic() - began_s:.1f} s", clock]
        self.say(f"{name}: {', '.join(filter(None, texts))}")


class _Losing:
    """A file that may go away."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Writes what can be written."""
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Writes what waits, if it can be written."""
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the file has."""
        return getattr(self._file, name)


class _Pace:
    """How fast virtual time and events go by."""

    def __init__(self, *, with_speed: bool = True) -> None:
        self._began_s, self._with_speed = time.monotonic(), with_speed

    def text(self, progress: Progress) -> str:
        """Virtual time and events a second since the beginning; empty where nobody counts them."""
        if progress.virtual_ns is None:
            return ""
        passed_s = max(time.monotonic() - self._began_s, 1e-3)
        clock = f"{readable_time(progress.virtual_ns)} virtual"
        return f"{clock}, {_short(progress.events / passed_s)} events/s" if self._with_speed else clock


def _short(number: float) -> str:
    """A number with a unit prefix, such as 1.2M."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f}{unit}"
    return f"{number:.0f}"


def _nothing(_progress: Progress) -> None:
    """Progress that nobody looks at."""
