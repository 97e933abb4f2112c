# SPDX-License-Identifier: Apache-2.0
"""Timers ring as Python's heap of (time, order, who) would have them."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.codec.timer_heap import new_timer_heap

MOST_NS = (1 << 63) - 1
TIMES = st.integers(0, 20) | st.integers(0, MOST_NS)


@given(st.lists(st.tuples(st.just("set"), TIMES) | st.tuples(st.just("due"), TIMES), max_size=300))
def test_the_order_is_that_of_times_and_then_of_setting(steps: list[tuple[str, int]]) -> None:
    timers, heap = new_timer_heap(), list[tuple[int, int, int]]()
    for number, (step, time_ns) in enumerate(steps):
        if step == "set":
            who = -number if number % 2 else number << 53
            timers.set(time_ns, who)
            heapq.heappush(heap, (time_ns, number, who))
        elif heap and heap[0][0] <= time_ns:
            due_ns, _, who = heapq.heappop(heap)
            assert (timers.due(time_ns), timers.due_ns) == (who, due_ns)
        else:
            assert timers.due(time_ns) is None
        assert timers.first_ns == (heap[0][0] if heap else None)


@pytest.mark.parametrize("bad", [-1, 1 << 63, -(1 << 70), "1", None, 1.5])
def test_what_is_no_time_changes_nothing(bad: object) -> None:
    timers: Any = new_timer_heap()
    for call in (lambda: timers.set(bad, 1), lambda: timers.due(bad)):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            call()
    with pytest.raises((OverflowError, TypeError)):
        timers.set(1, 1 << 63)
    with pytest.raises(TypeError):
        timers.set(1)
    assert timers.first_ns is None
