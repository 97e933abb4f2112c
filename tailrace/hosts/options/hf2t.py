# SPDX-License-Identifier: Apache-2.0
"""Settings of HF2T on a NIC: which gaps it stretches, and how far (HF2T §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.hosts.errors import check_keys, check_setting
from tailrace.hosts.gaps.histogram import PERMYRIAD
from tailrace.hosts.options.ranges import ABOVE_0, FROM_0
from tailrace.spec import keys

LEAST_PERCENTILE = PERMYRIAD // 2
LEAST_TRAIN_GAPS = 100
TAIL_GAPS = 100
"""So many of the gaps that T is learnt from are to be as long as T or longer. In a random sample the share
beyond a quantile of it has a standard error of 1/sqrt(100), a tenth, then, which is well within the factor of
2 at which a NIC learns anew. And gaps are no random sample: rates go up and down with congestion, DCQCN's
every 55 us. 10000 gaps are what a NIC of 100 Gb/s sends in about 1 ms, so both are among them.
"""

_PERCENTILE = keys.integer("percentile", "of gaps, in permyriads", least=LEAST_PERCENTILE, most=PERMYRIAD - 1)
_TRAIN = keys.integer("train", "gaps from which T is learnt", least=LEAST_TRAIN_GAPS)


def train_gaps(percentile: int) -> int:
    """How many gaps put TAIL_GAPS beyond a percentile, in permyriads and below 10000: 10000 for the 99th."""
    return max(LEAST_TRAIN_GAPS, -(-TAIL_GAPS * PERMYRIAD // (PERMYRIAD - percentile)))


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

    threshold_ns: Annotated[int, ABOVE_0]
    percentile: Annotated[int, _PERCENTILE]
    min_thr: Annotated[int, ABOVE_0]
    max_thr: int
    train_gaps: Annotated[int, _TRAIN]
    tick_ns: Annotated[int, ABOVE_0] = 1
    margin_ns: Annotated[int, FROM_0] = 0
    dynamic: bool = True
    t_ns: Annotated[int | None, ABOVE_0] = None
    spare_bytes: Annotated[int, FROM_0] = 0
    retrain: bool = True

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        check_keys(self)
        check_setting(
            self.max_thr >= self.min_thr,
            f"max_thr is {self.max_thr}, expected min_thr or more, that is {self.min_thr}",
        )
