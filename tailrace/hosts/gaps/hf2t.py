# SPDX-License-Identifier: Apache-2.0
"""HF2T: a NIC stretches a few gaps between a flow's packets so that switches begin new flowlets (HF2T §4).

A gap is the time from when one data packet of a flow went to when the next one could go: the flow lets it
(window, pace, pauses) and the link is free. What becomes of it, by the flowlet threshold and by T * alpha:

    gap > threshold                   it goes, and begins a flowlet by itself
    T * alpha <= gap <= threshold     it is held until switches must take it for the first of a new flowlet
    gap < T * alpha                   it goes

T is learnt by the NIC (`Learner`), from the gaps of all its flows as they would be without this; as long as
it is not known nothing is held. alpha is eq. 1, of the number x of packets that the flow has sent since the
last gap that was stretched, the packet after that gap included:

    alpha = min_thr / x   for x <= min_thr
            1             for min_thr < x < max_thr
            max_thr / x   for x >= max_thr

It is computed without division: gap * x >= T * min_thr, and so on.

Flowlets are told apart by last bits, in ticks of the switch's clock. A packet is held until its last bit
leaves `threshold + tick` after that of the one before it, and what a clock of whole ns cannot tell: 1 ns, and
where packets differ in length 2. So a switch next to the NIC counts one more flowlet for each gap that was
stretched. In real time a process is late, now more, now less: there a margin comes on top.
"""

from __future__ import annotations

from typing import Final

from tailrace.hosts.gaps.histogram import PERMYRIAD, GapHistogram
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.spec.constants import NS_BITS

UNKNOWN: Final = 0  # T is not learnt yet
GO: Final = 0  # a packet may go
_SHIFT_FACTOR: Final = 2
_SHIFT_WINDOWS: Final = 2
_LEAST_CHANGE: Final = 16


class Learner:
    """What one NIC takes for a long gap.

    T is the percentile of the first `train_gaps` gaps: the shortest gap such that no more than the rest, 1 %
    say, are as long or longer (to 1/128: hosts.gaps.histogram). Each further `train_gaps` gaps are a window.
    A window disagrees with T where
        more than twice the rest are as long as T or longer, or
        less than half of the rest are, and its own percentile is shorter than T by more than 1/16.
    When two windows in a row do, T becomes the percentile of the second one. Chance in one window, or a
    burst, does not move it; where very many gaps are equally long, as at the link's rate, fewer than the rest
    may be longer, and windows agree all the same.

    t_ns: T; UNKNOWN as long as it is not learnt.
    trainings: times that it was learnt.
    """

    __slots__ = (
        "_above",
        "_disagreed",
        "_gaps",
        "_learns",
        "_permyriad",
        "_rest",
        "_retrain",
        "_train_gaps",
        "t_ns",
        "trainings",
    )

    def __init__(self, config: Hf2tConfig) -> None:
        """Nothing is known but what the settings say."""
        self._permyriad: int = config.percentile
        self._train_gaps: int = config.train_gaps
        # gaps of a window beyond T, times PERMYRIAD
        self._rest = self._train_gaps * (PERMYRIAD - self._permyriad)
        self._learns: bool = config.t_ns is None
        self._retrain: bool = config.retrain
        self._gaps = GapHistogram()
        self._above = 0  # of the window
        self._disagreed = 0  # windows in a row
        self.t_ns: int = UNKNOWN if config.t_ns is None else config.t_ns
        self.trainings = 0

    def add(self, gap_ns: int) -> None:
        """A packet has gone, after a gap that was so long before it was stretched."""
        if not self._learns:
            return
        gaps = self._gaps
        gaps.add(gap_ns)
        if gap_ns >= self.t_ns:
            self._above += 1
        if gaps.count >= self._train_gaps:
            self._close()

    def _close(self) -> None:
        """A window is complete."""
        found_ns = max(1, self._gaps.quantile_ns(self._permyriad))
        if self.t_ns == UNKNOWN:
            self._learn(found_ns)
        elif self._disagrees(found_ns):
            self._disagreed += 1
            if self._disagreed >= _SHIFT_WINDOWS:
                self._learn(found_ns)
        else:
            self._disagreed = 0
        self._above = 0
        self._gaps.clear()

    def _disagrees(self, found_ns: int) -> bool:
        above = self._above * PERMYRIAD
        if above > _SHIFT_FACTOR * self._rest:
            return True
        return above * _SHIFT_FACTOR < self._rest and (self.t_ns - found_ns) * _LEAST_CHANGE > self.t_ns

    def _learn(self, t_ns: int) -> None:
        self.t_ns = t_ns
        self.trainings += 1
        self._disagreed = 0
        self._learns = self._retrain


class Shaper:
    """Stretches the gaps of one flow.

    stretched: gaps that were stretched.
    stretched_ns: how much longer they were for it, in all.
    natural: gaps longer than the threshold by themselves.
    x: packets since the last gap that was stretched, or since the flow began.
    """

    __slots__ = (
        "_decided",
        "_dynamic",
        "_enough_ns",
        "_frame_bytes",
        "_gap_ns",
        "_learner",
        "_link_bps",
        "_max_thr",
        "_min_thr",
        "_stretches",
        "_threshold_ns",
        "natural",
        "stretched",
        "stretched_ns",
        "x",
    )

    def __init__(self, config: Hf2tConfig, learner: Learner, link_bps: int) -> None:
        """Args:
        learner: the NIC's.
        link_bps: rate of its link.
        """
        self._learner = learner
        self._link_bps = link_bps
        self._threshold_ns: int = config.threshold_ns
        self._enough_ns: int = config.threshold_ns + config.tick_ns + config.margin_ns + 1
        self._dynamic: bool = config.dynamic
        self._min_thr: int = config.min_thr
        self._max_thr: int = config.max_thr
        self._frame_bytes = 0  # of the last packet that went
        self._decided = False  # what becomes of the present gap
        self._stretches = False
        self._gap_ns = 0  # as it was then
        self.stretched = 0
        self.stretched_ns = 0
        self.natural = 0
        self.x = 0

    def hold_ns(self, now_ns: int, last_ns: int, frame_bytes: int) -> int:
        """Asks for a packet that could go now; GO: it goes, and counts as gone.

        Args:
            last_ns: when the flow's last packet went; of no meaning for its first one.
            frame_bytes: length of the packet's frame.

        Returns:
            Otherwise until when it is held: later than now.
        """
        if self.x == 0:
            self._goes(frame_bytes)
            return GO
        longer_ns = self._longer_ns(frame_bytes)
        if not self._decided:
            self._decided = True
            self._gap_ns = now_ns - last_ns
            self._stretches = self._gap_ns - longer_ns <= self._threshold_ns and self._chosen()
        if self._stretches:
            until_ns = last_ns + self._enough_ns + longer_ns
            if until_ns > now_ns:
                return until_ns
            if until_ns > last_ns + self._gap_ns:
                self.stretched_ns += until_ns - last_ns - self._gap_ns
            self.stretched += 1
            self.x = 0
        elif self._gap_ns - longer_ns > self._threshold_ns:
            self.natural += 1
        self._learner.add(self._gap_ns)
        self._goes(frame_bytes)
        return GO

    def forget(self) -> None:
        """The packet that was held is not to be sent any more: the gap is still open."""
        self._decided = False

    def _goes(self, frame_bytes: int) -> None:
        self._decided = False
        self._frame_bytes = frame_bytes
        self.x += 1

    def _chosen(self) -> bool:
        """Whether the gap is at least T * alpha (eq. 1)."""
        gap_ns, t_ns, x = self._gap_ns, self._learner.t_ns, self.x
        if t_ns == UNKNOWN:
            return False
        if self._dynamic:
            if x <= self._min_thr:
                return gap_ns * x >= t_ns * self._min_thr
            if x >= self._max_thr:
                return gap_ns * x >= t_ns * self._max_thr
        return gap_ns >= t_ns

    def _longer_ns(self, frame_bytes: int) -> int:
        """How much longer a gap between the starts of packets must be than one between their last bits."""
        before_bytes = self._frame_bytes
        if frame_bytes == before_bytes:
            return 0
        rate_bps = self._link_bps
        return -(-before_bytes * NS_BITS // rate_bps) - frame_bytes * NS_BITS // rate_bps
