# SPDX-License-Identifier: Apache-2.0
"""Flows that wait for others start when all, or so many as suffice, are complete and delays have passed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.dependents import Dependents
from tailrace.spec.scale import scaled


def flow(
    number: int, start_ns: int, after: tuple[int, ...], after_ns: tuple[int, ...] = (), after_count: int = 0
) -> FlowSpec:
    return FlowSpec(
        id=number,
        src="10.0.0.1",
        dst="10.0.0.2",
        bytes=1,
        start_ns=start_ns,
        qpn=number,
        sport=1,
        after=after,
        after_ns=after_ns,
        after_count=after_count,
    )


@given(st.data())
def test_each_start_is_that_of_the_definition(data: st.DataObject) -> None:
    """Any number of flows that wait for any of six others, which end in any order, also at the same time."""
    ends_ns = dict(enumerate(data.draw(st.lists(st.integers(0, 20), min_size=6, max_size=6)), start=1))
    dependents, expected = Dependents(), {}
    for number in range(7, 7 + data.draw(st.integers(1, 6))):
        after = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, unique=True)))
        delays = data.draw(st.just(()) | st.tuples(*(st.integers(0, 9) for _ in after)))
        count = 0 if delays else data.draw(st.integers(0, len(after)))
        start_ns = data.draw(st.integers(0, 40))
        dependents.add(flow(number, start_ns, after, delays, count), after, count or len(after))
        last_ns = [
            ends_ns[earlier] + delay for earlier, delay in zip(after, delays or (0,) * 6, strict=False)
        ]
        expected[number] = max(start_ns, sorted(last_ns)[(count or len(after)) - 1])
    starts: dict[int, int] = {}
    for earlier, end_ns in sorted(ends_ns.items(), key=lambda item: item[1]):
        for started, start_ns in dependents.complete(earlier, end_ns):
            assert started.id not in starts
            starts[started.id] = start_ns
    assert starts == expected


@pytest.mark.parametrize("delays", [(1,), (1, 2, 3), (1, -1)])
def test_delays_that_are_none(delays: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="flow 3: expected after_ns for each of `after`, found "):
        flow(3, 0, (1, 2), delays)


@pytest.mark.parametrize(("after_ns", "count"), [((), 3), ((), -1), ((5, 5), 1)])
def test_counts_that_are_none(after_ns: tuple[int, ...], count: int) -> None:
    with pytest.raises(ConfigError, match=f"flow 3: after_count is {count}, expected from 0 to the number"):
        flow(3, 0, (1, 2), after_ns, count)


def test_delays_scale_with_time() -> None:
    assert scaled(flow(3, 5, (1, 2), (10, 0)), 100.0) == flow(3, 500, (1, 2), (1000, 0))
