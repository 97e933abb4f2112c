# SPDX-License-Identifier: Apache-2.0
"""What summaries and metrics say of flowlets: those of all switches, and those where flows enter the network."""

from __future__ import annotations

from msgspec import UNSET

from tailrace.results import summary
from tailrace.results.metrics import measure
from tests.experiments.virtual import result_of

FLOWS = 16


def test_flowlets_are_summed() -> None:
    """Of all switches, and of the leaves alone; programs without flowlets have none."""
    switches = {"leaf1": {"flowlets_created": 3, "port_tx": 9}, "spine1": {"flowlets_created": 4}}
    totals = summary.flowlets(switches, {"leaf1", "leaf2"})
    assert totals == {"flowlets_created": 7, "flowlets_at_leaves": 3}
    assert summary.flowlets({"leaf1": {"port_tx": 9}}, {"leaf1"}) is UNSET


def test_first_switches_see_a_flowlet_for_each_flow_and_each_long_gap() -> None:
    """In a fat tree further switches count them again; a gap that no flow has makes one flowlet a flow."""
    by_gap = {}
    for gap in ("1us", "1s"):
        words = {
            "scheme": f"letflow:gap={gap}",
            "topology": "fat-tree:k=4,rate=10Gbps,delay=1us",
            "workload": f"permutation:size=32KiB,flows={FLOWS},peers=remote",
            "window": "4KiB",
            "target": "virtual",
        }
        result = result_of(words)
        assert isinstance(result.summary.flowlets, dict)
        assert measure(result)["flowlets"] == result.summary.flowlets["flowlets_at_leaves"]
        by_gap[gap] = result.summary.flowlets
    assert by_gap["1s"]["flowlets_at_leaves"] == FLOWS
    assert by_gap["1s"]["flowlets_created"] > FLOWS
    assert by_gap["1us"]["flowlets_at_leaves"] > 2 * FLOWS
