# SPDX-License-Identifier: Apache-2.0
"""The record of a run: it agrees with what the run counts, and does not change the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import UNSET

import tailrace
from tailrace.experiments.plan.known import topology_of
from tailrace.results.result import Result
from tailrace.spec import SpecError
from tailrace.tables.arrow import values_of
from tailrace.topology import Topology

K4: dict[str, Any] = {"topology": "fat-tree:k=4,rate=25Gbps", "target": "virtual", "seed": 3}
SLOW: dict[str, Any] = {"fault": "link-slow:link=edge1_1-agg1_1,factor=0.1"}
RUNS: dict[str, dict[str, Any]] = {
    "flowcut nic": {"scheme": "flowcut:variant=nic", "workload": "permutation:size=256KiB", **SLOW},
    "flowcut full": {"scheme": "flowcut:variant=full", "workload": "permutation:size=256KiB", **SLOW},
    "letflow": {"scheme": "letflow", "workload": "permutation:size=256KiB", **SLOW},
    "spray": {"scheme": "spray", "workload": "permutation:size=64KiB", "transport": "sr"},
    "rlb": {"scheme": "rlb:variant=presto", "workload": "incast:size=256KiB,degree=12", "transport": "dcqcn"},
    "spritz": {"scheme": "spritz", "workload": "incast:size=128KiB,degree=12"},
    "drops": {"scheme": "ecmp:queue=16KiB", "workload": "incast:size=64KiB,degree=8", "transport": "sr"},
    "fault": {"scheme": "ecmp", "workload": "permutation:size=64KiB", "fault": "drop:rate=0.01"},
}


def rows(result: Result) -> list[dict[str, Any]]:
    table = result.timelines.record
    assert table is not None
    columns = values_of(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def at(network: Topology, row: Mapping[str, Any]) -> str:
    """The node at the other end of the link on which a frame arrived."""
    return network.ports_of(row["node"])[row["port"]].name


def count_of(result: Result, kind: str) -> int:
    return sum(row["count"] for row in rows(result) if row["what"] == kind)


@pytest.mark.parametrize("name", RUNS)
def test_it_agrees_with_the_counts_and_changes_nothing(name):
    plain = tailrace.run(**K4, **RUNS[name])
    result = tailrace.run(**K4, **RUNS[name], record="packets")
    summary = result.summary
    assert summary.trace_sha256 == plain.summary.trace_sha256
    assert count_of(result, "path change") == summary.path_changes
    assert count_of(result, "drain") == summary.drains
    assert count_of(result, "timeout") == summary.timeouts
    by_class = Counter((row["what"], row["frame"]) for row in rows(result))
    network = topology_of(K4["topology"])
    hosts = {host.name for host in network.hosts}
    at_hosts = Counter(
        row["frame"]
        for row in rows(result)
        if row["what"] == "arrived" and row["node"] not in hosts and at(network, row) in hosts
    )
    packets = summary.packets
    assert at_hosts["data"] + at_hosts["retransmission"] == packets.delivered
    if packets.trimmed is not UNSET:
        assert at_hosts["trimmed"] + by_class["dropped", "trimmed"] == packets.trimmed
    lost = Counter(row["frame"] for row in rows(result) if row["what"] in ("dropped", "failed"))
    assert lost["data"] + lost["retransmission"] == packets.dropped_data
    if summary.pfc is not UNSET:
        assert by_class["arrived", "xoff"] == summary.pfc["pauses"]
    if summary.recirculations is not UNSET:
        # the program recirculates control frames, too
        data = by_class["recirculated", "data"] + by_class["recirculated", "retransmission"]
        assert data == summary.recirculations.total
    ends = Counter(row["flow"] for row in rows(result) if row["what"] == "drain")
    assert all(ends[row.id] <= row.drains for row in result.rows)
    times = [row["time_ns"] for row in rows(result)]
    assert times == sorted(times)


def test_the_runs_above_have_events_of_every_kind():
    seen = set()
    for keys in RUNS.values():
        for row in rows(tailrace.run(**K4, **keys, record="events")):
            seen.add(row["what"] if row["what"] != "arrived" else row["frame"])
    expected = {"xoff", "xon", "trimmed", "dropped", "failed", "recirculated"}
    assert seen >= expected | {"drain", "resume", "path change", "timeout"}


def test_events_are_packets_without_the_frames_that_arrive_where_the_last_one_did():
    network = topology_of(K4["topology"])
    access = {host.name: host.switch for host in network.hosts}
    for keys in (RUNS["rlb"], RUNS["spritz"]):
        kept: list[dict[str, Any]] = []
        last: dict[Any, Any] = {}
        for row in rows(tailrace.run(**K4, **keys, record="packets")):
            if row["what"] == "arrived" and row["frame"] not in ("trimmed", "xoff", "xon"):
                if row["frame"] not in ("data", "retransmission"):
                    continue
                link = row["node"], row["port"]
                node = at(network, row) if row["port"] else access[row["node"]], row["flow"]
                is_new, last[node] = last.get(node) != link, link
                if not is_new:
                    continue
            kept.append(row)
        events = rows(tailrace.run(**K4, **keys, record="events"))
        assert len(events) == len(kept)
        assert events == kept


def test_several_ranks_are_refused():
    with pytest.raises(SpecError, match="record"):
        tailrace.run(**K4, scheme="ecmp", workload="permutation:size=64KiB", record="events", ranks=2)


def test_another_word_is_refused():
    with pytest.raises(SpecError, match=r"record.*events, packets"):
        tailrace.experiment(scheme="ecmp", record="all")
