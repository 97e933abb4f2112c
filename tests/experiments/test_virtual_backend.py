# SPDX-License-Identifier: Apache-2.0
"""Experiments in virtual time: ideal times, faults, determinism, captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace import hosts
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result, to_json
from tailrace.sim.outcome import Progress
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.study.task import run
from tests.experiments.virtual import result_of

LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
FAT_TREE = "fat-tree:k=4,rate=25Gbps,delay=500ns"
CHAIN = """{
  "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
  "switches": {"s1": {}, "s2": {}},
  "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2", "2us", 40], ["h2", "s2-p1"]]
}"""


def measure(**values: object) -> Result:
    words = {
        "scheme": "ecmp",
        "topology": LEAF_SPINE,
        "target": "virtual",
        "workload": "permutation:size=64KiB,peers=remote",
    }
    return result_of({**words, **values})


def document(result: Result) -> dict[str, Any]:
    """summary.json as a reader sees it."""
    parsed: dict[str, Any] = json.loads(to_json(result.summary))
    return parsed


def times(result: Result) -> list[int]:
    """Completion times in ns, all flows having finished."""
    assert result.complete
    return [row.fct_ns or 0 for row in result.rows]


def single_flow_file(folder: Path, src: str, dst: str, size_bytes: int) -> str:
    path = folder / "flows.csv"
    path.write_text(f"src,dst,bytes,start\n{src},{dst},{size_bytes},5us\n")
    return str(path)


@pytest.mark.parametrize(
    ("topology", "src", "dst"),
    [
        (LEAF_SPINE, "h1", "h2"),
        (LEAF_SPINE, "h1", "h4"),
        (FAT_TREE, "h1", "h16"),
        ("leaf-spine:leaves=2,spines=1,hosts=1,rate=1Gbps,delay=20us", "h1", "h2"),
    ],
)
@pytest.mark.parametrize("size_bytes", [1, 1024, 1025, 100_000])
def test_one_flow_takes_its_ideal_time(
    tmp_path: Path, topology: str, src: str, dst: str, size_bytes: int
) -> None:
    """Alone in the network, a flow is within one packet's time of the ideal, at any distance and size."""
    workload = single_flow_file(tmp_path, src, dst, size_bytes)
    result = measure(topology=topology, workload=workload)
    [row] = result.rows
    rate_bps = plan(make({"scheme": "ecmp", "topology": topology}), "virtual").topology.hosts[0].rate_bps
    packet_ns = (1024 + 74) * 8 * 10**9 / rate_bps
    assert row.fct_ns is not None and row.ideal_fct_ns is not None
    assert abs(row.fct_ns - row.ideal_fct_ns) <= packet_ns
    assert row.start_ns == 5000
    assert (row.src, row.dst, row.packets, row.out_of_order) == (src, dst, -(-size_bytes // 1024), 0)


def test_one_flow_over_unequal_links(tmp_path: Path) -> None:
    """The same where the middle link is the bottleneck, in a network from a file."""
    (tmp_path / "chain.json").write_text(CHAIN)
    words = f"{tmp_path / 'chain.json'}:rate=1Gbps,delay=1us"
    result = measure(topology=words, workload=single_flow_file(tmp_path, "h1", "h2", 50_000), window="1MiB")
    [row] = result.rows
    assert row.fct_ns is not None and row.ideal_fct_ns is not None
    assert abs(row.fct_ns - row.ideal_fct_ns) <= (1024 + 74) * 8 * 1000 / 40


def test_the_seed_decides_everything() -> None:
    """Twice the same run gives the same file, whatever is drawn; another seed another trace."""
    faults = ["blackhole:pairs=0.3,until=100us", "drop:rate=0.01,where=spine,at=10us", "ack-loss:rate=0.1"]
    values = {"scheme": "flowcut", "workload": "random:flows=6,size=20KiB", "fault": faults}
    first, second, other = (measure(seed=seed, **values) for seed in (1, 1, 2))
    assert first.rows == second.rows
    assert first.summary.trace_sha256 == second.summary.trace_sha256 != other.summary.trace_sha256


def test_summary_of_a_virtual_run() -> None:
    """It knows its virtual time, its hops, its program; nothing was lost, and the machine cannot be too slow."""
    result = measure(scheme="flowcut")
    summary = document(result)
    packets = summary["packets"]
    assert result.complete
    assert summary["virtual_ns"] > max(times(result))
    assert summary["packet_hops"] > 2 * packets["sent"]
    assert len(summary["p4_sha256"]) == len(summary["trace_sha256"]) == 64
    assert summary["nics"] == hosts.IMPLEMENTATION
    assert packets["sent"] == packets["delivered"] == 4 * 64
    assert (packets["dropped"], packets["out_of_order"], summary["overloaded"]) == (0, 0, False)
    assert summary["flowcut"]["flowcut_created"] == summary["flowcut"]["flowcut_deleted"] > 0


def test_progress_ends_with_all_flows() -> None:
    """The last report says that every flow is done."""
    seen: list[Progress] = []
    words = {"scheme": "ecmp", "topology": LEAF_SPINE, "workload": "permutation:size=10KiB"}
    run(plan(make(words), "virtual"), VirtualBackend(), seen.append, label="it")
    last = seen[-1]
    assert (last.phase, last.done, last.flows, last.share) == ("traffic", 4, 4, 1.0)
    assert last.virtual_ns
    assert last.events


def test_slow_link_slows_exactly_what_crosses_it() -> None:
    """With the only spine's link at a tenth, flows from that leaf take about ten times as long."""
    topology = "leaf-spine:leaves=3,spines=1,hosts=1,rate=10Gbps,delay=1us"
    values = {"topology": topology, "workload": "permutation:size=256KiB", "window": "256KiB"}
    clean, slow = measure(**values), measure(fault="link-slow:link=leaf1-spine1,factor=0.1", **values)
    ratios = [after / before for before, after in zip(times(clean), times(slow), strict=True)]
    touched = ["h1" in (row.src, row.dst) for row in clean.rows]
    assert sorted(touched) == [False, True, True]
    for ratio, hit in zip(ratios, touched, strict=True):
        assert (8 < ratio < 11) if hit else (0.9 < ratio < 1.1), ratios


@pytest.mark.parametrize("variant", ["full", "ingress", "nic"])
def test_lost_flowcut_acks(variant: str) -> None:
    """ACK loss takes Flowcut ACKs and nothing else: no data is retransmitted, and order is kept."""
    result = measure(fault="ack-loss:rate=0.2", scheme=f"flowcut:variant={variant}")
    assert result.complete
    assert document(result)["packets"]["dropped"] > 0
    assert result.summary.packets.retransmitted == result.summary.packets.out_of_order == 0
    assert measure(fault="ack-loss:rate=0.2").summary.packets.dropped == 0


def test_network_cut_in_two_is_given_up() -> None:
    """Without any path a flow never finishes; the run ends all the same and says so."""
    topology = "leaf-spine:leaves=2,spines=1,hosts=1,rate=10Gbps,delay=1us"
    result = measure(topology=topology, fault="link-down:link=leaf1-spine1", workload="permutation:size=4KiB")
    assert result.summary.completed == 0
    assert not result.complete
    assert "fct_ns" not in to_json(result.summary)


def test_capture(tmp_path: Path) -> None:
    """--pcap writes what every link carried."""
    words = {"scheme": "ecmp", "topology": LEAF_SPINE, "workload": "permutation:size=4KiB"}
    folder = tmp_path / "pcap"
    run(plan(make(words), "virtual"), VirtualBackend(), lambda _progress: None, label="it", pcap_dir=folder)
    [path] = folder.iterdir()
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"  # pcapng's section header
    assert path.stat().st_size > 4 * 4 * 100


@pytest.mark.parametrize("scheme", ["ecmp", "flowcut"])
def test_a_window_of_less_than_a_packet(scheme: str) -> None:
    """One packet may be under way whatever the window, and queues have room for it."""
    result = measure(scheme=scheme, workload="incast:degree=3,size=8KiB", window="1")
    assert result.complete
    assert result.summary.packets.retransmitted == 0


def test_a_flow_that_outlasts_virtual_time() -> None:
    """One line instead of times that wrap around."""
    slow = "leaf-spine:leaves=2,spines=1,hosts=1,rate=1bps"
    with pytest.raises(SpecError, match="longer than 100 days"):
        measure(topology=slow, workload="permutation:size=8MiB")
