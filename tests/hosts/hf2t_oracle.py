# SPDX-License-Identifier: Apache-2.0
"""HF2T step by step, as the paper's Fig. 4 and eq. 1 have it: fractions, lists that are sorted, no bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tailrace.hosts.options.hf2t import Hf2tConfig


def alpha(x: int, min_thr: int, max_thr: int) -> Fraction:
    """Eq. 1."""
    if x <= min_thr:
        return Fraction(min_thr, x)
    if x < max_thr:
        return Fraction(1)
    return Fraction(max_thr, x)


def edge(gap_ns: int) -> int:
    """The least number that is not less and has its first eight binary digits only."""
    unit = 1
    while gap_ns > 255 * unit:
        unit *= 2
    return -(-gap_ns // unit) * unit


def percentile(gaps: list[int], permyriad: int) -> int:
    """The least edge that no more than the rest of the gaps reach."""
    rest = len(gaps) * (10_000 - permyriad) // 10_000
    longest_first = sorted(gaps, reverse=True)
    # one more than the longest gap that must stay below
    return max(1, edge(longest_first[rest] + 1))


@dataclass
class OracleLearner:
    """T: that of the first window, and of the second of two in a row that disagree with it."""

    config: Hf2tConfig
    gaps: list[int] = field(default_factory=list)  # all of them
    t_ns: int | None = None
    trainings: int = 0
    disagreed: bool = False

    def __post_init__(self) -> None:
        self.t_ns = self.config.t_ns

    def add(self, gap_ns: int) -> None:
        config = self.config
        if config.t_ns is not None:
            return
        self.gaps.append(gap_ns)
        if len(self.gaps) % config.train_gaps:
            return
        window = self.gaps[-config.train_gaps :]
        trained_ns = percentile(window, config.percentile)
        if self.t_ns is None:
            self.t_ns, self.trainings = trained_ns, 1
            return
        share = Fraction(sum(gap >= self.t_ns for gap in window), len(window))
        rest = 1 - Fraction(config.percentile, 10_000)
        shorter = Fraction(self.t_ns - trained_ns, self.t_ns) > Fraction(1, 16)
        disagrees = share > 2 * rest or (share < rest / 2 and shorter)
        if disagrees and self.disagreed and config.retrain:
            self.t_ns, self.disagreed = trained_ns, False
            self.trainings += 1
        else:
            self.disagreed = disagrees


@dataclass
class Packet:
    """A packet: how long after the last one it could go, its length, and what became of it."""

    gap_ns: int
    frame_bytes: int
    left_ns: int = 0
    stretched: bool = False
    natural: bool = False


def shape(packets: list[Packet], config: Hf2tConfig, link_bps: int, learner: OracleLearner) -> None:
    """Says what becomes of the packets of one flow, the first of which can go at 0.

    Lengths that take whole ns on the link; others are rounded where the NIC rounds.
    """
    since = 0
    for number, packet in enumerate(packets):
        if number == 0:
            packet.left_ns = 0
            since = 1
            continue
        before = packets[number - 1]
        last_ns, longer_ns = before.left_ns, 0
        if before.frame_bytes != packet.frame_bytes:
            longer_ns = -(-before.frame_bytes * 8_000_000_000 // link_bps)
            longer_ns -= packet.frame_bytes * 8_000_000_000 // link_bps
        between_last_bits_ns = packet.gap_ns - longer_ns
        packet.left_ns = last_ns + packet.gap_ns
        factor = alpha(since, config.min_thr, config.max_thr) if config.dynamic else Fraction(1)
        if between_last_bits_ns > config.threshold_ns:
            packet.natural = True
        elif learner.t_ns is not None and packet.gap_ns >= learner.t_ns * factor:
            packet.stretched = True
            aim_ns = last_ns + config.threshold_ns + config.tick_ns + config.margin_ns + 1 + longer_ns
            packet.left_ns = max(packet.left_ns, aim_ns)
            since = 0
        learner.add(packet.gap_ns)
        since += 1
