"""The same experiment in real time under Mininet and in virtual time: the same paths, and the same order."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import PcapReader

from tailrace.codec.layers.bth import BTH
from tailrace.codec.numbers import Opcode
from tailrace.emulation.mininet import MininetBackend
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.flows.flow import FlowRecord
from tailrace.sim.job import Job
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.sim.run import VirtualBackend
from tailrace.topology import parse_topology
from tests.long import more
from tests.mininet.conftest import ROOT, Harness

# on most ways through it two switches, one after the other, choose among paths
TOPOLOGY = str(ROOT / "tests" / "flowcut" / "irregular.json")
HOSTS = {host.name for host in parse_topology(TOPOLOGY).hosts}
WORDS = {
    "topology": TOPOLOGY,
    "workload": "random:flows=12,size=16KiB,peers=remote",
    "time_scale": 200.0,
}
NEVER_DRAINS = "rtt=100,growth=off"
"""On a busy machine round trips vary whatever the switches do."""

APART_NS = 400_000_000
"""A flow takes a tenth of it. Alone in the network, a flow whose flowcut has ended finds all queues empty and takes its
last path again; in the company of others it may take another, and when its flowcut ends is a matter of timing."""

Flow = tuple[str, str, int]
"""Source, destination, source port."""

Link = frozenset[str]
"""Its two ends."""


@dataclass
class Seen:
    """Data packets where they arrive at the ends of links: the links of each by time, and arrivals at hosts."""

    links: dict[Flow, dict[int, list[Link]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    arrived: dict[Flow, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, packet: Packet, link: Link) -> None:
        """To be called in the order of time. What is at a place again is a retransmission, which does not count."""
        if BTH not in packet or packet[BTH].opcode >= Opcode.ACK:
            return
        flow = (packet[IP].src, packet[IP].dst, packet[UDP].sport)
        places = self.links[flow][packet[BTH].psn]
        if link not in places:
            places.append(link)
            if link & HOSTS and len(places) > 1:
                self.arrived[flow].append(packet[BTH].psn)

    def paths(self) -> dict[Flow, set[tuple[Link, ...]]]:
        """Every way that packets of a flow have taken, from host to host."""
        return {flow: {tuple(links) for links in packets.values()} for flow, packets in self.links.items()}


def in_real_time(job: Job, folder: Path) -> tuple[Seen, Sequence[FlowRecord]]:
    """What Mininet's captures of every link show, and what the hosts counted."""
    outcome = MininetBackend().run(structs.replace(job, pcap_dir=folder), lambda _progress: None)
    packets = []
    for path in folder.iterdir():
        with PcapReader(str(path)) as reader:
            packets += [(packet.time, packet, frozenset(path.stem.split("-"))) for packet in reader]
    seen = Seen()
    for _, packet, link in sorted(packets, key=lambda entry: entry[0]):
        seen.add(packet, link)
    return seen, outcome.records


def in_virtual_time(job: Job) -> tuple[Seen, Sequence[FlowRecord]]:
    """The same from taps of every wire."""
    seen = Seen()

    def tap(wire: Wire, event: WireEvent, _now_ns: int, frame: bytes, _virtual_bytes: int) -> None:
        if event is WireEvent.RECEIVED:
            seen.add(Ether(frame), frozenset({wire.source.node, wire.target.node}))

    def look(network: Network) -> None:
        network.tap(tap)

    outcome = VirtualBackend(look).run(structs.replace(job, target="virtual"), lambda _progress: None)
    return seen, outcome.records


@pytest.mark.parametrize(
    ("scheme", "apart_ns"),
    [
        ("ecmp", 0),
        (f"flowcut:variant=full,{NEVER_DRAINS}", APART_NS),
        *more((f"flowcut:variant=ingress,{NEVER_DRAINS}", APART_NS)),
    ],
)
def test_real_and_virtual_time_agree(
    scheme: str, apart_ns: int, harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every flow takes one path, the same in both, and its packets arrive in the order in which they were sent."""
    monkeypatch.setattr(tempfile, "tempdir", str(harness.temporary))
    monkeypatch.setenv("TMPDIR", str(harness.temporary))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(harness.runtime))
    job = plan(make({**WORDS, "scheme": scheme, "target": "native"}), "native").job
    job = structs.replace(
        job, flows=tuple(structs.replace(f, start_ns=i * apart_ns) for i, f in enumerate(job.flows))
    )
    virtual, virtual_records = in_virtual_time(job)
    real, real_records = in_real_time(job, tmp_path / "pcap")
    flows = {(flow.src, flow.dst, flow.sport): flow for flow in job.flows}
    assert virtual.links.keys() == flows.keys()
    assert all(len(ways) == 1 for ways in virtual.paths().values())
    assert len({way for ways in virtual.paths().values() for way in ways}) > len(flows) // 2, "paths differ"
    assert real.paths() == virtual.paths()
    assert real.arrived == virtual.arrived
    assert all(numbers == sorted(numbers) for numbers in real.arrived.values())
    for records in (virtual_records, real_records):
        assert all(record.end_ns is not None for record in records)
        assert [record.overtaken for record in records] == [0] * len(flows)
    assert harness.left_behind() == []
