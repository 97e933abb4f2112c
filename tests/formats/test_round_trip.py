# SPDX-License-Identifier: Apache-2.0
"""What a writer writes, its reader reads: networks, flows and distributions, in each format that can express them."""

from __future__ import annotations

import random
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tailrace
from tailrace.experiments.workloads.sizes import NAMES, find_cdf
from tailrace.experiments.workloads.workload import parse_workload, rng_of
from tailrace.formats.registry import Kind, formats
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import SpecError
from tailrace.topology import Topology, parse_topology
from tests.formats.examples import NETWORKS

FORMATS = {kind: [each.name for each in formats() if each.kind is kind] for kind in Kind}
SPECS = (
    "leaf-spine:leaves=3,spines=2,hosts=4,rate=100Gbps,delay=700ns",
    "fat-tree:k=4,rate=40Gbps",
    "fat-tree:k=4,taper=2",
    "dragonfly:p=2,a=3,h=1,local=10ns,host=20ns",
    "slim-fly:p=1,q=5,rate=1.5Gbps",
)
LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=3"
WORKLOADS = (
    "permutation:size=1KiB,jitter=10us",
    "alltoall:hosts=4,window=1,size=5KB",
    "allreduce:hosts=5,size=100KB",
    "incast:degree=3",
    "random:messages=3,cdf=hadoop",
)


def graph_of(topology: Topology) -> nx.MultiGraph[str]:
    """The network without numbers of ports, addresses and names of hosts and switches."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    for host in topology.hosts:
        graph.add_edge(f"host {host.name}", host.switch, link=(host.rate_bps, host.delay_ns))
    for link in topology.links:
        graph.add_edge(link.a, link.b, link=(link.rate_bps, link.delay_ns))
    return graph


def same_links(a: dict[int, dict[str, object]], b: dict[int, dict[str, object]]) -> bool:
    return sorted(map(str, a.values())) == sorted(map(str, b.values()))


@pytest.mark.parametrize("name", FORMATS[Kind.TOPOLOGY])
@pytest.mark.parametrize("spec", SPECS)
def test_networks(name: str, spec: str, tmp_path: Path) -> None:
    """The same graph with the same links; formats with names, ports and addresses keep them."""
    topology, path = parse_topology(spec), tmp_path / "file.x"
    if name == "htsim-topo" and topology.kind not in ("leaf-spine", "fat-tree"):
        with pytest.raises(SpecError, match="htsim-topo: expected a leaf-spine or a fat-tree"):
            tailrace.convert(spec, path, name)
        return
    tailrace.convert(spec, path, name)
    again = parse_topology(str(path))
    assert nx.is_isomorphic(graph_of(again), graph_of(topology), edge_match=same_links)
    if name in ("p4lang", "node-link"):
        assert (again.switches, again.links) == (topology.switches, topology.links)
        ends = [(host.name, host.ip, host.mac, host.switch, host.port) for host in again.hosts]
        assert ends == [(host.name, host.ip, host.mac, host.switch, host.port) for host in topology.hosts]
        pairs = [(a.name, b.name) for a in topology.hosts[:4] for b in topology.hosts if a != b]
        assert [again.next_hop_mac(*pair) for pair in pairs] == [
            topology.next_hop_mac(*pair) for pair in pairs
        ]
    else:
        leaves = {name: index for index, name in enumerate(topology.leaves)}
        near = [leaves[host.switch] for host in topology.hosts]
        leaves = {name: index for index, name in enumerate(again.leaves)}
        assert [leaves[host.switch] for host in again.hosts] == near, "host numbers stay"


@pytest.mark.parametrize("name", ["p4lang", "node-link", "hpcc-topology"])
def test_networks_of_files(name: str, tmp_path: Path) -> None:
    """A file in one format becomes one in another."""
    for number, (text, _) in enumerate(case for cases in NETWORKS.values() for case in cases):
        given, path = tmp_path / f"{number}.x", tmp_path / f"{number}.{name}"
        given.write_text(text)
        topology = parse_topology(str(given))
        lacks = "switches cannot have a latency" if topology.latency_ns else ""
        if name == "node-link" and any(host.arp for host in topology.hosts):
            lacks = "host h1 has routes or ARP entries besides a default route"
        if lacks:
            with pytest.raises(SpecError, match=f"{name}: {lacks}"):
                tailrace.convert(str(given), path, name)
            assert not path.exists()
            continue
        tailrace.convert(str(given), path, name)
        again = parse_topology(str(path))
        assert nx.is_isomorphic(graph_of(again), graph_of(topology), edge_match=same_links)


def delays(flow: FlowSpec) -> dict[int, int]:
    return dict(zip(flow.after, flow.after_ns or (0,) * len(flow.after), strict=True))


def assert_same(name: str, again: list[FlowSpec], flows: list[FlowSpec], topology: Topology) -> None:
    """The same flows, in the same order (GOAL has those of each sender together)."""
    if name == "goal":
        flows = sorted(flows, key=lambda flow: topology.host_by_ip(flow.src).id)
    numbers = {flow.id: number for number, flow in enumerate(flows, start=1)}
    for a, b in zip(again, flows, strict=True):
        assert (a.src, a.dst, a.bytes, a.start_ns) == (b.src, b.dst, b.bytes, b.start_ns)
        assert delays(a) == {numbers[earlier]: delay_ns for earlier, delay_ns in delays(b).items()}
        assert a.sport == b.sport or name != "csv", "CSV has the ports"


@pytest.mark.parametrize("name", FORMATS[Kind.WORKLOAD])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_workloads(name: str, workload: str, tmp_path: Path) -> None:
    """The flows of a run with the same seed, in the same order; CSV keeps the ports as well."""
    path, topology = tmp_path / "file.x", parse_topology(LEAF_SPINE)
    flows = parse_workload(workload).traffic(topology, rng_of(5)).flows
    waits = any(flow.after for flow in flows)
    if waits and ("htsim-cm", "hpcc-flows").count(name):
        try:
            tailrace.convert(workload, path, name, topology=LEAF_SPINE, seed=5)
        except SpecError as error:
            assert "cannot be written" in str(error)
            assert not path.exists()
            return
        assert name == "htsim-cm"
    else:
        tailrace.convert(workload, path, name, topology=LEAF_SPINE, seed=5)
    again = parse_workload(str(path)).traffic(topology, random.Random(0)).flows
    assert_same(name, again, flows, topology)


@st.composite
def csv_files(draw: st.DrawFn) -> str:
    """Flows among six hosts, some after earlier flows of the same host, with a delay."""
    rows: list[tuple[int, int]] = []
    lines = ["src,dst,bytes,start,sport,after"]
    for _ in range(draw(st.integers(1, 12))):
        src, dst = draw(st.lists(st.integers(1, 6), min_size=2, max_size=2, unique=True))
        seen = [number for number, ends in enumerate(rows, start=1) if src in ends]
        waits = draw(st.lists(st.sampled_from(seen), unique=True, max_size=3)) if seen else []
        after = " ".join(f"{number}{draw(st.sampled_from(['', '+3us', '+7ns']))}" for number in waits)
        size, start = draw(st.integers(1, 1 << 32)), draw(st.integers(0, 10**12))
        lines.append(f"h{src},h{dst},{min(size, (1 << 32) - 1)},{start},,{after}")
        rows.append((src, dst))
    return "\n".join(lines) + "\n"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=csv_files(), name=st.sampled_from(FORMATS[Kind.WORKLOAD]))
def test_any_flows(text: str, name: str, tmp_path: Path) -> None:
    """Either the same flows come back, or a line says what the format lacks."""
    given, path, topology = tmp_path / "given.csv", tmp_path / "file.x", parse_topology(LEAF_SPINE)
    given.write_text(text)
    flows = parse_workload(str(given)).traffic(topology, rng_of(1)).flows
    try:
        tailrace.convert(str(given), path, name, topology=LEAF_SPINE)
    except SpecError as error:
        assert str(error).startswith(f"{name}: ")
        assert ": cannot be written: " in str(error)
        assert name != "csv"
        assert any(flow.after for flow in flows)
        return
    again = parse_workload(str(path)).traffic(topology, random.Random(0)).flows
    assert_same(name, again, flows, topology)


@pytest.mark.parametrize("name", FORMATS[Kind.SIZES])
@pytest.mark.parametrize("distribution", NAMES)
def test_distributions(name: str, distribution: str, tmp_path: Path) -> None:
    path = tmp_path / "file.x"
    tailrace.convert(distribution, path, name)
    assert find_cdf(str(path)) == find_cdf(distribution)
