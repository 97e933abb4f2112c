# SPDX-License-Identifier: Apache-2.0
"""The retransmission timer of the transport tcp (RFC 6298).

    first RTT sample R    SRTT = R, RTTVAR = R / 2
    further samples R     RTTVAR += (|SRTT - R| - RTTVAR) / 4, then SRTT += (R - SRTT) / 8
    RTO                   SRTT + 4 RTTVAR, at least the minimum RTO; it doubles with each timeout

SRTT and RTTVAR are integers in eighths and quarters of a nanosecond, rounded down, so that results are the
same on every machine. Assumptions: before any sample the RTO is the minimum RTO (in the RFC it is 1 s, for
unknown networks); the backoff ends, as in Linux, with the first progress and not with the next sample.
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
        self._base_ns = least_ns  # the RTO without doublings
        self.rto_ns = least_ns

    @property
    def backed_off(self) -> bool:
        """Whether there was a timeout, and no progress since then."""
        return self._backoff > 0

    def on_sample(self, rtt_ns: int) -> None:
        """Records an RTT sample, of a packet that was sent only once."""
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
        """Ends the backoff, since packets were acknowledged."""
        if self._backoff:
            self._backoff = 0
            self._set()

    def on_timeout(self) -> None:
        """Doubles the RTO, which has expired without progress."""
        self._backoff = min(self._backoff + 1, self._most_backoff)
        self._set()

    def _set(self) -> None:
        self.rto_ns = self._base_ns << self._backoff
