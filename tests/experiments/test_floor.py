# SPDX-License-Identifier: Apache-2.0
"""The floor: against all schedules of few jobs, and below what runs measure."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.experiments.backends.virtual.run import VirtualBackend
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.results.floor import Bounds, Piece, least_slowdowns, least_times
from tailrace.experiments.results.rows import FlowRow, measured_rows
from tailrace.experiments.results.statistics import mean
from tailrace.experiments.run.run import run
from tailrace.topology import parse_topology

pieces = st.lists(
    st.builds(Piece, st.integers(0, 4), st.integers(1, 3).map(float), st.integers(0, 5), st.integers(1, 6)),
    min_size=1,
    max_size=4,
)


def best(found: list[Piece], weights: list[float]) -> float:
    """The least weighted sum of completion times of all schedules that work on one job in each unit of time."""

    @cache
    def rest(now: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        options = []
        for number, work in enumerate(left):
            if work and found[number].start_ns <= now:
                after = (*left[:number], work - 1, *left[number + 1 :])
                ends = 0.0 if work > 1 else weights[number] * (now + 1 - found[number].start_ns)
                options.append(ends + rest(now + 1, after))
        return min(options) if options else rest(now + 1, left)

    far = sum(weight * piece.far_ns for weight, piece in zip(weights, found, strict=True))
    return far + rest(0, tuple(int(piece.work_ns) for piece in found))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(pieces)
def test_no_schedule_is_below(found: list[Piece]) -> None:
    """The least sum of times is that of the best schedule; that of slowdowns is not above it."""
    assert least_times(found) == pytest.approx(best(found, [1.0] * len(found)))
    weights = [1 / piece.ideal_ns for piece in found]
    alone = sum(w * (piece.work_ns + piece.far_ns) for w, piece in zip(weights, found, strict=True))
    assert alone - 1e-9 <= least_slowdowns(found) <= best(found, weights) + 1e-9


def row(number: int, src: str, dst: str, start_ns: int = 0, size_bytes: int = 1024) -> FlowRow:
    return FlowRow(number, src, dst, size_bytes, start_ns, 9_999_999, 9_999_999 - start_ns, 20_000, 1.0, 1, 0)


def test_parts_of_a_network() -> None:
    """What is named is where most has to pass: two leaves with four hosts and one uplink each."""
    words = "leaf-spine:leaves=2,spines=1,hosts=4,rate=1Gbps,delay=1us"
    bounds = Bounds(parse_topology(words), 1024)
    one_ns = 8 * (1024 + 58 + 16)
    # each pair has hosts of its own, but all share the link from leaf to spine
    floor = bounds.floor([row(number, f"h{number}", f"h{number + 4}") for number in range(1, 5)])
    assert floor
    assert floor.by in ("links out of leaves", "links into leaves")
    assert floor.fct_mean_ns == pytest.approx(one_ns * (1 + 2 + 3 + 4) / 4 + 4 * 1000)
    # within a leaf nothing is shared
    floor = bounds.floor([row(1, "h1", "h2"), row(2, "h3", "h4")])
    assert floor
    assert floor.fct_mean_ns == pytest.approx(one_ns + 2 * 1000)
    assert not bounds.floor([])


RUNS = (
    ("leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps", "poisson:cdf=websearch,load=0.6,duration=300us"),
    ("fat-tree:k=4,rate=25Gbps", "incast:degree=6,size=64KiB"),
    ("fat-tree:k=4,taper=2", "permutation:size=128KiB,peers=remote"),
    ("dragonfly:p=2,a=2,h=1", "alltoall:size=16KiB,window=2"),
)


@pytest.mark.parametrize(("topology", "workload"), RUNS, ids=["leaf-spine", "incast", "taper", "dragonfly"])
@pytest.mark.parametrize("transport", ["sr", "dcqcn"])
def test_no_run_is_below(topology: str, workload: str, transport: str) -> None:
    """Whatever the scheme, on whatever traffic."""
    for scheme in ("minimal", "ugal-l") if "dragonfly" in topology else ("ecmp", "spray", "flowcut"):
        words = {"scheme": scheme, "topology": topology, "workload": workload, "target": "virtual"}
        planned = plan(make({**words, "transport": transport, "pfc": "default"}), "virtual")
        result = run(planned, VirtualBackend(), lambda _progress: None, label="it")
        floor, rows = result.summary.floor, measured_rows(result.rows)
        assert floor
        assert result.complete
        assert 0 < floor.fct_mean_ns <= mean([row.fct_ns or 0 for row in rows])
        fair = result.summary.fair
        assert fair
        assert floor.fct_mean_ns <= fair.fct_mean_ns * (1 + 1e-9)
        assert floor.slowdown_mean <= fair.slowdown_mean * (1 + 1e-9)
        assert 0 < floor.slowdown_mean <= mean([row.slowdown or 0 for row in rows])
