# SPDX-License-Identifier: Apache-2.0
"""Intervals and deadlines of a controller, on the clock of its event loop."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tailrace.p4rt.client import CALL_S, PUSH_S

RETRY_SHARE = 1 / 8
"""Of the time for which a switch has been away."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds of the event loop's clock, and counts of rounds.

    interval_s: between rounds of link watching; a direction is dead after `missed` rounds in a row without a
        probe, and a switch that answers nothing for `silent` of them has hung
    late_s: from when on it is told that a switch, or this process, did not keep up with that
    ask_s: how long a switch may take to answer a question
    call_s, push_s: how long a call may take, and the setting of a program
    first_retry_s, longest_retry_s: between two attempts to reach a switch, at least and at most: `retry_s`
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
        """How long to wait before a switch is tried again that has been away for so long: a share of that, so
        that one that comes back is never noticed later than by this share of its absence.
        """
        return min(self.longest_retry_s, max(self.first_retry_s, RETRY_SHARE * lost_s))

    def scaled(self, factor: float) -> Timing:
        """All times multiplied: networks in virtual time live for milliseconds."""
        times = [field.name for field in fields(self) if field.name.endswith("_s")]
        return replace(self, **{name: getattr(self, name) * factor for name in times})
