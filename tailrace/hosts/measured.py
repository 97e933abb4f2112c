# SPDX-License-Identifier: Apache-2.0
"""Measurements of NICs: gaps between a flow's packets (Table 1 of HF2T, Chen et al., APNet 2024), and the
thresholds that NICs learnt: with HF2T a NIC stretches gaps above its threshold, that is, it holds the packet
after the gap until switches must detect a new flowlet (HF2T §4, hosts.gaps.hf2t).

mypyc, which compiles the NICs' other modules to C, does not compile this one: its objects are pickled and
sent between processes, and objects of compiled classes cannot be pickled by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tailrace.hosts.gaps.histogram import PERMYRIAD, Bin, merged_bins

RTTS = (1, 2, 3)
"""The thresholds of HF2T Table 1, in base RTTs."""


class GapSummary(msgspec.Struct, frozen=True):
    """The gaps in summary.json: their number, and how many lasted at least one, two and three base RTTs."""

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
        """The number of all gaps."""
        return sum(count for _, count in self.bins)

    def at_least(self, gap_ns: int) -> int:
        """The number of gaps in bins whose lower edge is `gap_ns` or more."""
        return sum(count for low_ns, count in self.bins if low_ns >= gap_ns)

    def quantile_ns(self, permyriad: int) -> int:
        """The quantile (nearest rank) at permyriad/10,000, as the lower edge of its bin.

        Raises:
            ValueError: there is no gap.
        """
        rank = -(-self.count * permyriad // PERMYRIAD)
        for low_ns, count in self.bins:
            rank -= count
            if rank <= 0:
                return low_ns
        raise ValueError("quantile of no gaps")

    def summary(self, rtt_ns: int) -> GapSummary:
        """The numbers of gaps of at least one, two and three base RTTs, each of `rtt_ns`."""
        rtt_1, rtt_2, rtt_3 = (self.at_least(number * rtt_ns) for number in RTTS)
        return GapSummary(self.count, rtt_1, rtt_2, rtt_3, rtt_ns)


@dataclass(frozen=True, slots=True)
class Learned:
    """What one NIC has learnt. t_ns: threshold T (0: not yet learnt); trainings: how often T was learnt."""

    t_ns: int
    trainings: int
