# SPDX-License-Identifier: Apache-2.0
"""Alarms ring as Python's heap of (time, order, who) would have them."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.codec.timer_heap import new_alarms

MOST_NS = (1 << 63) - 1
TIMES = st.integers(0, 20) | st.integers(0, MOST_NS)


@given(st.lists(st.tuples(st.just("set"), TIMES) | st.tuples(st.just("due"), TIMES), max_size=300))
def test_the_order_is_that_of_times_and_then_of_setting(steps: list[tuple[str, int]]) -> None:
    alarms, heap = new_alarms(), list[tuple[int, int, int]]()
    for number, (step, time_ns) in enumerate(steps):
        if step == "set":
            who = -number if number % 2 else number << 53
            alarms.set(time_ns, who)
            heapq.heappush(heap, (time_ns, number, who))
        elif heap and heap[0][0] <= time_ns:
            due_ns, _, who = heapq.heappop(heap)
            assert (alarms.due(time_ns), alarms.due_ns) == (who, due_ns)
        else:
            assert alarms.due(time_ns) is None
        assert alarms.first_ns == (heap[0][0] if heap else None)


@pytest.mark.parametrize("bad", [-1, 1 << 63, -(1 << 70), "1", None, 1.5])
def test_what_is_no_time_changes_nothing(bad: object) -> None:
    alarms: Any = new_alarms()
    for call in (lambda: alarms.set(bad, 1), lambda: alarms.due(bad)):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            call()
    with pytest.raises((OverflowError, TypeError)):
        alarms.set(1, 1 << 63)
    with pytest.raises(TypeError):
        alarms.set(1)
    assert alarms.first_ns is None
