# SPDX-License-Identifier: Apache-2.0
"""Files where users name them: on the command line, in runs, in Python, and as docs/reference/formats.md shows them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import networkx as nx
import pytest

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.identity import files_of
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.workloads.workload import parse_workload, rng_of
from tailrace.formats.registry import formats
from tailrace.sim import progress
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.formats.examples import CM, CM_MULTISHOT, HPCC_FLOWS, TEXTS, TOPO

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text("utf-8")


def test_every_format_is_documented() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (topology|workload|sizes of flows) \|", DOCS, re.MULTILINE)
    assert sorted(name for name, _ in rows) == [each.name for each in formats()]
    kinds = {
        each.name: each.kind.value.replace("distribution of flow sizes", "sizes of flows")
        for each in formats()
    }
    assert dict(rows) == kinds


def test_the_commands_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other, and the example in Python."""
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^tailrace convert .*$", DOCS, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0
        assert capsys.readouterr() == ("", "")
    given, converted = parse_topology("fat-tree:k=4"), parse_topology("net.json")
    flows = parse_workload("permutation:size=1MiB").traffic(given, rng_of(3)).flows
    again = parse_workload("flows.csv").traffic(converted, rng_of(0)).flows
    assert [(flow.src, flow.dst) for flow in flows] == [(flow.src, flow.dst) for flow in again]
    (block,) = re.findall(r"^```python\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE)
    names: dict[str, tailrace.Result] = {}
    exec(block, {}, names)
    assert names["result"].complete


def test_the_example_of_csv(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```\n(src,.*?)^```", DOCS, re.DOTALL | re.MULTILINE)
    (tmp_path / "x").write_text(text)
    topology = parse_topology("leaf-spine:leaves=2,spines=1,hosts=4")
    first, second = parse_workload(str(tmp_path / "x")).traffic(topology, rng_of(1)).flows
    assert (first.sport, first.bytes, first.start_ns) == (5000, 64 << 10, 0)
    assert (second.after, second.after_ns, second.start_ns) == ((1,), (2000,), 10_000)


def test_a_flow_that_keeps_its_path_beside_sprayed_ones(tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text("src,dst,bytes,start,path\nh1,h5,1MiB,0,ecmp\nh2,h6,1MiB,0,\n")
    network = "leaf-spine:leaves=2,spines=4,hosts=4"
    result = tailrace.run(scheme="reps", topology=network, workload=str(file), target="virtual")
    keeps, sprayed = result.rows
    assert (keeps.path_changes, keeps.out_of_order_raw) == (0, 0)
    assert sprayed.path_changes > 100
    file.write_text("src,dst,bytes,start,path\nh1,h5,1MiB,0,hash\n")
    with pytest.raises(SpecError, match=r"line 2: path must be empty or ecmp, found 'hash'"):
        parse_workload(str(file))


def test_a_network_and_flows_of_hpcc(tmp_path: Path) -> None:
    """Numbers in flow.txt are those of topology.txt, where switch 0 precedes the hosts."""
    network, path = tmp_path / "topology.txt", tmp_path / "flow.txt"
    links = "".join(f"0 {host} 100Gbps 0.001ms 0\n" for host in range(1, 8))
    network.write_text(f"8 1 7\n0\n{links}")
    path.write_text(HPCC_FLOWS)
    experiment = make(
        {"scheme": "ecmp", "topology": str(network), "workload": str(path), "target": "virtual"}
    )
    flows = plan(experiment, "virtual").job.flows
    topology = parse_topology(str(network))
    names = [(topology.host_by_ip(flow.src).name, topology.host_by_ip(flow.dst).name) for flow in flows]
    assert names == [("h2", "h1"), ("h3", "h1")]
    assert files_of(experiment).keys() == {str(network), str(path)}


def test_flows_that_start_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ConWeave's start at 2 s: until then nothing is sent, so a fault that lasts as long starves no flow."""
    monkeypatch.setattr(progress, "MOST_RETRANSMISSIONS", 10)
    (tmp_path / "flow.txt").write_text("2\n0 2 3 80000 0.02\n1 3 3 4000 0.020001\n")
    words = ("--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--workload", str(tmp_path / "flow.txt"))
    for more in ((), ("--fault", "link-down:link=leaf1-spine1,until=20ms")):
        out = str(tmp_path / f"out{len(more)}")
        call = ["run", "--scheme", "ecmp", "--target", "virtual", "--out", out]
        assert main([*call, *words, *more]) == 0
        assert "2 of 2 flows" in capsys.readouterr().err


def test_a_run_of_htsims_files(tmp_path: Path) -> None:
    """Triggers hold: each flow starts when those that it waits for are complete at its sender."""
    network, path = tmp_path / "tree", tmp_path / "flows"
    network.write_text(TOPO)
    path.write_text(CM)
    result = tailrace.run(scheme="spray", topology=str(network), workload=str(path), target="virtual")
    rows = {row["id"]: row for row in result.flows.to_struct_array().to_pylist()}
    assert [rows[number]["dst"] for number in (1, 2, 3, 4)] == ["h1", "h2", "h0", "h1"]
    assert rows[1]["start_ns"] == 1500
    assert rows[2]["start_ns"] == rows[1]["end_ns"], "received by its sender"
    assert rows[4]["start_ns"] >= max(rows[2]["end_ns"], rows[3]["end_ns"]), "sent and received by its sender"


def test_multishot_starts_a_flow_for_each_that_ends(tmp_path: Path) -> None:
    """In the file's order, whichever ends first; of three that end, the last starts none."""
    path, network = tmp_path / "flows", "leaf-spine:leaves=3,spines=1,hosts=1"
    path.write_text(CM_MULTISHOT.replace("size 10 ", "size 400000 "))
    result = tailrace.run(scheme="ecmp", topology=network, workload=str(path), target="virtual")
    rows = result.flows.to_struct_array().to_pylist()
    long, short, received, first, second = rows
    assert received["end_ns"] == first["start_ns"], "the first of three to end"
    assert short["end_ns"] < second["start_ns"] < long["end_ns"]
    with pytest.raises(SpecError, match=r"cannot be written: flow 4 waits for some of several flows"):
        tailrace.convert(str(path), tmp_path / "x.csv", "csv", topology=network)
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("delay", ["", "+7us"])
def test_a_flow_starts_a_time_after_another(delay: str, tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(
        f"src,dst,bytes,start,after\nh1,h3,10KiB,0,\nh3,h1,1KiB,0,1{delay}\nh3,h2,1KiB,1s,1{delay}\n"
    )
    result = tailrace.run(
        scheme="ecmp", topology="leaf-spine:leaves=2,spines=1,hosts=2", workload=str(path), target="virtual"
    )
    first, second, third = result.flows.to_struct_array().to_pylist()
    assert second["start_ns"] == first["end_ns"] + (7000 if delay else 0)
    assert third["start_ns"] == 10**9


def test_sizes_that_count_packets(tmp_path: Path) -> None:
    path = tmp_path / "packets.txt"
    path.write_text("1 0\n3 1\n")
    topology = parse_topology("leaf-spine:leaves=2,spines=1,hosts=2")
    workload = f"random:flows=200,cdf={path},unit=1500B"
    sizes = [flow.bytes for flow in parse_workload(workload).traffic(topology, rng_of(1)).flows]
    assert 1500 <= min(sizes) < 2000 < 4000 < max(sizes) <= 4500
    capped = parse_workload(f"{workload},most=2000").traffic(topology, rng_of(1)).flows
    assert [flow.bytes for flow in capped] == [min(size, 2000) for size in sizes]


def test_a_graph_with_attributes(tmp_path: Path) -> None:
    """As a graph and as the file that NetworkX writes of it: the same network."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("h1", role="host")
    graph.add_node("h2", role="host")
    graph.add_node("s", role="spine", group=1)
    graph.add_edge("h1", "s", rate="10Gbps", delay="3us")
    graph.add_edge("s", "h2", rate=5e9)
    tailrace.convert(graph, tmp_path / "ours.json", "node-link", delay="9us")
    theirs = tmp_path / "theirs.json"
    theirs.write_text(
        str(nx.node_link_data(graph, edges="edges")).replace("'", '"').replace("False", "false")
    )
    ours, read = parse_topology(str(tmp_path / "ours.json")), parse_topology(f"{theirs}:delay=9us")
    assert (ours.hosts, ours.switches, ours.links) == (read.hosts, read.switches, read.links)
    assert [(host.rate_bps, host.delay_ns) for host in ours.hosts] == [(10**10, 3000), (5 * 10**9, 9000)]
    assert (ours.switches[0].role, ours.switches[0].group) == ("spine", 1)


def test_commands_complete_and_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.cm").write_text(TEXTS["htsim-cm"][0].replace("size 10 ", "size 10 prio 1 "))
    words = [
        "convert",
        "x.cm",
        "y.csv",
        "--format",
        "csv",
        "--topology",
        "leaf-spine:leaves=2,spines=1,hosts=2",
    ]
    assert main(words) == 2
    problem = "x.cm: htsim-cm, line 7: prio: not supported: flows have no priorities"
    assert capsys.readouterr().err == f"tailrace: {problem}\n"
    assert main([*words[:2], "no/folder/y.csv", *words[3:]]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.cm"]
