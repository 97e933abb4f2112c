# SPDX-License-Identifier: Apache-2.0
"""Bad files: one line with the file, the format and the line or key; what a format has and we do not is refused by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import tailrace
from tailrace.experiments.workloads.sizes import find_cdf
from tailrace.experiments.workloads.workload import parse_workload, rng_of
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.formats import examples as good

Read = Callable[[str], Any]
LEAF_SPINE = parse_topology("leaf-spine:leaves=2,spines=2,hosts=3")


def flows(path: str) -> Any:
    return parse_workload(path).traffic(LEAF_SPINE, rng_of(1)).flows


def of(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


NODE_LINK, TOPO, HPCC, CM, GOAL = good.NODE_LINK, good.TOPO, good.HPCC_TOPOLOGY, good.CM, good.GOAL
FLOWS, FNSS = good.HPCC_FLOWS, good.FNSS
CASES: list[tuple[Read, str, str, str]] = [
    # node-link
    (parse_topology, "node-link", of(NODE_LINK, ('"directed": false', '"directed": true')), "directed: links have"),
    (parse_topology, "node-link", of(NODE_LINK, ('"delay": 500', '"loss": 1')), "links[0].loss: not supported: losses"),
    (parse_topology, "node-link", of(NODE_LINK, ('"bw": 10.5', '"bandwidth": 5')), "links[1].bandwidth: not supported"),
    (parse_topology, "node-link", of(NODE_LINK, ('"bw": 10.5', '"bw": -1')), "links[1].bw: '-1000000' is no number"),
    (parse_topology, "node-link", of(NODE_LINK, ('"bw": 10.5', '"weight": 3')), "links[1].weight: not supported: it differs"),
    (parse_topology, "node-link", of(NODE_LINK, ('"delay": 500', '"delay": "5m"')), "links[0].delay: '5m' is no time"),
    (parse_topology, "node-link", of(NODE_LINK, ('"delay": 500', '"port2": 0')), "links[0].port2: 0: ports count"),
    (parse_topology, "node-link", of(NODE_LINK, ('"t1", "tier"', '"t 1", "tier"')), "'t 1': expected letters"),
    (parse_topology, "node-link", of(NODE_LINK, ('"target": "b"', '"target": "c"')), "links[1]: 'c' is neither a host"),
    (parse_topology, "node-link", of(NODE_LINK, ('"target": "b"', '"target": "a"')), "links[1]: a has a second link"),
    (parse_topology, "node-link", of(NODE_LINK, ('"role": "host"', '"role": "hub"')), "nodes[0].role: 'hub': expected"),
    (parse_topology, "node-link", of(NODE_LINK, ('{"id": "a",', '{"name": "a",')), "nodes[0]: expected an object"),
    (parse_topology, "node-link", of(NODE_LINK, ("10.9.0.1/24", "fe80::1/64")), "nodes[1].ip: '64': expected a prefix"),
    (parse_topology, "node-link", of(NODE_LINK, ("10.9.0.1/24", "fe80::1/24")), "nodes[1]: 'fe80::1' is no IPv4"),
    (parse_topology, "node-link", of(FNSS, ('"capacity_unit": "Gbps", ', "")), "edges[0].capacity: the graph has no"),
    (parse_topology, "node-link", of(FNSS, ('"host", "tier": "leaf"', '"server"')), "no node is a host; hosts=1 after the file name"),
    (parse_topology, "node-link", of(FNSS, ('"edges"', '"vertices"')), "links: expected a list"),
    # HPCC
    (parse_topology, "hpcc-topology", of(HPCC, ("4 2 4", "4 3 4")), "line 2: expected 3 different switches, found 2"),
    (parse_topology, "hpcc-topology", of(HPCC, ("3 0\n1", "3 4\n1")), "line 2: node 4: there are 4 nodes, from 0"),
    (parse_topology, "hpcc-topology", of(HPCC, ("4 2 4", "4 2 7")), "line 8: expected nodes, rate, delay"),
    (parse_topology, "hpcc-topology", of(HPCC, ("0.000000", "0.01")), "line 3: error rate: not supported: losses are"),
    (parse_topology, "hpcc-topology", of(HPCC, ("1 0 100Gbps", "1 2 100Gbps")), "line 3: joins two hosts"),
    (parse_topology, "hpcc-topology", of(HPCC, ("0 3 400Gbps", "1 3 400Gbps")), "line 5: h1 has a second link"),
    (parse_topology, "hpcc-topology", of(HPCC, ("25Gbps", "25")), ""),
    (parse_topology, "hpcc-topology", of(HPCC, ("4 2 4", "4 2 2 2 4 H100")), "line 1: expected 3 numbers; the form with"),
    (parse_topology, "hpcc-topology", of(HPCC, ("4 2 4", "9999999999 2 4")), "nodes, and the limit is"),
    # .topo
    (parse_topology, "htsim-topo", of(TOPO, ("Bundle 2", "Queue_Down 9")), "line 19: Queue_Down: not supported: queues"),
    (parse_topology, "htsim-topo", of(TOPO, ("Bundle 2", "Colour 2")), "line 19: Colour: unknown"),
    (parse_topology, "htsim-topo", of(TOPO, ("Bundle 2", "Bundle two")), "line 19: Bundle: expected a whole number"),
    (parse_topology, "htsim-topo", of(TOPO, ("Bundle 2", "Bundle")), "line 19: expected a key and a number"),
    (parse_topology, "htsim-topo", of(TOPO, ("Bundle 2", "Bundle 1")), "line 14: tier 1: radix_down, or radix_up of tier 0, does not fit"),
    (parse_topology, "htsim-topo", of(TOPO, ("Tier 1", "Tier 0")), "line 14: tier 0: expected each of 0, 1 and 2 once"),
    (parse_topology, "htsim-topo", of(TOPO, ("Tiers 2", "Tiers 3")), "tiers: expected 2 or 3, and tiers 0 to 2"),
    (parse_topology, "htsim-topo", of(TOPO, ("Tiers 2", "Tiers 4")), "tiers: expected 2 or 3, and tiers"),
    (parse_topology, "htsim-topo", of(TOPO, ("Podsize 4", "Podsize 3")), "nodes: 4 hosts do not fill pods of 3"),
    (parse_topology, "htsim-topo", of(TOPO, ("Oversubscribed 1", "Oversubscribed 4")), "line 6: tier 0: oversubscribed: links have 200 Gbps down and 200 up"),
    (parse_topology, "htsim-topo", of(TOPO, ("Radix_Up 2\n", "")), "line 6: tier 0: radix_up is missing or 0"),
    (parse_topology, "htsim-topo", of(TOPO, ("700\nSwitch_Latency_ns 50", "700")), "line 14: tier 1: not supported: a switch latency that differs"),
    (parse_topology, "htsim-topo", of(TOPO, ("Nodes 4", "Nodes 4000000"), ("Podsize 4", "Podsize 4000000")), "tier 1: radix_down"),
    (parse_topology, "htsim-topo", "p 7\nq 9\nLink_speed_host_Gbps 400\n", "line 1: p: not supported: the topologies dragonfly and"),
    (parse_topology, "htsim-topo", of(TOPO, ("Oversubscribed 1", "Bundle 2")), "line 6: h0 has a second link"),
    # HPCC's flows
    (flows, "hpcc-flows", of(FLOWS, ("2\n2 1", "4\n2 1")), "expected 4 flows, found 3"),
    (flows, "hpcc-flows", of(FLOWS, ("3 1 3", "3 1 4")), "line 3: priority group: not supported: it differs from line 2"),
    (flows, "hpcc-flows", "1\n2 1 3 1000 2.0 9.5\n", "line 2: not supported: the older form with numbers of packets"),
    (flows, "hpcc-flows", of(FLOWS, ("2.000000007", "1e99")), "line 3: start: 1e99 s is more than 100 days"),
    (flows, "hpcc-flows", of(FLOWS, ("2.000000007", "soon")), "line 3: start: expected a number, found 'soon'"),
    (flows, "hpcc-flows", of(FLOWS, ("100 5000 2.", "100 0 2.")), "line 3: bytes: expected a whole number of at least 1"),
    (flows, "hpcc-flows", of(FLOWS, ("3 1 3", "3 9 3")), "line 3: the topology has no host 9; expected a name such as h1, or a number from 0"),
    # .cm
    (flows, "htsim-cm", of(CM, ("size 10 ", "size 10 prio 3 ")), "line 7: prio: not supported: flows have no priorities"),
    (flows, "htsim-cm", of(CM, ("size 10 ", "size 10 msg 3 ")), "line 7: msg: not supported: a flow is one message"),
    (flows, "htsim-cm", of(CM, ("Triggers 2", "Triggers 2\nFailures 1"), ("trigger id 1", "failure switch_type TOR\ntrigger id 1")), "line 10: failure: not supported: failures are faults"),
    (flows, "htsim-cm", of(CM, ("Triggers 2", "Triggers 2\nFailures 1")), "Failures: not supported"),
    (flows, "htsim-cm", of(CM, ("2 barrier count 2", "2 multishot")), ""),
    (flows, "htsim-cm", of(CM, ("start 0 size 10 recv_done_trigger 2", "trigger 1 size 10"), ("1 oneshot", "1 multishot"), ("2->0", "0->2"), ("2 barrier count 2", "2 oneshot")), "line 9: expected 2 or more flows that activate it, found 1"),
    (flows, "htsim-cm", of(CM, ("barrier count 2", "barrier count 3")), "line 10: expected 3 flows that activate it, found 2"),
    (flows, "htsim-cm", of(CM, ("barrier count 2", "oneshot")), "line 10: expected 1 flows that activate it, found 2"),
    (flows, "htsim-cm", of(CM, ("trigger id 1 oneshot\n", ""), ("Triggers 2", "Triggers 1")), "line 6: trigger 1 is not defined"),
    (flows, "htsim-cm", of(CM, ("id 2 barrier", "id 1 barrier")), "line 10: trigger 1 is defined twice"),
    (flows, "htsim-cm", of(CM, ("1 oneshot", "1 twice")), "line 9: expected trigger id N and one of oneshot"),
    (flows, "htsim-cm", of(CM, ("1->2 id 8", "2->1 id 8")), "line 6: not supported: host 2 neither sends nor receives the flow of line 5"),
    (flows, "htsim-cm", of(CM, ("start 0 size 10", "start 0 size 0")), "line 7: size: expected at least 1"),
    (flows, "htsim-cm", of(CM, ("start 0 size 10", "size 10")), "line 7: expected either start, of at most 100 days, or trigger"),
    (flows, "htsim-cm", of(CM, ("2->0", "2->3")), "line 7: host 3: there are 3 Nodes, from 0"),
    (flows, "htsim-cm", of(CM, ("2->0", "2->2")), "line 7: 2 sends to itself"),
    (flows, "htsim-cm", of(CM, ("Connections 4", "Connections 5")), "Connections: expected 5, found 4"),
    (flows, "htsim-cm", of(CM, ("Nodes 3", "Nodes 7")), "for 7 hosts; the topology has 6"),
    (flows, "htsim-cm", of(CM, ("id 7 start", "id start")), "line 5: 1500000: unknown; expected id, recv_done_trigger,"),
    (flows, "htsim-cm", of(CM, ("2->0 id", "2-0 id")), "line 7: 2-0: unknown; expected SRC->DST start PS size BYTES, or Nodes,"),
    (flows, "htsim-cm", of(CM, ("start 0 size 10", "start 0 start 5 size 10")), "line 7: expected pairs of a key and a value"),
    (flows, "htsim-cm", of(CM, ("Nodes", "nodes"), ("Connections", "#")), "line 2: nodes: unknown; expected SRC->DST start PS"),
    (flows, "htsim-cm", of(CM, ("Connections 4\n", "")), "Connections: expected 0, found 4"),
    (flows, "htsim-cm", of(CM, ("trigger 2 size", "trigger 1 size"), ("recv_done_trigger 2", ""), ("2->0 id 9 start 0", "2->0 id 9 trigger 2"), ("barrier count 2", "oneshot"), ("2->1 id 10", "1->0 id 10"), ("size 2000 send", "size 2000 recv")), ""),
    # GOAL
    (flows, "goal", of(GOAL, ("l1: calc 5000", "l1: put 5b to 1")), "line 3: not supported: 'l1: put 5b to 1'; expected send, recv, calc or"),
    (flows, "goal", of(GOAL, ("recv 16b from 1", "recv 16b from -1")), "line 6: not supported: 'l3: recv 16b from -1'"),
    (flows, "goal", of(GOAL, ("nic 0", "nic 2")), "line 9: nic: not supported: a host has one NIC"),
    (flows, "goal", of(GOAL, ("l5 requires l2", "l5 requires l7")), "line 11: label l7 is not defined above"),
    (flows, "goal", of(GOAL, ("l4: calc 100", "l3: calc 100")), "line 7: label l3 is defined twice"),
    (flows, "goal", of(GOAL, ("send 16b", "send 17b")), "line 6: the send of line 16 has 17b"),
    (flows, "goal", of(GOAL, ("recv 1b from 0 tag 5", "")), "line 9: no operation matches this send"),
    (flows, "goal", of(GOAL, ("l5 requires l2", "l3 requires l5")), "the operation requires itself"),
    (flows, "goal", of(GOAL, ("rank 1 {", "rank 2 {")), "line 13: rank 2: expected each of 0 to 1 once"),
    (flows, "goal", of(GOAL, ("l2: send 16b to 0", "l2: send 16b to 1")), "line 16: expected another rank below 2"),
    (flows, "goal", of(GOAL, ("rank 1 {", "rank 1 { /*")), "line 13: expected rank N {, found 'rank 1 { /*'"),
    (flows, "goal", of(GOAL, ("tag 5\n}", "tag 5\n")), "rank 1: the closing brace is missing"),
    (flows, "goal", "num_ranks 2\nrank 0 {\nl1: calc 5\n}\n", "no flows: no rank sends"),
    (flows, "goal", of(GOAL, ("num_ranks 2", "num_ranks 70000")), "ranks, and the limit is 65,536"),
    (flows, "goal", "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\nrank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\n", "it comes after itself, via other flows"),
    # sizes
    (find_cdf, "sizes", of(good.SIZES, ("3000,100", "3000,99")), "line 4: expected 1 or 100 as the last share, found 99"),
    (find_cdf, "sizes", of(good.SIZES, ("1000 50", "4000 50")), "line 4: expected a size from 4000 to 4294967295, found 3000"),
    (find_cdf, "sizes", of(good.SIZES, ("1000 50", "1000 150")), "line 2: expected a share from 0 to 100, found 150"),
    (find_cdf, "sizes", of(good.SIZES, ("3000,100", "3000,100,7")), ""),
    (find_cdf, "sizes", "0 0\n1 20\n2 30\nthree 100\n", "line 4: number: expected a number, found 'three'"),
    (find_cdf, "sizes", of(good.HOMA, ("700\n", "900\n")), "line 1: the mean is 900, but that of the points is 700"),
    (find_cdf, "sizes-toml", of(good.TOML, ('"bytes"', '"packets"')), "key 'unit': expected 'bytes', found 'packets'"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "name", "text", "message"), CASES)
def test_refusals(read: Read, name: str, text: str, message: str, tmp_path: Path) -> None:
    """Cases without a message are good, or of no known format."""
    path = tmp_path / "x.file"
    path.write_text(text)
    try:
        read(str(path))
    except SpecError as error:
        line = str(error)
        assert "\n" not in line
        assert f"{path}" in line
        assert message in line
        assert not message or f"{name}" in line or "limit" in line or "after itself" in line
    else:
        assert not message, "it was accepted"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (flows, "num_ranks 2\n" + "/*" * 500_000),
        (flows, "num_ranks 2\nrank 0 {\n" + "".join(f"l{i}: calc 1\n" for i in range(100_000)) + "x"),
        (flows, "Nodes 2\nConnections 100000\n" + "0->1 start 0 size 1 trigger 5\n" * 100_000),
        (find_cdf, "1 0\n" * 300_000),
        (parse_topology, "3 1 2\n" + "0 " * 300_000 + "\n0 1 1Gbps 1us 0\n"),
        (parse_topology, '{"nodes": [' + '{"id": 1},' * 100_000 + '{"id": 2}], "links": []}'),
        (parse_topology, "Nodes 999999999\nTiers 2\nPodsize 999999999\n" + TOPO.partition("Podsize 4\n")[2]),
    ],
)
def test_large_bad_files_take_bounded_time(read: Read, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.file"
    path.write_text(text)
    begun = time.process_time()
    with pytest.raises(SpecError):
        read(str(path))
    assert time.process_time() - begun < 20


def test_a_recv_chain_of_many_flows_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recv waits for all flows before it: the sum is limited."""
    monkeypatch.setattr("tailrace.formats.goal.MOST_WAITS", 10_000)
    path, count = tmp_path / "x.goal", 500
    receives = "".join(f"r{i}: recv 1b from 1 tag {i}\n" for i in range(count))
    receives += "".join(f"r{i} requires r{i - 1}\n" for i in range(1, count))
    sends = "".join(f"send 1b to 0 tag {i}\n" for i in range(count))
    path.write_text(f"num_ranks 2\nrank 0 {{\n{receives}}}\nrank 1 {{\n{sends}}}\n")
    with pytest.raises(SpecError, match="dependencies, and the limit is 10,000"):
        flows(str(path))


def test_a_trigger_of_many_flows_by_many_is_bounded(tmp_path: Path) -> None:
    """Each of 5,000 flows waits for 5,000."""
    path, count = tmp_path / "x.cm", 5000
    text = "0->1 start 0 size 1 send_done_trigger 1\n0->1 trigger 1 size 1\n" * count
    head = f"Nodes 2\nConnections {2 * count}\nTriggers 1\n"
    for kind in ("multishot", f"barrier count {count}"):
        path.write_text(f"{head}{text}trigger id 1 {kind}\n")
        begun = time.process_time()
        with pytest.raises(SpecError, match="25,000,000 dependencies, and the limit is 20,000,000"):
            flows(str(path))
        assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("graph", "keys", "message"),
    [
        ("no graph of any kind", {}, "topology 'no graph of any kind' is not known"),
        (5, {}, "expected the spec of a topology, or a graph of NetworkX, found int"),
        (nx.path_graph(3), {}, "graph: node-link: no node is a host; hosts=1"),
        (nx.path_graph(3), {"hosts": 0}, "topology graph: hosts must be at least 1, found '0'"),
        (nx.path_graph(3), {"size": 1}, "topology graph: unknown key 'size'"),
        (nx.DiGraph([(1, 2)]), {"hosts": 1}, "graph: node-link, directed: links have two directions"),
        (
            nx.grid_2d_graph(2, 2),
            {"hosts": 1},
            "nodes[0]: (0, 0): expected a string or a whole number as the name",
        ),
        (
            nx.Graph([("a", "b", {"rate": "fast"})]),
            {"hosts": 1},
            "edges[0].rate: 'fast' is no number with a unit",
        ),
        (nx.Graph([("a", "b"), ("c", "d")]), {"hosts": 1}, "not connected: there is no path from a to c"),
        ("fat-tree", {"hosts": 1}, "hosts: keys are for graphs; write them after a file's name"),
    ],
)
def test_graphs(graph: Any, keys: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        tailrace.convert(graph, tmp_path / "x.json", "node-link", **keys)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "name", "keys", "message"),
    [
        ("websearch", "size", {}, "format 'size' is not known; did you mean sizes?"),
        ("websearc", "sizes", {}, "cdf 'websearc' is not known; expected websearch"),
        ("permutation", "csv", {}, "topology: a workload can only be written for a topology"),
        (
            "alltoall:hosts=2,background=1KiB",
            "goal",
            {"topology": "fat-tree"},
            "has paths of its own",
        ),
        (7, "csv", {}, "workload: expected a string, found int"),
        ("leaf-spine:restricted=h1/1", "p4lang", {}, "restricted= cannot be written to a file"),
        ("fat-tree:latency=1us", "node-link", {}, "node-link: switches cannot have a latency"),
        (
            "fat-tree:rate=1.5Gbps",
            "htsim-topo",
            {},
            "htsim-topo: expected equal links in each tier, with a rate in whole",
        ),
        ("fat-tree:hosts=3", "htsim-topo", {}, "htsim-topo: tier 0: the oversubscription is no whole number"),
    ],
)
def test_what_cannot_be_written(
    source: Any, name: str, keys: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        tailrace.convert(source, tmp_path / "x", name, **keys)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []
