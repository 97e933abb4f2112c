# SPDX-License-Identifier: Apache-2.0
"""Runs in virtual time on a Jellyfish, a HyperX and an irregular tree from files: schemes that choose among bounded
simple paths, with a failed link, and without loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from msgspec import UNSET

import tailrace
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.summary import Packets, Summary
from tailrace.spec import SpecError
from tests.experiments.virtual import result_of
from tests.topology.graphs import hyperx, jellyfish

STEERED = (
    "spritz:variant=scout",
    "spritz:variant=spray",
    "ops",
    "flicr",
    "ecmp:over=all",
    "spritz:mode=coarse",
)
ROUTED = ("minimal", "valiant", "ugal-l")
IN_ORDER = ("minimal", "ecmp:over=all")


def irregular_tree() -> nx.Graph:
    """Two pods of three edge and two aggregation switches, four cores; one edge switch has one uplink only."""
    graph: nx.Graph[str] = nx.Graph()
    for pod in "ab":
        for edge in range(3):
            graph.add_edges_from(
                (f"{pod}{edge}", f"{pod}g{i}") for i in range(1 if (pod, edge) == ("a", 0) else 2)
            )
            graph.add_node(f"h{pod}{edge}", role="host")
            graph.add_edge(f"h{pod}{edge}", f"{pod}{edge}")
        graph.add_edges_from((f"{pod}g{i}", f"c{i}{j}") for i in range(2) for j in range(2))
    return graph


GRAPHS = {"jellyfish": jellyfish(12, 4), "hyperx": hyperx(3, 3), "tree": irregular_tree()}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The file of each network; switches without hosts in it get two each."""
    folder, paths = tmp_path_factory.mktemp("graphs"), {}
    for name, graph in GRAPHS.items():
        paths[name] = str(folder / f"{name}.json")
        keys: dict[str, Any] = {} if name == "tree" else {"hosts": 2}
        tailrace.convert(graph, paths[name], "node-link", rate="10Gbps", delay="1us", **keys)
    return paths


def measure(
    topology: str, scheme: str, size: str = "64KiB", **words: object
) -> tuple[Summary, dict[str, int]]:
    """The summary of a run in which all flows complete, and its numbers of packets."""
    result = result_of(
        {"scheme": scheme, "topology": topology, "workload": f"permutation:size={size}"} | words
    )
    assert result.complete
    assert result.problems == ()
    counts = {name: getattr(result.summary.packets, name) for name in Packets.__struct_fields__}
    lost = counts["trimmed"] + counts["dropped_data"]
    assert counts["sent"] == counts["delivered"] + lost + counts["under_way"]
    return result.summary, counts


@pytest.mark.parametrize("scheme", (*STEERED, *ROUTED))
@pytest.mark.parametrize("name", ["jellyfish", "hyperx"])
def test_all_arrives(files: dict[str, str], name: str, scheme: str) -> None:
    """Full queues trim packets, nothing else loses any; flows on one path keep their order, others do not."""
    _, packets = measure(files[name], scheme)
    assert (packets["dropped_data"], packets["retransmitted"]) == (0, packets["trimmed"])
    if scheme in IN_ORDER:
        assert packets["out_of_order"] == 0
    elif scheme not in ("flicr", "spritz:mode=coarse"):
        assert packets["out_of_order"] > 0


@pytest.mark.parametrize("scheme", ["spritz", "ops", "flicr"])
def test_irregular_tree(files: dict[str, str], scheme: str) -> None:
    """NICs spread packets over up-links there, too."""
    measure(files["tree"], scheme)


@pytest.mark.parametrize(
    "scheme", ["spritz:variant=scout", "spritz:variant=spray", "ops", "flicr", "minimal:repair=on"]
)
@pytest.mark.parametrize(("name", "link"), [("jellyfish", "n0-n{}"), ("hyperx", "n0-n1")])
def test_a_failed_link(files: dict[str, str], name: str, link: str, scheme: str) -> None:
    """Senders leave paths over it after timeouts, or default routes lead around it; all flows complete."""
    link = link.format(min(GRAPHS[name][0]))
    summary, packets = measure(files[name], scheme, size="256KiB", fault=(f"link-down:link={link},at=20us",))
    assert packets["dropped_data"] > 0
    assert isinstance(summary.timeouts, int) and summary.timeouts > 0


@pytest.mark.parametrize("workload", ["alltoall:size=16KiB,window=5", "incast:degree=5,size=64KiB"])
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        *(("hyperx", scheme) for scheme in ("spritz:variant=spray", "valiant:draw=hop", "minimal:draw=hop")),
        *(("jellyfish", scheme) for scheme in ("spritz:variant=scout", "ugal-l:draw=hop")),
        ("tree", "spritz:variant=scout"),
    ],
)
def test_lossless(files: dict[str, str], name: str, scheme: str, workload: str) -> None:
    """With as many channels as the longest path has links there is no deadlock, and no data is lost."""
    words = {"window": "256KiB", "pfc": "xoff=8KiB,xon=4KiB,storm=off", "workload": workload}
    summary, packets = measure(files[name], f"{scheme},trim=off,queue=16MiB", **words)
    assert summary.deadlock is UNSET
    assert (packets["dropped_data"], packets["trimmed"]) == (0, 0)
    assert isinstance(summary.pfc, dict)
    assert summary.pfc["frames"] > 0 or "incast" not in workload


@pytest.mark.parametrize(
    ("name", "scheme", "channels"),
    [("hyperx", "spritz", 4), ("hyperx", "valiant", 4), ("hyperx", "minimal", 2), ("jellyfish", "spritz", 5),
     ("jellyfish", "ugal-l", 5), ("jellyfish", "minimal", 3), ("jellyfish", "ops:repair=on", 6), ("tree", "spritz", 4)],
)  # fmt: skip
def test_channels(files: dict[str, str], name: str, scheme: str, channels: int) -> None:
    """As many as a path has links; the tree has some because not all its shortest paths go up, then down."""
    words = {"scheme": scheme, "topology": files[name], "pfc": "default", "workload": "permutation"}
    assert channels == plan(make(words), "virtual").job.switches.channels


def test_too_long_for_channels(files: dict[str, str], tmp_path: Path) -> None:
    """A draw at each switch may lead back through the first one; longer paths need more channels than there are."""
    ring = tmp_path / "ring.json"
    tailrace.convert(nx.cycle_graph(10), ring, "node-link", hosts=1)
    for topology, scheme, number in ((files["jellyfish"], "valiant", 7), (str(ring), "spritz", 7)):
        words = {"scheme": scheme, "topology": topology, "pfc": "default", "workload": "permutation"}
        with pytest.raises(
            SpecError, match=rf"^pfc: {scheme} needs {number} channels in [^\n]+, expected 6 at most"
        ):
            plan(make(words), "virtual")
