# SPDX-License-Identifier: Apache-2.0
"""The record of what was run, as a table: how many scenarios there were, and how many faults they have found.

A line of the record is a JSON object: a range of seeds that was run (`first`, `last`, `failed`, `seconds`,
with the drawing's `version` and the `commit`), or a fault that was found then and mended (`found`, in words).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tailrace.words import SpecError

WIDTH = 40
"""Of the longest bar."""


class Done(msgspec.Struct):
    """A line of the record."""

    first: int = 0
    last: int = -1
    failed: dict[int, str] | list[int] = msgspec.field(default_factory=list)
    seconds: int = 0
    version: int = 1
    commit: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """After so many scenarios so many were broken, and so many different faults were known."""

    scenarios: int
    broken: int
    faults: int


def points(lines: Sequence[str]) -> Iterator[Point]:
    """The curve, a point for each line that ran scenarios.

    Raises:
        SpecError: a line is none of a record.
    """
    scenarios = broken = faults = 0
    last: Point | None = None
    for number, line in enumerate(lines, 1):
        try:
            done = msgspec.json.decode(line, type=Done)
        except msgspec.DecodeError as error:
            raise SpecError(f"record: line {number}: {error}") from None
        if done.found:
            faults += 1
            if last is not None:
                last = Point(last.scenarios, last.broken, faults)
            continue
        if last is not None:
            yield last
        scenarios += done.last - done.first + 1
        broken += len(done.failed)
        last = Point(scenarios, broken, faults)
    if last is not None:
        yield last


def curve(lines: Sequence[str]) -> list[str]:
    """The table, one line a row: for each step of the number of scenarios what was known by then."""
    found = list(points(lines))
    if not found:
        return ["nothing was run"]
    most = max(1, found[-1].faults)
    rows = ["| scenarios | broke a promise | faults known | |", "|---:|---:|---:|---|"]
    shown = Point(0, 0, -1)
    for point in found:
        again = point.faults == shown.faults and point.scenarios < 1.3 * shown.scenarios
        if again and point is not found[-1]:
            continue
        bar = "█" * round(WIDTH * point.faults / most)
        rows.append(f"| {point.scenarios} | {point.broken} | {point.faults} | {bar} |")
        shown = point
    return rows
