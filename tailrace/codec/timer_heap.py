# SPDX-License-Identifier: Apache-2.0
"""Who is to be looked at, and when: a heap of times, in C, as NICs set one for nearly every packet."""

from __future__ import annotations

from typing import Protocol

from tailrace.codec.build import codec_extension


class Alarms(Protocol):
    """Equal times ring in the order in which they were set. Times are in ns, from 0 on.

    first_ns: when the next one rings; None: there is none
    due_ns: for when the one was set that was taken off last
    """

    @property
    def first_ns(self) -> int | None: ...

    @property
    def due_ns(self) -> int: ...

    def set(self, time_ns: int, who: int, /) -> None:
        """Rings then; `who` is a number of at most 63 bits."""
        ...

    def due(self, now_ns: int, /) -> int | None:
        """Takes off the next one that has rung by now, who it is for; None: none has."""
        ...


def new_alarms() -> Alarms:
    """None is set.

    Raises:
        BuildError: as `codec_extension`.
    """
    made: Alarms = codec_extension().Alarms()
    return made
