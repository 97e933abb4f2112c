# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes in two columns: a size, and the share of flows that are no larger.

    0 0                                 separated by blanks or a comma
    10000 15
    30000000 100

Shares end with 100 (percent) or 1. Sizes are bytes; if they count packets, the workload's key `unit` gives
the bytes of a packet. Between two points sizes are interpolated, as HPCC and others do. Homa's files begin
with a line that has only the mean. Their sizes are not interpolated: a flow has the size of a point. The mean
must be that of the points.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.formats.registry import Kind, Source, register
from tailrace.spec.constants import MAX_FLOW_BYTES

Points = tuple[tuple[int, float], ...]
"""Sizes with shares from 0 to 1."""

_MOST_POINTS = 1_000_000
_TOLERANCE = 0.001
"""How far a file's mean may be from that of its points, as a share of it."""

_NUMBER = re.compile(r"[0-9.]+(?:[eE][+-]?[0-9]+)?")


def _words(words: list[str]) -> list[str]:
    return " ".join(words).replace(",", " ").split()


def _recognises(source: Source) -> bool:
    rows = [_words(words) for words in source.head[:4]]
    points = rows[1:] if rows and len(rows[0]) == 1 else rows[:3]
    words = [word for row in (*rows[:1], *points) for word in row]
    return bool(points) and {len(row) for row in points} == {2} and all(map(_NUMBER.fullmatch, words))


def _read(source: Source) -> Points:
    lines = [(line, _words(words)) for line, words in source.lines()]
    mean = float(source.decimal(1, "mean", lines.pop(0)[1][0])) if len(lines[0][1]) == 1 else None
    if len(lines) > _MOST_POINTS:
        raise source.error("", f"more than {_MOST_POINTS} points")
    points: list[tuple[int, float]] = []
    for line, words in lines:
        if len(words) != 2:
            raise source.error(line, f"expected a size and a share, found {len(words)} values")
        size, share = (source.decimal(line, "number", word) for word in words)
        points.append((round(size), float(share)))
    most = check_points(source, [line for line, _ in lines], points, (1, 100))
    points = [(size, share / most) for size, share in points]
    if mean is None:
        return tuple(points)
    before = [0.0, *(share for _, share in points)]
    mean_of_points = sum(size * (share - last) for (size, share), last in zip(points, before, strict=False))
    if abs(mean_of_points - mean) > _TOLERANCE * mean:
        raise source.error(1, f"the mean is {mean:g}, but that of the points is {mean_of_points:g}")
    steps = (((size, last), (size, share)) for (size, share), last in zip(points, before, strict=False))
    return tuple(point for step in steps for point in step)


def check_points(
    source: Source, places: Sequence[str | int], points: Sequence[tuple[int, float]], ends: Sequence[float]
) -> float:
    """Refuses points that form no cumulative distribution (FileError); `places` has the line or key of each.
    Returns the last share, which is one of `ends`.
    """
    last_size, last_share = 0, 0.0
    for where, (size, share) in zip(places, points, strict=True):
        if not last_size <= size <= MAX_FLOW_BYTES:
            raise source.error(where, f"expected a size from {last_size} to {MAX_FLOW_BYTES}, found {size}")
        if not last_share <= share <= max(ends):
            raise source.error(where, f"expected a share from {last_share:g} to {max(ends)}, found {share:g}")
        last_size, last_share = size, share
    if last_share not in ends:
        expected = " or ".join(map(str, ends))
        raise source.error(places[-1], f"expected {expected} as the last share, found {last_share:g}")
    return last_share


def _write(points: Points) -> str:
    return "".join(f"{size} {share!r}\n" for size, share in points)


register("sizes", Kind.SIZES, "two columns of sizes and shares", _recognises, _read, _write)
