# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes in two columns: a size, and the share of flows that are no larger.

    0 0                                 separated by blanks or a comma
    10000 15
    30000000 100

Shares end with 100 (percent) or 1. Sizes are bytes; if they count packets, the workload's key `unit` gives
the bytes of a packet. Between two points sizes are interpolated, as HPCC and others do. Homa's files begin
with a line that has only the mean. Their sizes are not interpolated: a flow has the size of a point. The
mean must be that of the points.
"""

from __future__ import annotations

import re
from decimal import Decimal

from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec.constants import MAX_FLOW_BYTES

Points = tuple[tuple[int, float], ...]
"""Sizes with shares from 0 to 1."""

_MOST_POINTS = 1_000_000
_TOLERANCE = Decimal("0.001")
"""How far a file's mean may be from that of its points, as a share of it."""

_NUMBER = re.compile(r"[0-9.]+(?:[eE][+-]?[0-9]+)?")
_Row = tuple[int, Decimal, Decimal]
"""Line, size, share as in the file."""


def _words(words: list[str]) -> list[str]:
    return " ".join(words).replace(",", " ").split()


def _recognises(source: Source) -> bool:
    rows = [_words(words) for words in source.head]
    rows = rows[1:] if rows and len(rows[0]) == 1 and _NUMBER.fullmatch(rows[0][0]) else rows
    return bool(rows) and all(len(row) == 2 and all(map(_NUMBER.fullmatch, row)) for row in rows[:3])


def _read(source: Source) -> Points:
    lines = [(line, _words(words)) for line, words in source.lines()]
    mean = source.decimal(lines[0][0], "mean", lines[0][1][0]) if len(lines[0][1]) == 1 else None
    if len(lines) > _MOST_POINTS:
        raise source.error("", f"more than {_MOST_POINTS} points")
    rows = [_row(source, line, words) for line, words in (lines if mean is None else lines[1:])]
    most = rows[-1][2]
    if most not in (1, 100):
        raise source.error(rows[-1][0], f"the last share is {most}, expected 1 or 100")
    _check(source, rows)
    points = [(round(size), float(share / most)) for _, size, share in rows]
    if mean is None:
        return tuple(points)
    _check_mean(source, mean, rows)
    before = [0.0, *(share for _, share in points)]
    return tuple(
        point
        for (size, share), last in zip(points, before, strict=False)
        for point in ((size, last), (size, share))
    )


def _row(source: Source, line: int, words: list[str]) -> _Row:
    if len(words) != 2:
        raise source.error(line, f"expected a size and a share, found {len(words)} values")
    return line, source.decimal(line, "size", words[0]), source.decimal(line, "share", words[1])


def _check(source: Source, rows: list[_Row]) -> None:
    """Refuses rows that form no cumulative distribution."""
    last_size = last_share = Decimal(0)
    for line, size, share in rows:
        if not last_size <= size <= MAX_FLOW_BYTES:
            raise source.error(line, f"expected a size from {last_size} to {MAX_FLOW_BYTES}, found {size}")
        if share < last_share:
            raise source.error(line, f"expected a share of at least {last_share}, found {share}")
        last_size, last_share = size, share


def _check_mean(source: Source, mean: Decimal, rows: list[_Row]) -> None:
    total = last = Decimal(0)
    for _, size, share in rows:
        total += (share - last) * size
        last = share
    if abs(total / last - mean) > _TOLERANCE * mean:
        raise source.error(1, f"the mean is {mean}, but that of the points is {total / last:.6g}")


def _write(points: Points) -> str:
    return "".join(f"{size} {share!r}\n" for size, share in points)


register(Format("sizes", Kind.SIZES, "two columns of sizes and shares", _recognises, _read, _write))
