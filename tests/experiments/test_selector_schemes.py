# SPDX-License-Identifier: Apache-2.0
"""Presto, DRILL, Hermes, FlowBender in virtual time: what they gain over ECMP, and what it costs in order."""

from __future__ import annotations

from functools import cache

import pytest

from tailrace.results.result import Result
from tests.experiments.virtual import result_of

TOPOLOGY = "leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us"


@cache
def measure(scheme: str, transport: str = "sr") -> Result:
    words = {
        "scheme": scheme,
        "topology": TOPOLOGY,
        "target": "virtual",
        "workload": "permutation:size=256KiB,peers=remote",
        "transport": transport,
        "pfc": "default",
    }
    return result_of(words)


def slowest_ns(result: Result) -> int:
    """Completion time of the slowest flow, all having finished."""
    assert result.complete
    return max(row.fct_ns or 0 for row in result.rows)


@pytest.mark.parametrize("scheme", ["presto", "drill"])
def test_flows_that_collide_under_ecmp_do_not(scheme: str) -> None:
    """As many uplinks as hosts: one flow each would fill them, but hashes collide; cells and packets spread."""
    assert slowest_ns(measure(scheme)) < 0.7 * slowest_ns(measure("ecmp"))


def test_small_cells_spread_more_and_disorder_more() -> None:
    """A cell as large as a flow keeps its order; a cell a packet gives most of it up."""
    results = [measure(f"presto:cell={cell}") for cell in ("1MiB", "64KiB", "1")]
    large, usual, small = (sum(row.out_of_order for row in result.rows) for result in results)
    assert large == 0 < usual < small


def test_hermes_keeps_the_order_where_no_path_is_bad() -> None:
    """Cautious rerouting: all flows finish, and none is reordered while paths are alike."""
    result = measure("hermes", "dcqcn")
    assert result.complete
    assert sum(row.out_of_order for row in result.rows) == 0


@pytest.mark.parametrize("transport", ["dctcp", "sr"])
def test_flowbender_leaves_links_that_flows_collide_on(transport: str) -> None:
    """Flows that do not meet another one keep their path: the fewest packets overtake others."""
    before, now = measure("ecmp", transport), measure("flowbender", transport)
    assert slowest_ns(now) < slowest_ns(before)
    changes = [row.path_changes for row in now.rows]
    assert 0 in changes
    assert max(changes) > 0
    assert sum(row.out_of_order for row in before.rows) == 0
