# SPDX-License-Identifier: Apache-2.0
"""Memory that is free goes back to the system.

The heap keeps what a thousand streams, or a pipeline, have taken, though they have gone (words.heap). And
Python's search for cycles is kept away from what has lived for long, as among a million entries it would stop
everybody (switchd/cli.py), so calls that lived for long and ended with an error would stay. Both are seen to
a moment after streams, pipelines and large requests have ended, in another thread.
"""

from __future__ import annotations

import gc

from tailrace.words import heap

TRIM_S = 2.0
"""Between two times at least."""

TIMES = 2
"""So often for what was freed: connections go a while after their streams."""

COLLECT_S = 60.0
"""Between two searches for cycles at least."""

MOST_OBJECTS = 200_000
"""With more objects than these that have lived for long there is no search: it would take 10 ms and more."""

MANY = 64
"""Updates of a request after which it is worth while."""


class GivingBack:
    """What has been freed since the last time, and when the next time is. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._times = 0
        self._trimmed_s = self._collected_s = float("-inf")

    def freed(self) -> None:
        """Says that much may be free."""
        self._times = TIMES

    def due(self, now_s: float) -> bool:
        """Whether `give_back` is worth while now."""
        if not self._times or now_s < self._trimmed_s + TRIM_S:
            return False
        self._times, self._trimmed_s = self._times - 1, now_s
        return True

    def give_back(self, now_s: float) -> None:
        """Gives back what is free. May be called in any thread."""
        if now_s >= self._collected_s + COLLECT_S:
            self._collected_s = now_s  # also where nothing is searched: to count takes a while, too
            if len(gc.get_objects(generation=2)) <= MOST_OBJECTS:
                gc.collect()
        heap.trim()
