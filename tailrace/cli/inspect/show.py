# SPDX-License-Identifier: Apache-2.0
"""Reads, filters and shows listings, once or repeatedly: shared by all inspection commands."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from types import FrameType

from tailrace.cli.errors import DONE
from tailrace.cli.inspect.network import InspectedNetwork, NamedReader, find, read_named
from tailrace.cli.options import View, view_of
from tailrace.cli.output import (
    TABLES,
    arranged,
    console,
    filtered,
    print_notes,
    render,
    terminal_width,
)
from tailrace.cli.output import show as show_once
from tailrace.spec import SpecError
from tailrace.tables.listing import Column, Listing, merge
from tailrace.tables.rates import RateColumns
from tailrace.tables.row_filter import RowFilter
from tailrace.tables.table import NOTE, Cells, Segment, TextTable, cells_of, styled

Reader = Callable[[InspectedNetwork], Listing]


def show(args: Namespace, read: Reader) -> Listing:
    """Shows a listing once, or with --watch repeatedly until Ctrl-C.

    Args:
        args: the command line, with the options of cli.options.inspect_options.
        read: makes the listing from the switches.

    Returns:
        the last listing, filtered.

    Raises:
        SpecError: bad input.
        ControllerError: a switch cannot be read.
    """
    if args.rounds is not None and args.watch is None:
        raise SpecError("--rounds goes with --watch")
    view = view_of(args)
    where = None if args.where is None else RowFilter(args.where)
    network = find(args, args.p4info)
    if args.watch is not None:
        return _Watch(view, args.watch, args.rounds, lambda: read(network), where).run()
    listing = filtered(read(network), where)
    show_once(listing, view)
    return listing


def show_named(
    args: Namespace, kind: str, columns: tuple[Column, ...], read: NamedReader, nothing: str = ""
) -> None:
    """Shows the objects of a kind (table, counter, register) that args.switches selects, see `read_named`;
    `nothing`: as in Listing.
    """

    def read_all(network: InspectedNetwork) -> Listing:
        return merge(f"{kind}s", columns, read_named(network, args.switches, kind, read), nothing=nothing)

    show(args, read_all)


def show_planned(args: Namespace, listing: Listing) -> None:
    """Shows a listing that was computed without switches.

    Raises:
        SpecError: bad input, such as --watch, as the listing cannot change.
    """
    if args.watch is not None or args.rounds is not None:
        raise SpecError("--watch goes with a running network")
    show_once(filtered(listing, None if args.where is None else RowFilter(args.where)), view_of(args))


class _Watch:
    """Repeated readings."""

    def __init__(
        self,
        view: View,
        interval_s: float,
        rounds: int | None,
        read: Callable[[], Listing],
        where: RowFilter | None,
    ) -> None:
        self._view, self._interval_s, self._rounds = view, interval_s, rounds
        self._read, self._where = read, where
        self._rates = RateColumns()
        self._stop = threading.Event()

    def run(self) -> Listing:
        """Reads until the last round, and returns its listing; Ctrl-C ends the command with status 0."""
        redraws = self._view.format in TABLES and sys.stdout.isatty()
        try:
            with self._until_interrupted():
                listing = self._redraw() if redraws else self._append()
        except KeyboardInterrupt:
            raise SystemExit(DONE) from None
        if self._stop.is_set():
            raise SystemExit(DONE)
        return listing

    @contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """Within the block the first Ctrl-C ends the rounds after the current reading. The handler only sets
        a flag: Python ignores exceptions in destructors and in callbacks from C, and gRPC has both. The
        second Ctrl-C raises KeyboardInterrupt.
        """

        def on_signal(_signum: int, _frame: FrameType | None) -> None:
            if self._stop.is_set():
                raise KeyboardInterrupt
            self._stop.set()

        before = signal.signal(signal.SIGINT, on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _reading(self) -> Listing:
        listing = self._rates.add(self._read(), time.monotonic())
        return filtered(listing, self._where)

    def _append(self) -> Listing:
        """Writes each reading below the last one, for pipes and files."""
        number, start_s = 0, time.monotonic()
        while True:
            listing = self._reading()
            time_text = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            shown = arranged(listing, self._view)
            sys.stdout.write(render(shown, self._view.format, time_text, header=number == 0))
            sys.stdout.flush()
            if number == 0:
                print_notes(listing)
            number += 1
            if self._is_last(start_s, number):
                return listing

    def _redraw(self) -> Listing:
        """Redraws one table on the terminal for each reading."""
        from rich.live import Live

        number, start_s, before = 0, time.monotonic(), None
        widths: dict[str, int] = {}
        with Live(console=console(), screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                listing = self._reading()
                shown = arranged(listing, self._view)
                live.update(styled(self._screen(shown, before, widths)), refresh=True)
                before = cells_of(shown)
                number += 1
                if self._is_last(start_s, number):
                    return listing

    def _screen(
        self, listing: Listing, before: Cells | None, widths: dict[str, int]
    ) -> Iterator[list[Segment]]:
        """The lines that fit the terminal; if there are more, the last line gives their number."""
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        yield [(f"{clock}, every {self._interval_s:g} s; Ctrl-C ends", NOTE)]
        if not listing.rows:
            yield [(str(listing), "")]
            return
        table = TextTable(listing, terminal_width(self._view), widths=widths)
        lines = list(table.lines(before))
        height = shutil.get_terminal_size().lines - 2
        yield from lines[:height]
        if len(lines) > height:
            yield [(f"{len(lines) - height} more lines; use --where or --sort-by", NOTE)]

    def _is_last(self, start_s: float, number: int) -> bool:
        """Whether that was the last reading; if not, waits until the next one is due. If readings take longer
        than the interval, there is no wait.
        """
        if number == self._rounds:
            return True
        return self._stop.wait(max(0.0, start_s + number * self._interval_s - time.monotonic()))
