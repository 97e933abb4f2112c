# SPDX-License-Identifier: Apache-2.0
"""How late things were done, in constant space."""

from __future__ import annotations

from tailrace.hosts.gaps.histogram import PERMYRIAD, GapHistogram


class Lag:
    """Counts delays. `max_ns`: the longest."""

    def __init__(self) -> None:
        """Nothing counted."""
        self._delays = GapHistogram()
        self.max_ns = 0

    def add(self, lag_ns: int) -> None:
        """One delay, 0..2^61 ns."""
        self._delays.add(lag_ns)
        self.max_ns = max(self.max_ns, lag_ns)

    def quantile_ns(self, share: float) -> int:
        """A bound that this share of all delays keeps, at most a 128th too large; 0 without any."""
        return min(self._delays.quantile_ns(round(share * PERMYRIAD)), self.max_ns)
