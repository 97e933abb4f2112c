# SPDX-License-Identifier: Apache-2.0
"""Settings of HF2T on a NIC: which gaps it stretches, and how far (HF2T §4)."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.hosts.errors import check_setting
from tailrace.hosts.gaps.histogram import WHOLE

LEAST_PERCENTILE = WHOLE // 2
LEAST_TRAIN_GAPS = 100
TAIL_GAPS = 100
"""So many of the gaps that T is learnt from are to be as long as T or longer. In a random sample the share
beyond a quantile of it has a standard error of 1/sqrt(100), a tenth, then, which is well within the factor of
2 at which a NIC learns anew. And gaps are no random sample: rates go up and down with congestion, DCQCN's
every 55 us. 10000 gaps are what a NIC of 100 Gb/s sends in about 1 ms, so both are among them.
"""


def train_gaps(percentile: int) -> int:
    """How many gaps put TAIL_GAPS beyond a percentile, in permyriads and below 10000: 10000 for the 99th."""
    return max(LEAST_TRAIN_GAPS, -(-TAIL_GAPS * WHOLE // (WHOLE - percentile)))


@dataclass(frozen=True, slots=True)
class Hf2tConfig:
    """HF2T on a NIC.

    threshold_ns: the flowlet threshold: a switch takes a packet for the first of a flowlet when its last
        bit comes more than this after the last bit of the one before it.
    percentile: T is this one of the gaps, in permyriads, 5000..9999.
    min_thr, max_thr: of eq. 1, in packets, 1 <= min_thr <= max_thr.
    train_gaps: gaps from which T is learnt, 100 or more.
    tick_ns: of the switches' clocks: a gap is certain to be longer than the threshold for them when it
        is a tick longer.
    margin_ns: gaps are stretched by so much more, for a process that sends in real time sends one packet
        later than the next one.
    dynamic: T is multiplied by alpha of eq. 1.
    t_ns: T; nothing is learnt. None: it is learnt.
    spare_bytes: flows of at most this size are left alone (HF2T §6 thinks of small flows).
    retrain: T is learnt anew when gaps are not any more what they were.
    """

    threshold_ns: int
    percentile: int
    min_thr: int
    max_thr: int
    train_gaps: int
    tick_ns: int = 1
    margin_ns: int = 0
    dynamic: bool = True
    t_ns: int | None = None
    spare_bytes: int = 0
    retrain: bool = True

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        for name in ("threshold_ns", "tick_ns", "min_thr"):
            value = getattr(self, name)
            check_setting(value > 0, f"{name} is {value}, expected more than 0")
        check_setting(
            LEAST_PERCENTILE <= self.percentile < WHOLE,
            f"percentile is {self.percentile}, expected {LEAST_PERCENTILE}..{WHOLE - 1}",
        )
        check_setting(
            self.max_thr >= self.min_thr,
            f"max_thr is {self.max_thr}, expected min_thr or more, that is {self.min_thr}",
        )
        check_setting(
            self.train_gaps >= LEAST_TRAIN_GAPS,
            f"train_gaps is {self.train_gaps}, expected {LEAST_TRAIN_GAPS} or more",
        )
        check_setting(self.t_ns is None or self.t_ns > 0, f"t_ns is {self.t_ns}, expected more than 0")
        for name in ("spare_bytes", "margin_ns"):
            value = getattr(self, name)
            check_setting(value >= 0, f"{name} is {value}, expected 0 or more")
