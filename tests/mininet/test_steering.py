"""Low-diameter networks under Mininet whose hosts choose the paths: failed links, trimming (Spritz §II-B, §IV-C)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scapy.layers.l2 import Dot1Q
from scapy.utils import PcapReader

from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.spritz.endpoints import EndpointPaths
from tailrace.topology import Topology, parse_topology
from tests.long import more
from tests.mininet.conftest import Harness
from tests.schemes.planned import endpoint_paths

MS = 1_000_000
WORDS = "dragonfly:p=1,a=2,h=1,rate=10Gbps,delay=1us,latency=500ns"
SLIM_FLY = "slim-fly:p=1,q=3,rate=10Gbps,delay=1us,latency=500ns"
"""The smallest one, of 18 switches."""

FLOW_BYTES = 600_000
"""At 10 Mb/s they take half a second."""

FAILS_NS = 250 * MS


def first_link(topology: Topology, table: EndpointPaths, src: str, dst: str) -> tuple[str, str]:
    """The first link of the minimal path from host to host."""
    ends = (topology.host_by_ip(ip).switch for ip in (src, dst))
    path = table.paths.between(*ends)[0]
    return path.switches[0], path.switches[1]


@pytest.mark.parametrize(
    ("words", "variant"), [(WORDS, "scout"), *more((WORDS, "spray"), (SLIM_FLY, "spray"))]
)
def test_senders_leave_a_failed_link(harness: Harness, words: str, variant: str) -> None:
    """The switches' tables stay as they are; the flows of both directions get through on other paths."""
    topology, scheme = parse_topology(words), f"spritz:variant={variant}"
    table = endpoint_paths(topology, parse_scheme(scheme))
    src, dst = topology.hosts[0].ip, topology.hosts[-1].ip
    a, b = first_link(topology, table, src, dst)
    flow = {"bytes": FLOW_BYTES, "start_ns": 0, "qpn": 1, "sport": 50000}
    job = harness.job(
        topology=words,
        scheme=scheme,
        flows=[{**flow, "id": 0, "src": src, "dst": dst}, {**flow, "id": 1, "src": dst, "dst": src}],
        nic={
            "transport": "dctcp",
            "window_bytes": 30_000,
            "rto_ns": 200 * MS,
            "steering": {"algorithm": variant, "timer_ns": 60_000 * MS},
        },
        faults=[{"kind": "link-down", "a": a, "b": b, "at_ns": FAILS_NS}],
    )
    done = harness.run(job)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{a}-{b} is down" in done.stdout or f"{b}-{a} is down" in done.stdout
    document = json.loads((harness.out / "RESULT.json").read_text())
    assert all(record["end_ns"] is not None for record in document["flows"])
    assert all(record["blocked"] and record["retransmitted"] for record in document["flows"])
    assert harness.left_behind() == []


def test_path_classes_are_tags_that_no_host_gets(harness: Harness) -> None:
    """All data has a tag on its first link, some of it still on the second one, none on the last one."""
    topology, scheme = parse_topology(WORDS), "spritz:variant=spray,mode=coarse"
    source, target = topology.hosts[0], topology.hosts[-1]
    job = harness.job(
        topology=WORDS,
        scheme=scheme,
        flows=[
            {"id": 0, "src": source.ip, "dst": target.ip, "bytes": 100_000}
            | {"start_ns": 0, "qpn": 1, "sport": 50000}
        ],
        nic={
            "transport": "dctcp",
            "window_bytes": 30_000,
            "rto_ns": 5_000 * MS,
            "steering": {"algorithm": "spray", "timer_ns": 60_000 * MS},
        },
        pcap_dir=str(harness.out / "pcap"),
    )
    done = harness.run(job)
    assert (done.returncode, done.stderr) == (0, "")
    tagged = {path.stem: tags(path) for path in (harness.out / "pcap").iterdir()}
    assert tagged.pop(f"{source.name}-{source.switch}") >= 98
    assert 0 < sum(tagged.values()) < 98
    assert 0 == tagged[f"{target.name}-{target.switch}"]


def tags(path: Path) -> int:
    """Frames of a capture with a VLAN tag."""
    with PcapReader(str(path)) as reader:
        return sum(1 for packet in reader if Dot1Q in packet)


def test_a_full_queue_trims(harness: Harness) -> None:
    """An incast at one host: packets lose their payload, the host sees it, and they are sent again."""
    words, scheme = WORDS.replace("p=1", "p=2"), "spritz:variant=spray,queue=8KiB"
    topology = parse_topology(words)
    dst, *sources = (host.ip for host in topology.hosts[:4])
    pairs = [(src, dst) for src in sources]
    flow = {"bytes": 100_000, "start_ns": 0, "dst": dst}
    job = harness.job(
        topology=words,
        scheme=scheme,
        flows=[
            {**flow, "id": number, "src": src, "qpn": number, "sport": 50000 + number}
            for number, (src, _) in enumerate(pairs)
        ],
        nic={
            "transport": "dctcp",
            "window_bytes": 30_000,
            "rto_ns": 5_000 * MS,
            "steering": {"algorithm": "spray", "timer_ns": 60_000 * MS},
        },
    )
    done = harness.run(job)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((harness.out / "RESULT.json").read_text())
    assert all(record["end_ns"] is not None for record in document["flows"])
    trims = sum(switch["trims"] for switch in document["switches"].values())
    # on a machine that does not keep up, frames may get lost elsewhere
    assert trims >= sum(record["trimmed"] for record in document["flows"]) > 0
    assert sum(record["retransmitted"] for record in document["flows"]) > 0
    assert harness.left_behind() == []
