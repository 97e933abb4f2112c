# SPDX-License-Identifier: Apache-2.0
"""Settings of HF2T (Chen et al., APNet 2024) on a NIC: which gaps between packets the NIC stretches, and how
far (§4).

T is the threshold for gaps: a NIC stretches gaps of at least T * alpha, where alpha is that of eq. 1
(hosts.gaps.hf2t).
"""

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
"""The number of gaps that are T or longer, in the sample from which T is learnt.

With 100 such gaps, the share beyond a quantile of a random sample has a relative standard error of
1/sqrt(100), a tenth. A NIC learns T again only if the share of longer gaps has changed by a factor of 2. Gaps
are not a random sample: rates rise and fall with congestion, for example every 55 us with DCQCN. But at
100 Gb/s a NIC has 10000 gaps in about 1 ms, during which rates rise and fall many times.
"""

_PERCENTILE = keys.integer("percentile", "percentile in 1/10000", least=LEAST_PERCENTILE, most=PERMYRIAD - 1)
_TRAIN = keys.integer("train", "gaps from which T is learnt", least=LEAST_TRAIN_GAPS)


def train_gaps(percentile: int) -> int:
    """The sample size that has TAIL_GAPS gaps beyond a percentile (in 1/10000): 10000 for the 99th."""
    return max(LEAST_TRAIN_GAPS, -(-TAIL_GAPS * PERMYRIAD // (PERMYRIAD - percentile)))


@dataclass(frozen=True, slots=True)
class Hf2tConfig:
    """HF2T on a NIC.

    threshold_ns: the switches' flowlet threshold: a packet begins a flowlet if its last bit arrives more than
        this after the last bit of the flow's previous packet.
    percentile: T is this percentile of gaps, in 1/10000 (permyriads), 5000..9999.
    min_thr, max_thr: parameters of eq. 1, in packets, 1 <= min_thr <= max_thr.
    train_gaps: number of gaps from which T is learnt, 100 or more.
    tick_ns: tick of the switches' clocks: gaps are stretched to the threshold plus a tick, so that switches
        measure more than the threshold.
    margin_ns: additional length of stretched gaps, because a process that sends in real time is late by a
        different time for each packet.
    dynamic: alpha is that of eq. 1; otherwise it is 1.
    t_ns: a fixed T, without learning; None: T is learnt.
    spare_bytes: gaps of flows of at most this size are not stretched (HF2T §6 discusses small flows).
    retrain: T is learnt again when the distribution of gaps has changed.
    delay: the packet after such a gap is held until the gap is stretched; otherwise it is sent at once with
        a new UDP source port, which switches hash: another path, without the delay.
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
    delay: bool = True

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        check_keys(self)
        check_setting(
            self.max_thr >= self.min_thr,
            f"max_thr is {self.max_thr}, expected min_thr or more, that is {self.min_thr}",
        )
