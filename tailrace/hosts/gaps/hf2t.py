# SPDX-License-Identifier: Apache-2.0
"""HF2T (Chen et al., APNet 2024, §4): a NIC stretches a few gaps between a flow's packets, so that switches
begin new flowlets.

A gap is the time from the departure of one data packet of a flow to the moment at which the next packet may
be sent, that is, the flow may send (window, pacing, pauses) and the link is free. The NIC compares the gap
with the switches' flowlet threshold and with T * alpha:

    gap > threshold                   the next packet is sent, and begins a flowlet even without stretching
    T * alpha <= gap <= threshold     it is held until the gap is so long that switches begin a new flowlet
    gap < T * alpha                   it is sent

The NIC learns T (`Learner`) from the gaps of all its flows before they are stretched. Until T has been
learnt, no packet is held. alpha is given by eq. 1 with the settings min_thr and max_thr; x is the number of
packets that the flow has sent since the last stretched gap, including the packet after that gap:

    alpha = min_thr / x   for x <= min_thr
            1             for min_thr < x < max_thr
            max_thr / x   for x >= max_thr

Comparisons avoid division: gap * x >= T * min_thr, and so on.

A switch measures gaps between packets' last bits, in ticks of its clock. A packet is held until its last bit
leaves `threshold + tick` after the last bit of the previous packet, plus the rounding error of a clock of
whole ns: 1 ns, or 2 ns if the packets differ in length. A switch next to the NIC thus counts one more flowlet
for each stretched gap. In real-time runs a margin is added, because the process is late by varying times.
"""

from __future__ import annotations

from typing import Final

from tailrace.hosts.gaps.histogram import PERMYRIAD, GapHistogram
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns

UNKNOWN: Final = 0  # T is not learnt yet
GO: Final = 0  # a packet may be sent now
_DISAGREEMENT_FACTOR: Final = 2
_DISAGREEING_WINDOWS: Final = 2
_LEAST_CHANGE_DIVISOR: Final = 16


class Learner:
    """Learns the threshold T for the gaps of one NIC.

    T is a percentile of the first `train_gaps` gaps, for example the 99th; the tail share is the rest, here
    1 %. T is the shortest length such that at most the tail share of the gaps are as long or longer (precise
    to 1/128: hosts.gaps.histogram). After that, every `train_gaps` gaps form a window. A window disagrees
    with T in two cases:
        more than twice the tail share of its gaps are T or longer;
        less than half of the tail share are T or longer, and the window's percentile is less than T by more
        than 1/16.
    If two consecutive windows disagree, T becomes the percentile of the second window. Neither chance in one
    window nor a burst therefore changes T. If very many gaps are equally long, as at the link's rate, fewer
    than the tail share may be longer; because of the condition on the percentile, such windows still agree.

    t_ns: T; UNKNOWN until it is learnt.
    trainings: number of times that T was learnt.
    """

    __slots__ = (
        "_above",
        "_disagreed",
        "_gaps",
        "_learns",
        "_permyriad",
        "_retrain",
        "_tail",
        "_train_gaps",
        "t_ns",
        "trainings",
    )

    def __init__(self, config: Hf2tConfig) -> None:
        """T is UNKNOWN, unless the settings give it."""
        self._permyriad: int = config.percentile
        self._train_gaps: int = config.train_gaps
        # expected number of gaps in a window that are T or longer, times PERMYRIAD
        self._tail = self._train_gaps * (PERMYRIAD - self._permyriad)
        self._learns: bool = config.t_ns is None
        self._retrain: bool = config.retrain
        self._gaps = GapHistogram()
        self._above = 0  # gaps of this window that are T or longer
        self._disagreed = 0  # consecutive windows that disagree
        self.t_ns: int = UNKNOWN if config.t_ns is None else config.t_ns
        self.trainings = 0

    def add(self, gap_ns: int) -> None:
        """Adds the gap before a packet that was sent: its length before stretching."""
        if not self._learns:
            return
        gaps = self._gaps
        gaps.add(gap_ns)
        if gap_ns >= self.t_ns:
            self._above += 1
        if gaps.count >= self._train_gaps:
            self._close_window()

    def _close_window(self) -> None:
        """Handles the end of a window."""
        percentile_ns = max(1, self._gaps.quantile_ns(self._permyriad))
        if self.t_ns == UNKNOWN:
            self._learn(percentile_ns)
        elif self._disagrees(percentile_ns):
            self._disagreed += 1
            if self._disagreed >= _DISAGREEING_WINDOWS:
                self._learn(percentile_ns)
        else:
            self._disagreed = 0
        self._above = 0
        self._gaps.clear()

    def _disagrees(self, percentile_ns: int) -> bool:
        above = self._above * PERMYRIAD
        if above > _DISAGREEMENT_FACTOR * self._tail:
            return True
        return (
            above * _DISAGREEMENT_FACTOR < self._tail
            and (self.t_ns - percentile_ns) * _LEAST_CHANGE_DIVISOR > self.t_ns
        )

    def _learn(self, t_ns: int) -> None:
        self.t_ns = t_ns
        self.trainings += 1
        self._disagreed = 0
        self._learns = self._retrain


class Shaper:
    """Stretches the gaps of one flow.

    stretched: number of stretched gaps.
    stretched_ns: total time by which gaps were stretched.
    natural: number of gaps that were longer than the threshold without stretching.
    moves: whether the packet that was sent last takes a new path instead of being held (config.delay is off);
        such a gap counts as stretched by 0 ns.
    x: packets sent since the last stretched gap, or since the start of the flow.
    """

    __slots__ = (
        "_decided",
        "_delay",
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
        "moves",
        "natural",
        "stretched",
        "stretched_ns",
        "x",
    )

    def __init__(self, config: Hf2tConfig, learner: Learner, link_bps: int) -> None:
        """Args:
        learner: the learner of the NIC.
        link_bps: rate of the NIC's link.
        """
        self._learner = learner
        self._link_bps = link_bps
        self._threshold_ns: int = config.threshold_ns
        # length of a stretched gap; 1 ns is for rounding
        self._enough_ns: int = config.threshold_ns + config.tick_ns + config.margin_ns + 1
        self._delay: bool = config.delay
        self._dynamic: bool = config.dynamic
        self._min_thr: int = config.min_thr
        self._max_thr: int = config.max_thr
        self._frame_bytes = 0  # of the last packet sent
        self._decided = False  # whether the decision about the current gap has been made
        self._stretches = False  # the decision
        self._gap_ns = 0  # length of the gap at the decision
        self.moves = False
        self.stretched = 0
        self.stretched_ns = 0
        self.natural = 0
        self.x = 0

    def hold_ns(self, now_ns: int, last_ns: int, frame_bytes: int) -> int:
        """Decides on a packet that could be sent now.

        Args:
            last_ns: when the flow's last packet was sent; ignored for its first packet.
            frame_bytes: length of the packet's frame.

        Returns:
            GO: the packet is sent now, and counted as sent; or the time, after now, until which it is held.
        """
        if self.x == 0:
            self._on_sent(frame_bytes)
            return GO
        longer_ns = self._longer_ns(frame_bytes)
        if not self._decided:
            self._decided = True
            self._gap_ns = now_ns - last_ns
            self._stretches = self._gap_ns - longer_ns <= self._threshold_ns and self._chosen()
        self.moves = self._stretches and not self._delay
        if self._stretches:
            until_ns = last_ns + self._enough_ns + longer_ns if self._delay else now_ns
            if until_ns > now_ns:
                return until_ns
            if until_ns > last_ns + self._gap_ns:
                self.stretched_ns += until_ns - last_ns - self._gap_ns
            self.stretched += 1
            self.x = 0
        elif self._gap_ns - longer_ns > self._threshold_ns:
            self.natural += 1
        self._learner.add(self._gap_ns)
        self._on_sent(frame_bytes)
        return GO

    def forget(self) -> None:
        """The held packet will not be sent: the gap continues until another packet may be sent."""
        self._decided = False

    def _on_sent(self, frame_bytes: int) -> None:
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
        """A gap between the packets' first bits minus the gap between their last bits."""
        before_bytes = self._frame_bytes
        if frame_bytes == before_bytes:
            return 0
        rate_bps = self._link_bps  # bytes * NS_BITS / rate_bps is a time in ns
        return -(-before_bytes * NS_BITS // rate_bps) - frame_bytes * NS_BITS // rate_bps
