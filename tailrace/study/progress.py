# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: a bar for each run, or two lines of text if standard error is not a terminal.

A bar shows the share of the flows' bytes that have arrived, the virtual (simulated) time, events per second
of real time since the traffic began, and the remaining time at the present speed.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, cast

from tailrace.sim.outcome import STOPPED, Progress, Report
from tailrace.spec.text import printable
from tailrace.spec.units import readable_time

if TYPE_CHECKING:
    from rich.console import Console

_SPEED_S = 30.0
"""Time in s over which the speed is averaged to estimate the remaining time."""


_WIDE = 100
"""Minimum width of a terminal, in columns, at which bars also show events per second."""


class Display:
    """Shows messages and the progress of runs."""

    def __init__(self, file: IO[str] | None) -> None:
        """Writes to `file`; None: nothing is shown.

        If the file is closed or the disk is full, messages are lost, and runs continue.
        """
        self._file = None if file is None else _BestEffortFile(file)
        self._console = _console(file) if file is not None and file.isatty() else None

    def say(self, text: str) -> None:
        """Shows one or more lines about what is happening."""
        shown = "\n".join(map(printable, text.split("\n")))
        if self._console is not None:
            self._console.print(shown, markup=False)
        elif self._file is not None:
            self._file.write(f"{shown}\n")
            self._file.flush()

    def warn(self, text: str) -> None:
        """Shows one line about something that may be wrong."""
        self.say(f"warning: {text}")

    @contextmanager
    def run(self, name: str) -> Iterator[Report]:
        """Shows the progress of one run; yields the callback that reports the progress."""
        if self._file is None:
            yield lambda _progress: None
        elif self._console is not None:
            yield from self._bar(name, self._console)
        else:
            yield from self._lines(name)

    @contextmanager
    def count(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        """Shows how many of `total` items are done; yields a callback for the name of each done item.

        `what`: the kind of items, a plural noun.
        """
        if self._console is None:
            numbers = itertools.count(1)
            yield lambda name: self.say(f"{next(numbers)} of {total} {what}: {name}")
            return
        from rich import progress as bar

        columns = (
            *(bar.TextColumn(what, markup=False), bar.BarColumn(), bar.MofNCompleteColumn()),
            *(bar.TimeElapsedColumn(), bar.TimeRemainingColumn()),
            bar.TextColumn("{task.fields[last]}", markup=False),
        )
        with bar.Progress(*columns, console=self._console, speed_estimate_period=_SPEED_S) as bars:
            task = bars.add_task(what, total=total, last="")
            yield lambda name: bars.update(task, advance=1, last=printable(name))

    def _bar(self, name: str, console: Console) -> Iterator[Report]:
        from rich import progress as bar

        columns = (
            *(
                bar.TextColumn("{task.description:<20}", markup=False),
                bar.BarColumn(),
                bar.TextColumn("{task.fields[flows]}"),
            ),
            *(bar.TextColumn("{task.fields[now]}"), bar.TimeElapsedColumn(), bar.TimeRemainingColumn()),
        )
        pace = _Pace(with_speed=console.width >= _WIDE)
        settings: dict[str, Any] = {"speed_estimate_period": _SPEED_S, "get_time": pace.now_s}
        with bar.Progress(*columns, console=console, **settings) as bars:
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
        texts = [f"{last.done} of {last.flows} flows", f"{pace.now_s():.1f} s", clock]
        self.say(f"{name}: {', '.join(filter(None, texts))}")


def _console(terminal: IO[str]) -> Console:
    # imported late: only terminals need rich
    from rich.console import Console

    # in a notebook, rich would otherwise write to the cell's output instead of the file
    file = cast("IO[str]", _BestEffortFile(terminal))
    return Console(file=file, highlight=False, soft_wrap=True, force_jupyter=False)


class _BestEffortFile:
    """A file that ignores errors of writing."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Writes the text, and returns its length even if that fails."""
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes the file, and ignores errors."""
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        """Returns any other attribute from the file."""
        return getattr(self._file, name)


class _Pace:
    """A clock of a run, which stops with it; text about the virtual time and the rate of events."""

    def __init__(self, *, with_speed: bool = True) -> None:
        self._began_s, self._with_speed = time.monotonic(), with_speed
        self._stopped_s: float | None = None
        self._traffic_s: float | None = None  # when the traffic began: programs are compiled before

    def now_s(self) -> float:
        """The real time in s since the run began, without its stops."""
        return (self._stopped_s or time.monotonic()) - self._began_s

    def text(self, progress: Progress) -> str:
        """Virtual time, and events per second of real time; empty if the target has no virtual time."""
        if progress.phase == STOPPED:
            self._stopped_s = self._stopped_s or time.monotonic()
        elif self._stopped_s is not None:
            self._began_s += time.monotonic() - self._stopped_s
            self._stopped_s = None
        if self._traffic_s is None and progress.phase != "starting":
            self._traffic_s = self.now_s()
        if progress.virtual_ns is None or self._traffic_s is None:
            return ""
        passed_s = max(self.now_s() - self._traffic_s, 1e-3)
        clock = f"{readable_time(progress.virtual_ns)} virtual"
        return f"{clock}, {_short(progress.events / passed_s)} events/s" if self._with_speed else clock


def _short(number: float) -> str:
    """A number with a unit prefix, such as 1.2M."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f}{unit}"
    return f"{number:.0f}"
