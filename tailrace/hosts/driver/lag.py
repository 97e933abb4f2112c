# SPDX-License-Identifier: Apache-2.0
"""A histogram of how late events were handled, in constant memory."""

from __future__ import annotations

from tailrace.hosts.gaps.histogram import PERMYRIAD, GapHistogram


class Lag:
    """Counts delays. `max_ns`: the longest."""

    def __init__(self) -> None:
        """There are no delays yet."""
        self._delays = GapHistogram()
        self.max_ns = 0

    def add(self, lag_ns: int) -> None:
        """Adds one delay, 0..2^61 ns."""
        self._delays.add(lag_ns)
        self.max_ns = max(self.max_ns, lag_ns)

    def quantile_ns(self, share: float) -> int:
        """The quantile of the delays at `share` (0 to 1), at most 1/128 too large; 0 without delays."""
        return min(self._delays.quantile_ns(round(share * PERMYRIAD)), self.max_ns)
