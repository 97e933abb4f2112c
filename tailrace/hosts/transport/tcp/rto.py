# SPDX-License-Identifier: Apache-2.0
"""The retransmission timer of the transport tcp (RFC 6298).

    first sample     SRTT = R, RTTVAR = R / 2
    further ones     RTTVAR += (|SRTT - R| - RTTVAR) / 4, then SRTT += (R - SRTT) / 8
    RTO              SRTT + 4 RTTVAR, at least the minimum RTO; it doubles with each timeout

SRTT and RTTVAR are integers in eighths and quarters of a nanosecond, rounded down, so that results are the
same on every machine. Two assumptions: before any sample the RTO is the minimum RTO (the RFC has 1 s, for
unknown networks), and the backoff ends with the first progress instead of the next sample, as in Linux.
"""

from __future__ import annotations


class RtoClock:
    """The retransmission timeout of one flow.

    rto_ns: the current RTO.
    """

    __slots__ = ("_backoff", "_base_ns", "_least_ns", "_most_backoff", "_srtt_x8", "_var_x4", "rto_ns")

    def __init__(self, least_ns: int, most_backoff: int) -> None:
        """Args:
        least_ns: the minimum RTO.
        most_backoff: maximum number of doublings.
        """
        self._least_ns = least_ns
        self._most_backoff = most_backoff
        self._backoff = 0
        self._srtt_x8 = 0  # 0: no sample yet
        self._var_x4 = 0
        self._base_ns = least_ns  # before it was doubled
        self.rto_ns = least_ns

    @property
    def backed_off(self) -> bool:
        """Whether there was a timeout, and no progress since."""
        return self._backoff > 0

    def on_sample(self, rtt_ns: int) -> None:
        """Takes an RTT sample of a packet that was sent only once."""
        if self._srtt_x8 == 0:
            self._srtt_x8 = rtt_ns << 3
            self._var_x4 = rtt_ns << 1
        else:
            error_ns = rtt_ns - (self._srtt_x8 >> 3)
            self._var_x4 += abs(error_ns) - (self._var_x4 >> 2)
            self._srtt_x8 += error_ns
        self._base_ns = max(self._least_ns, (self._srtt_x8 >> 3) + self._var_x4)
        self._set()

    def on_progress(self) -> None:
        """New packets were acknowledged."""
        if self._backoff:
            self._backoff = 0
            self._set()

    def on_timeout(self) -> None:
        """The RTO has expired without progress."""
        self._backoff = min(self._backoff + 1, self._most_backoff)
        self._set()

    def _set(self) -> None:
        self.rto_ns = self._base_ns << self._backoff
