# SPDX-License-Identifier: Apache-2.0
"""What a hop costs in the core: a fat tree of configured switches on one core, without NICs (fabric.c).

The schemes' own programs and the controller's own tables; RoCE data of 2 KiB payload, carried as a length,
and its ACKs, between random pairs of hosts. The time is processor time of the whole loop, moving frames from
switch to switch included. A small network fits the caches; in a large one most of a hop is spent waiting for
memory.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from bench.library import C, ffi, load
from bench.loop import one_core
from bench.result import Result
from tailrace.codec.layers.bth import BTH, ROCE_PORT, Opcode
from tailrace.controller.reconcile import install_all
from tailrace.native.virtual import Network
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.intent import intent
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import GATEWAY_MAC, Host, Topology, parse_topology
from tailrace.words.constants import PS_PER_NS

GROUP = "core, one core"
SCHEMES = ("ecmp", "letflow", "flowcut")
GOAL_HOP_NS = {"ecmp": 250.0, "letflow": 300.0, "flowcut": 450.0}
TOPOLOGIES = ("fat-tree:k=4,rate=200Gbps", "fat-tree:k=16,rate=200Gbps")
LOAD = 0.3
FLOWS_A_HOST = 8
PAYLOAD_BYTES = 2048
WARM_UP_NS = 60_000
RUN_NS = 400_000
HOPS = 2_000_000
RUNS = 3
_IPV4_BYTES, _UDP_BYTES, _BTH_BYTES, _AETH_BYTES, _ICRC_BYTES = 20, 8, 12, 4, 4


def _frame(source: Host, destination: Host, number: int, *, ack: bool) -> tuple[bytes, int]:
    """A RoCE frame of flow `number` between two hosts, and the bytes of payload that follow as a length."""
    virtual_bytes = 0 if ack else PAYLOAD_BYTES
    bth = BTH(opcode=Opcode.ACK if ack else Opcode.WRITE_MIDDLE, dqpn=number)
    if ack:
        bth /= Raw(bytes(_AETH_BYTES))
    length = _UDP_BYTES + _BTH_BYTES + (_AETH_BYTES if ack else 0) + virtual_bytes + _ICRC_BYTES
    udp = UDP(sport=0xC000 + number, dport=ROCE_PORT, chksum=0, len=length)
    ip = IP(src=source.ip, dst=destination.ip, len=_IPV4_BYTES + length, flags="DF")
    return bytes(Ether(src=source.mac, dst=GATEWAY_MAC) / ip / udp / bth), virtual_bytes


class Fabric:
    """Configured switches, with sources in place of their hosts."""

    def __init__(self, library: Any, network: Network, topology: Topology) -> None:
        self._library = library
        names = [switch.name for switch in topology.switches]
        places = {name: place for place, name in enumerate(names)}
        self.window_ps = min(link.delay_ns for link in topology.links) * PS_PER_NS
        self._cores = ffi.new("tr_switch *[]", [network.switch(name).handle for name in names])
        self._ends = ffi.new("bench_end[]", len(names) * C.TR_MAX_PORTS)
        for end in self._ends:
            end.node = C.BENCH_NO_SWITCH
        for link in topology.links:
            for near, near_port, far, far_port in (
                (link.a, link.a_port, link.b, link.b_port),
                (link.b, link.b_port, link.a, link.a_port),
            ):
                end = self._ends[places[near] * C.TR_MAX_PORTS + near_port]
                end.node, end.port = places[far], far_port
        self._add_sources(topology.hosts, places)
        self._fabric = library.bench_fabric_new(
            self._cores,
            self._ends,
            len(names),
            self._sources,
            len(self._sources),
            self._frames,
            self._lens,
            self._virts,
        )
        if not self._fabric:
            raise RuntimeError("out of memory")
        self._until_ps = 0

    def _add_sources(self, hosts: Sequence[Host], places: dict[str, int]) -> None:
        """Every host sends FLOWS_A_HOST flows, and the ACKs of as many that it receives, in turn."""
        chooser = random.Random(1)
        sent: dict[Host, list[tuple[bytes, int]]] = {host: [] for host in hosts}
        for number in range(FLOWS_A_HOST):
            # a random cycle through all hosts: everyone sends one flow and receives one
            order = chooser.sample(hosts, len(hosts))
            for source, destination in zip(order, [*order[1:], order[0]], strict=True):
                sent[source].append(_frame(source, destination, number, ack=False))
                sent[destination].append(_frame(destination, source, number, ack=True))
        frames = [frame for host in hosts for frame in sent[host]]
        self._frames = ffi.from_buffer(b"".join(data.ljust(C.BENCH_ROOM, b"\0") for data, _ in frames))
        self._lens = ffi.new("uint32_t[]", [len(data) for data, _ in frames])
        self._virts = ffi.new("uint32_t[]", [virtual_bytes for _, virtual_bytes in frames])
        self._sources = ffi.new("bench_source[]", len(hosts))
        for place, (host, source) in enumerate(zip(hosts, self._sources, strict=True)):
            count = len(sent[host])
            mean_bytes = sum(len(data) + virtual_bytes for data, virtual_bytes in sent[host]) / count
            source.node, source.port = places[host.switch], host.port
            source.first, source.count = place * count, count
            source.interval_ps = round(mean_bytes * 8e12 / host.rate_bps / LOAD)
            source.next_ps = chooser.randrange(source.interval_ps)

    def run(self, duration_ns: int) -> tuple[int, int, int]:
        """Lets time pass: processor time in ns, hops, and frames that reached a host."""
        before = self._read()
        self._until_ps += duration_ns * PS_PER_NS
        took_ns = int(self._library.bench_fabric_run(self._fabric, self._until_ps, self.window_ps))
        if took_ns < 0:
            raise RuntimeError(f"the fabric cannot go on (error {took_ns})")
        after = self._read()
        return took_ns, after[0] - before[0], after[1] - before[1]

    def _read(self) -> tuple[int, int]:
        hops, delivered = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        self._library.bench_fabric_read(self._fabric, hops, delivered)
        return hops[0], delivered[0]

    def close(self) -> None:
        """Frees what is on its way; the switches stay."""
        self._library.bench_fabric_free(self._fabric)


@contextmanager
def fabric(library: Any, scheme: str, words: str) -> Iterator[Fabric]:
    """A fabric of switches that hold what the controller intends."""
    topology = parse_topology(words)
    with Network(topology, seed=1) as network:
        intents = intent(topology, resolve(parse_scheme(scheme), topology), target("virtual"))
        install_all(network.p4rt, intents)
        found = Fabric(library, network, topology)
        try:
            yield found
        finally:
            found.close()


def hop_ns(scheme: str, words: str, hops: int, runs: int) -> tuple[tuple[float, ...], float]:
    """The mean time of a hop in some runs of so many hops each; hops a frame that was delivered."""
    library = load("fabric.c")
    with fabric(library, scheme, words) as found:
        _, warm_hops, _ = found.run(WARM_UP_NS)
        duration_ns = max(1, round(WARM_UP_NS * hops / max(warm_hops, 1)))
        found_ns: list[float] = []
        total_hops = total_delivered = 0
        for _ in range(runs):
            took_ns, run_hops, delivered = found.run(duration_ns)
            found_ns.append(took_ns / max(run_hops, 1))
            total_hops += run_hops
            total_delivered += delivered
    return tuple(found_ns), total_hops / max(total_delivered, 1)


def _result(scheme: str, words: str, hops: int, runs: int) -> Result:
    found_ns, a_frame = hop_ns(scheme, words, hops, runs)
    name = f"{scheme}, {words.split(',', 1)[0]}"
    middle, note = statistics.median(found_ns), f"{a_frame:.2f} hops a frame delivered"
    return Result(GROUP, name, middle, "ns/hop", GOAL_HOP_NS[scheme], "less", note, found_ns)


def run(quick: bool) -> list[Result]:
    """The cost of a hop for each scheme and size. `quick`: few hops, small network, to see that it works."""
    topologies = TOPOLOGIES[:1] if quick else TOPOLOGIES
    hops, runs = (20_000, 1) if quick else (HOPS, RUNS)
    with one_core():
        return [_result(scheme, words, hops, runs) for words in topologies for scheme in SCHEMES]
