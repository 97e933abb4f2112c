# SPDX-License-Identifier: Apache-2.0
"""Gaps between data packets of one flow, as NICs measured them (HF2T §3): a histogram, its file, its shares.

    gaps.parquet   low_ns, count   the gaps of all flows of all NICs: a row a bin, by its smallest gap

Bins are those of tailrace/hosts/gaps/histogram.py, at most 1/128 wide relative to `low_ns`. A bin counts by
its lower edge, so that gaps of at least a threshold, but less than a 128th above it, may be missing from what
`at_least` says, and nothing is there that should not be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tailrace.hosts.gaps.histogram import MOST_BINS, WHOLE, Bin, merged_bins
from tailrace.results.parquet import (
    INTEGER,
    make_table,
    read_parquet,
    refuse_gaps,
    values_of,
    write_parquet,
)

GAPS = "gaps.parquet"
RTTS = (1, 2, 3)
"""The thresholds of HF2T Table 1, in base RTTs."""

_SCHEMA = {"low_ns": INTEGER, "count": INTEGER}


class GapSummary(msgspec.Struct, frozen=True):
    """What summary.json says of the gaps: how many, and how many of at least one, two and three base RTTs."""

    count: int
    at_least_1_rtt: int
    at_least_2_rtt: int
    at_least_3_rtt: int
    rtt_ns: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """A histogram: bins by their lower edges, ascending, none of them empty."""

    bins: tuple[Bin, ...]

    @classmethod
    def merged(cls, histograms: Iterable[Iterable[Bin]]) -> Gaps:
        """The sum of several histograms."""
        return cls(tuple(merged_bins(histograms)))

    @property
    def count(self) -> int:
        """All gaps."""
        return sum(count for _, count in self.bins)

    def at_least(self, gap_ns: int) -> int:
        """The gaps in bins that begin at this one or later."""
        return sum(count for low_ns, count in self.bins if low_ns >= gap_ns)

    def quantile_ns(self, permyriad: int) -> int:
        """The smallest bin that so many of 10,000 gaps do not exceed, by its smallest gap (nearest rank).

        Raises:
            ValueError: there is no gap.
        """
        rank = -(-self.count * permyriad // WHOLE)
        for low_ns, count in self.bins:
            rank -= count
            if rank <= 0:
                return low_ns
        raise ValueError("quantile of no gaps")

    def summary(self, rtt_ns: int) -> GapSummary:
        """The gaps of at least some base RTTs."""
        one, two, three = (self.at_least(number * rtt_ns) for number in RTTS)
        return GapSummary(self.count, one, two, three, rtt_ns)


def write_gaps(gaps: Gaps | None, folder: Path) -> None:
    """Write gaps.parquet, if gaps were measured."""
    if gaps is not None:
        values = {name: [one[number] for one in gaps.bins] for number, name in enumerate(_SCHEMA)}
        write_parquet(make_table(values, _SCHEMA), folder / GAPS)


def clear_gaps(folder: Path) -> None:
    """Take away the gaps of an earlier run, which would be taken for those of the one that replaced it."""
    (folder / GAPS).unlink(missing_ok=True)


def read_gaps(folder: Path) -> Gaps | None:
    """What `write_gaps` wrote into a folder.

    Raises:
        FileError: the file cannot be read, or has other columns.
    """
    path = folder / GAPS
    if not path.exists():
        return None
    table = read_parquet(path, "gaps", _SCHEMA, MOST_BINS)
    refuse_gaps(table, path, "gaps", _SCHEMA)
    values = values_of(table)
    return Gaps(tuple(zip(*(values[name] for name in _SCHEMA), strict=True)))
