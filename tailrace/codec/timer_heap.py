# SPDX-License-Identifier: Apache-2.0
"""A heap of timers in C: NICs set a timer for nearly every packet."""

from __future__ import annotations

from typing import Protocol

from tailrace.codec.build import codec_extension


class TimerHeap(Protocol):
    """Timers with equal times ring in the order in which they were set. Times are in ns, from 0 on.

    first_ns: when the next timer rings; None: none is set
    due_ns: the time of the timer that was popped last
    """

    @property
    def first_ns(self) -> int | None: ...

    @property
    def due_ns(self) -> int: ...

    def set(self, time_ns: int, timer_id: int, /) -> None:
        """Sets a timer; `timer_id` is a number of at most 63 bits."""
        ...

    def due(self, now_ns: int, /) -> int | None:
        """Pops the next timer due by now; its id, or None."""
        ...


def new_timer_heap() -> TimerHeap:
    """An empty heap.

    Raises:
        BuildError: as `codec_extension`.
    """
    heap: TimerHeap = codec_extension().TimerHeap()
    return heap
