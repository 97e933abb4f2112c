# SPDX-License-Identifier: Apache-2.0
"""Flows that wait for others, in virtual time: nobody starts early, and everybody starts in the end."""

from __future__ import annotations

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.results.result import Result
from tailrace.results.rows import FlowRow
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us"


def measure(workload: str, scheme: str = "ecmp") -> tuple[Plan, Result]:
    planned = plan(make({"scheme": scheme, "topology": FABRIC, "workload": workload}), "virtual")
    result = run(planned, VirtualBackend(), lambda _progress: None, label="it")
    assert result.complete
    return planned, result


def ended(row: FlowRow) -> int:
    assert row.end_ns is not None
    return row.end_ns


@pytest.mark.parametrize(
    "workload",
    [
        "alltoall:size=20KiB,window=2",
        "random:cdf=webserver,messages=4,cross=true,jitter=20us",
        "allreduce:size=64KiB",
        "allreduce:size=16KiB,algo=butterfly",
        "allreduce:size=64KiB,algo=halving",
    ],
)
@pytest.mark.parametrize("scheme", ["ecmp", "flowcut"])
def test_no_flow_starts_early(workload: str, scheme: str) -> None:
    """A flow starts when the last that it waits for is complete at its sender: at once, or an ACK later."""
    planned, result = measure(workload, scheme)
    rows = {row.id: row for row in result.rows}
    for flow in planned.job.flows:
        row = rows[flow.id]
        assert row.start_ns >= flow.start_ns
        for number in flow.after:
            same_sender = rows[number].src == row.src
            # the sender of an earlier flow knows of its end when the ACK has come back
            assert row.start_ns > ended(rows[number]) if same_sender else row.start_ns >= ended(rows[number])
        if flow.after and not any(rows[number].src == row.src for number in flow.after):
            assert row.start_ns == max(flow.start_ns, *(ended(rows[number]) for number in flow.after))


def test_window_is_kept() -> None:
    """No host has more than two flows under way, and it has two for most of the time."""
    _, result = measure("alltoall:size=20KiB,window=2")
    for host in {row.src for row in result.rows}:
        steps = sorted(
            step for row in result.rows if row.src == host for step in ((row.start_ns, 1), (ended(row), -1))
        )
        under_way = [sum(change for _, change in steps[: place + 1]) for place in range(len(steps))]
        assert max(under_way) == 2


def test_ideal_time_is_that_of_the_transfer() -> None:
    """A flow's completion time counts from its own start: all of a ring's, alone on their links, are ideal."""
    _, result = measure("allreduce:size=8KiB")
    assert all(row.slowdown is not None and 1 <= row.slowdown < 1.5 for row in result.rows)
    assert max(row.start_ns for row in result.rows) > 0
