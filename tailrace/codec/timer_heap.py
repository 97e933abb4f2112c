# SPDX-License-Identifier: Apache-2.0
"""A heap of timers, in C, since NICs set a timer for nearly every packet."""

from __future__ import annotations

from typing import Protocol

from tailrace.codec.build import codec_extension


class TimerHeap(Protocol):
    """Timers with equal times expire in the order in which they were set. Times are in ns, at least 0.

    first_ns: when the next timer expires; None: no timer is set
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
        """Pops the next timer that has expired by now, and returns its id; None if there is none."""
        ...


def new_timer_heap() -> TimerHeap:
    """An empty heap.

    Raises:
        BuildError: as `codec_extension`.
    """
    heap: TimerHeap = codec_extension().TimerHeap()
    return heap
