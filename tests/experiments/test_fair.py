# SPDX-License-Identifier: Apache-2.0
"""Fluid max-min fairness: the definition itself, sums that must hold, and cases known by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.results import fair
from tailrace.results.fair import FairSharing, Fluid, Part, ends_ns, rates
from tailrace.results.rows import FlowRow
from tailrace.topology import parse_topology

PARTS: tuple[Part, ...] = tuple(("part", str(number)) for number in range(5))
flow_parts = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3, unique=True).map(tuple)
capacities = st.fixed_dictionaries({part: st.integers(1, 20) for part in PARTS})


@settings(max_examples=200)
@given(st.lists(flow_parts, min_size=1, max_size=8), capacities)
def test_each_flow_has_a_bottleneck(flows: list[tuple[Part, ...]], capacity: dict[Part, int]) -> None:
    """No part passes more than it can; and each flow has a part that is full, in which none is faster: so it can
    gain only from one that is no faster.
    """
    shares = rates(dict(enumerate(flows)), capacity)
    assert shares.keys() == set(range(len(flows)))
    used = {part: sum(shares[n] for n, parts in enumerate(flows) if part in parts) for part in PARTS}
    for part in PARTS:
        assert used[part] <= capacity[part] * (1 + 1e-9)
    for number, parts in enumerate(flows):
        assert any(
            used[part] == pytest.approx(capacity[part])
            and all(
                shares[n] <= shares[number] * (1 + 1e-9) for n, crossed in enumerate(flows) if part in crossed
            )
            for part in parts
        )


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 500)), min_size=1, max_size=8))
def test_a_single_part_works_all_the_time(jobs: list[tuple[int, int]]) -> None:
    """Whoever shares it how, it is free again at one time; and none ends before it could alone."""
    flows = [Fluid(start, bits, (PARTS[0],)) for start, bits in jobs]
    ends = ends_ns(flows, {PARTS[0]: 10**9})
    assert ends is not None
    free = 0.0
    for start, bits in sorted(jobs):
        free = max(free, start) + bits
    assert max(ends) == pytest.approx(free)
    for (start, bits), end in zip(jobs, ends, strict=True):
        assert end >= start + bits - 1e-6


def test_by_hand() -> None:
    """Two flows share a link until the shorter one ends; a third takes what they leave of another link."""
    first, second = PARTS[:2]
    flows = [Fluid(0, 1000, (first,)), Fluid(0, 3000, (first, second)), Fluid(0, 3000, (second,))]
    # 0.5, 0.5, 1.5 bit/ns; after 2000 ns both that are left would have 1 each, but only one is
    assert ends_ns(flows, {first: 10**9, second: 2 * 10**9}) == pytest.approx([2000, 4000, 2000])


def test_what_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = [Fluid(0, 1000 + number, PARTS[:1]) for number in range(4)]
    monkeypatch.setattr(fair, "MOST_STEPS", 4 + 3 + 2 + 1)
    assert ends_ns(flows, {PARTS[0]: 10**9}) is not None
    monkeypatch.setattr(fair, "MOST_STEPS", 4 + 3 + 2)
    assert ends_ns(flows, {PARTS[0]: 10**9}) is None


def row(number: int, src: str, dst: str) -> FlowRow:
    return FlowRow(number, src, dst, 1024, 0, 9_999_999, 9_999_999, 20_000, 1.0, 1, 0)


def test_parts_of_a_network() -> None:
    """Flows share what all of them have to pass: two leaves with four hosts and one uplink each."""
    words = "leaf-spine:leaves=2,spines=1,hosts=4,rate=1Gbps,delay=1us"
    sharing = FairSharing(parse_topology(words), 1024)
    packet_ns = 8 * (1024 + 58 + 16)
    # each pair has hosts of its own, but all share the link from leaf to spine
    times = sharing.of([row(number, f"h{number}", f"h{number + 4}") for number in range(1, 5)])
    assert times
    assert times.fct_mean_ns == pytest.approx(4 * packet_ns + 4 * 1000)
    assert times.slowdown_mean == pytest.approx(times.fct_mean_ns / 20_000)
    # within a leaf nothing is shared
    times = sharing.of([row(1, "h1", "h2"), row(2, "h3", "h4")])
    assert times
    assert times.fct_mean_ns == pytest.approx(packet_ns + 2 * 1000)
    assert not sharing.of([])
