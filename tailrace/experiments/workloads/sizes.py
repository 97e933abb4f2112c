# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes: a single size, or points of a measured cumulative distribution (CDF), by name
(workloads/cdf/NAME.toml) or from a user's file.

Between two points the curve is a straight line: sizes in between are equally likely. A share above 0 at the
first point is the share of flows of exactly that size; a jump is written as two points of the same size.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.spec import SpecError
from tailrace.spec.files import text_of
from tailrace.spec.spec_string import is_file

Point = tuple[int, float]
"""A size in bytes, and the share (0 to 1) of flows that are no larger."""


@dataclass(frozen=True, slots=True)
class SizeCdf:
    """A distribution, as one or more points: sizes and shares never decrease, and the last share is 1."""

    points: tuple[Point, ...]
    _sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _shares: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Stores sizes and shares in separate tuples for binary search."""
        object.__setattr__(self, "_sizes", tuple(size for size, _ in self.points))
        object.__setattr__(self, "_shares", tuple(share for _, share in self.points))

    @classmethod
    def always(cls, size_bytes: int) -> SizeCdf:
        """The distribution in which every flow has this size; `draw` then uses no random number."""
        return cls(((size_bytes, 1.0),))

    def in_units(self, unit_bytes: int) -> SizeCdf:
        """The distribution in bytes, if the sizes of this one are multiples of `unit_bytes`."""
        return SizeCdf(tuple((size * unit_bytes, share) for size, share in self.points))

    def clipped(self, most_bytes: int) -> SizeCdf:
        """The same distribution, with all larger sizes reduced to `most_bytes`."""
        if self._sizes[-1] <= most_bytes:
            return self
        index = bisect_left(self._sizes, most_bytes)
        if index == 0:
            return SizeCdf.always(most_bytes)
        low, below = self.points[index - 1]
        high, above = self.points[index]
        share = below + (most_bytes - low) / (high - low) * (above - below)
        return SizeCdf((*self.points[:index], (most_bytes, share), (most_bytes, 1.0)))

    @property
    def mean_bytes(self) -> float:
        """The mean of the curve; rounding in `draw` (to at least 1 byte) changes it by less than a byte."""
        mean = self._sizes[0] * self._shares[0]
        for (low, below), (high, above) in zip(self.points, self.points[1:], strict=False):
            mean += (above - below) * (low + high) / 2
        return mean

    def quantile(self, share: float) -> float:
        """The size that this share of flows, from 0 to 1, does not exceed."""
        index = bisect_left(self._shares, share)
        if index == 0:
            return float(self._sizes[0])
        low, below = self.points[index - 1]
        high, above = self.points[index]
        return low + (share - below) / (above - below) * (high - low)

    def draw(self, rng: random.Random) -> int:
        """A size by inverse transform: the quantile of a number from 0 to 1, rounded."""
        if len(self.points) == 1:
            return max(1, self._sizes[0])
        return max(1, round(self.quantile(rng.random())))


FOLDER = Path(__file__).resolve().parent / "cdf"
NAMES = ("websearch", "enterprise", "alibaba", "datamining", "hadoop", "webserver", "cachefollower")


def find_cdf(text: str) -> SizeCdf:
    """The distribution with a name of NAMES, or that of a user's file in any format of `tailrace.formats`.

    Raises:
        SpecError: `text` is neither a known name nor a file name, which contains a dot or slash.
        FileError: the file cannot be read, or its content is invalid.
    """
    from tailrace.formats.registry import Kind, Source, read_file

    if text in NAMES:
        from tailrace.formats.sizes_toml import read_sizes

        path = FOLDER / f"{text}.toml"
        return SizeCdf(read_sizes(Source(path, text=text_of(path))))
    if not is_file(text):
        raise SpecError(f"cdf {text!r} is not known; expected {', '.join(NAMES)} or FILE")
    return SizeCdf(read_file(Path(text), Kind.SIZES)[1])


def name_of(sizes: SizeCdf) -> str:
    """The name of a distribution of NAMES; a fixed description for any other distribution."""
    return next((name for name in NAMES if find_cdf(name) == sizes), "a custom distribution")
