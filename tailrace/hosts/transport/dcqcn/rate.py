# SPDX-License-Identifier: Apache-2.0
"""The reaction point of DCQCN: the rate of one flow (Zhu et al., SIGCOMM 2015, §3.1).

    RC current rate    RT target rate    alpha congestion estimate    N, K, F, g, R_AI, R_HAI: see DcqcnConfig
    T, B number of rises by the timer and by the byte counter since the last CNP

    at line rate --CNP--> limited --RC is the line rate again--> at line rate

* a CNP (eq. 1):           RT = RC, RC = RC (1 - alpha/2), alpha = (1 - g) alpha + g;
                           timer, byte counter, T and B are reset
* no CNP for K (eq. 2):    alpha = (1 - g) alpha
* a rise, when the timer expires or the byte counter is full; T and B do not yet count this rise:
      max(T, B) < F   fast recovery        RC = (RT + RC) / 2 (eq. 3)
      min(T, B) > F   hyper increase       RT = RT + R_HAI, RC = (RT + RC) / 2
      otherwise       additive increase    RT = RT + R_AI,  RC = (RT + RC) / 2 (eq. 4)

There is no slow start: a flow begins at line rate, and timer and counter start at its first CNP.

Assumptions where the description leaves a choice: alpha is 1 at the first CNP, whenever that arrives. Neither
rate exceeds the line rate. At line rate timer and counter stop, while alpha continues to decrease. Fast
recovery with F = 5 halves the distance to RT five times, as the paper says, if the timer alone or the counter
alone causes the rises.

Rates are integers in bit/s. A decrease is rounded down; (RT + RC) / 2 is rounded up, so that RC reaches RT.
alpha is an integer in units of 2^-30. All numbers are thus the same on every machine.
"""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.dcqcn import ADDITIVE_SHARE, HYPER_SHARE, DcqcnConfig

ALPHA_BITS: Final = 30
ONE: Final = 1 << ALPHA_BITS  # alpha = 1


class DcqcnRate:
    """The rate of one flow.

    rate_bps: RC, the current rate.
    target_bps: RT, the target rate.
    alpha: in units of 1/ONE, as of its last update.
    deadline_ns: when the timer expires; NEVER: it is stopped.
    cuts: number of CNPs so far, each of which cut the rate.
    """

    __slots__ = (
        "_additive_bps",
        "_alpha_every_ns",
        "_alpha_since_ns",
        "_clamp",
        "_counter_bytes",
        "_gain",
        "_hyper_bps",
        "_least_bps",
        "_left_bytes",
        "_line_bps",
        "_rises_by_counter",
        "_rises_by_timer",
        "_steps",
        "_timer_ns",
        "alpha",
        "cuts",
        "deadline_ns",
        "rate_bps",
        "target_bps",
    )

    def __init__(self, config: DcqcnConfig, line_bps: int) -> None:
        """Args: line_bps: line rate: the rate of the flow's link."""
        self._line_bps = line_bps
        self._gain: int = round(config.gain * ONE)
        self._alpha_every_ns: int = config.alpha_ns
        self._timer_ns: int = config.timer_ns
        self._counter_bytes: int = config.counter_bytes
        self._steps: int = config.recovery_steps
        additive_bps, hyper_bps = config.additive_bps, config.hyper_bps
        self._additive_bps: int = line_bps // ADDITIVE_SHARE if additive_bps is None else additive_bps
        self._hyper_bps: int = line_bps // HYPER_SHARE if hyper_bps is None else hyper_bps
        self._least_bps: int = min(config.least_bps, line_bps)
        self._clamp: bool = config.clamp
        self._alpha_since_ns = 0
        self._left_bytes = 0  # bytes to send until the byte counter is full
        self._rises_by_timer = 0
        self._rises_by_counter = 0
        self.rate_bps = line_bps
        self.target_bps = line_bps
        self.alpha = ONE
        self.deadline_ns = NEVER
        self.cuts = 0

    @property
    def limited(self) -> bool:
        """Whether the flow is slower than its link."""
        return self.rate_bps < self._line_bps

    def on_cnp(self, now_ns: int) -> None:
        """Handles a CNP: eq. 1."""
        self.on_time(now_ns)
        if self.cuts:
            self._decay(now_ns)
        alpha = self.alpha
        # the paper sets RT at each CNP; without DcqcnConfig.clamp only the first CNP after a rise sets it
        if self._clamp or self._rises_by_timer or self._rises_by_counter:
            self.target_bps = self.rate_bps
        cut_bps = self.rate_bps - (self.rate_bps * alpha >> ALPHA_BITS + 1)
        self.rate_bps = max(cut_bps, self._least_bps)
        self.alpha = alpha - (alpha * self._gain >> ALPHA_BITS) + self._gain
        self._alpha_since_ns = now_ns
        self.cuts += 1
        self._rises_by_timer = self._rises_by_counter = 0
        self._left_bytes = self._counter_bytes
        self.deadline_ns = now_ns + self._timer_ns if self.limited else NEVER

    def _decay(self, now_ns: int) -> None:
        """Applies eq. 2 once for every K since the last change of alpha."""
        periods = (now_ns - self._alpha_since_ns) // self._alpha_every_ns
        self._alpha_since_ns += periods * self._alpha_every_ns
        while periods:
            decrease = self.alpha * self._gain >> ALPHA_BITS
            if decrease == 0:
                return
            self.alpha -= decrease
            periods -= 1

    def on_sent(self, frame_bytes: int) -> None:
        """Counts the bytes of a frame that is sent."""
        if self.deadline_ns == NEVER:
            return
        self._left_bytes -= frame_bytes
        while self._left_bytes <= 0 and self.deadline_ns != NEVER:
            self._left_bytes += self._counter_bytes
            self._rise()
            self._rises_by_counter += 1

    def on_time(self, now_ns: int) -> None:
        """Handles each expiry of the timer up to now."""
        while now_ns >= self.deadline_ns:
            self.deadline_ns += self._timer_ns
            self._rise()
            self._rises_by_timer += 1

    def _rise(self) -> None:
        by_timer, by_counter = self._rises_by_timer, self._rises_by_counter
        if max(by_timer, by_counter) >= self._steps:
            hyper = min(by_timer, by_counter) > self._steps
            self.target_bps += self._hyper_bps if hyper else self._additive_bps
            self.target_bps = min(self.target_bps, self._line_bps)
        self.rate_bps = self.target_bps + self.rate_bps + 1 >> 1
        if not self.limited:
            self.deadline_ns = NEVER
