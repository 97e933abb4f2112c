# SPDX-License-Identifier: Apache-2.0
"""The topologies of examples/topologies are those of their papers."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from tests.extend.conftest import ROOT, Run
from tests.topology.graphs import hyperx

FOLDER = ROOT / "examples" / "topologies"


@pytest.fixture
def graph(forked_tailrace: Run, tmp_path: Path) -> object:
    """The graph of the switches of a topology, and the number of its hosts."""

    def of(spec: str) -> tuple[nx.Graph, int]:
        done = forked_tailrace("convert", spec, "graph.json", "--format", "node-link", "--plugin", FOLDER)
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads((tmp_path / "graph.json").read_text("utf-8"))
        whole: nx.Graph[str] = nx.Graph(nx.node_link_graph(document, edges="edges"))
        hosts = [node["id"] for node in document["nodes"] if node["role"] == "host"]
        whole.remove_nodes_from(hosts)
        return whole, len(hosts)

    return of


@pytest.mark.parametrize(("switches", "ports", "hosts"), [(20, 6, 2), (15, 5, 2), (9, 9, 1), (16, 4, 1)])
def test_jellyfish(graph, switches: int, ports: int, hosts: int) -> None:
    """A connected random regular graph: the same for the same seed, another for another one."""
    spec = f"jellyfish:switches={switches},ports={ports},hosts={hosts},seed="
    (first, count), (again, _), (other, _) = graph(f"{spec}3"), graph(f"{spec}3"), graph(f"{spec}4")
    assert (switches, switches * hosts) == (len(first), count)
    assert nx.is_connected(first)
    degree = ports - hosts
    # an odd number of ports leaves one free
    assert switches * degree // 2 == first.number_of_edges()
    assert max(dict(first.degree).values()) == degree
    assert nx.utils.graphs_equal(first, again)
    assert nx.utils.graphs_equal(first, other) == (degree == switches - 1)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 3, 4), (6,)])
def test_hyperx(graph, sizes: tuple[int, ...]) -> None:
    """A product of complete graphs, whose diameter is the number of dimensions."""
    lattice, count = graph(f"hyperx:dims={'x'.join(map(str, sizes))},hosts=3")
    assert count == 3 * len(lattice)
    assert nx.is_isomorphic(lattice, hyperx(*sizes))
    assert nx.diameter(lattice) == len(sizes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jellyfish:switches=4,ports=9", "ports minus hosts must be 1 to 3, found '7'"),
        ("jellyfish:switches=4,ports=2", "ports minus hosts must be 1 to 3, found '0'"),
        ("jellyfish:switches=8,ports=3,hosts=2", "not connected: there is no path from s1 to "),
        ("hyperx:dims=4x1", "dims must be such as 4x4, found '4x1'"),
        ("hyperx:dims=4xx4", "dims must be such as 4x4, found '4xx4'"),
        ("hyperx:dims=9999x9999x9999", "switches, and the limit is 8,192"),
    ],
)
def test_refusals(forked_tailrace: Run, spec: str, message: str) -> None:
    """In one line."""
    done = forked_tailrace("topology", spec, "--plugin", FOLDER)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
