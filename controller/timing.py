# SPDX-License-Identifier: Apache-2.0
"""Intervals and deadlines of a controller, on the clock of its event loop."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tailrace.p4rt.requests import CALL_S, PUSH_S

RETRY_SHARE = 1 / 8
"""Time between two attempts to reach a lost switch, as a share of the time since its loss."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds of the event loop's clock, and counts of rounds.

    interval_s: between rounds of link probes; a direction is dead after `missed` consecutive rounds without a
        probe, and a switch that does not answer for `silent` rounds counts as hung
    late_s: least delay of a switch, or of this process, that is reported
    ask_s: timeout of a query to a switch
    call_s, push_s: timeouts of a call, and of the push of a program
    first_retry_s, longest_retry_s: least and greatest time between two attempts to reach a switch
    """

    interval_s: float = 0.5
    missed: int = 3
    silent: int = 20
    late_s: float = 0.5
    ask_s: float = 2.0
    call_s: float = CALL_S
    push_s: float = PUSH_S
    first_retry_s: float = 0.1
    longest_retry_s: float = 2.0

    def retry_s(self, lost_s: float) -> float:
        """How long to wait before the next attempt to reach a switch lost `lost_s` ago: a share of this time,
        so that its return is noticed after at most this share of its absence.
        """
        return min(self.longest_retry_s, max(self.first_retry_s, RETRY_SHARE * lost_s))

    def scaled(self, factor: float) -> Timing:
        """All times multiplied by a factor, for networks in virtual time, which run for milliseconds."""
        times = [field.name for field in fields(self) if field.name.endswith("_s")]
        return replace(self, **{name: getattr(self, name) * factor for name in times})
