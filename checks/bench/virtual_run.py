# SPDX-License-Identifier: Apache-2.0
"""Networks that `bench.virtual` measures, each in a separate process."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from checks.bench.result import BenchError
from checks.bench.virtual import TOPOLOGY, FatTreeLoad, RoundFigures
from tailrace import hosts
from tailrace.controller.reconcile import install_all
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.nic.nic import Nic
from tailrace.p4rt import programs
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.intent import intent
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.sim.job import Job
from tailrace.sim.network import Network
from tailrace.sim.network.build import extension
from tailrace.sim.network.endpoint import compiled
from tailrace.switch.core.lib import runtime_library
from tailrace.topology import GATEWAY_MAC, parse_topology


def _configure(network: Network, scheme: Resolved) -> None:
    """Writes to each switch its intent: the program and the entries that it should have."""
    intents = intent(network.topology, scheme, target("virtual"))
    install_all(network.p4rt, intents)


def _attach(network: Network, job: Job) -> dict[str, Nic]:
    """A NIC in every host, by address."""
    nics = {}
    for host in network.topology.hosts:
        config = replace(job.nic, link_rate_bps=host.rate_bps, virtual_payload=True)
        rng = random.Random(host.name)
        nic = Nic(ip=host.ip, mac=host.mac, gateway_mac=GATEWAY_MAC, config=config, rng=rng)
        network.attach(host.name, nic)
        nics[host.ip] = nic
    return nics


def _round(network: Network, nics: dict[str, Nic], job: Job, number: int) -> tuple[int, float, float]:
    """Runs all flows of a job once more; returns packet-hops, CPU time and wall time in seconds.

    Raises:
        BenchError: a flow did not finish, or retransmitted packets.
    """
    first_id = number * len(job.flows)
    for flow in job.flows:
        copy = structs.replace(
            flow, id=flow.id + first_id, qpn=flow.qpn + first_id, start_ns=flow.start_ns + network.now_ns
        )
        nics[flow.dst].expect_flow(copy)
        nics[flow.src].add_flow(copy)
    hops = network.traffic().packet_hops
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    finished = network.run()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    # records of all rounds, sorted by flow id: this round has the highest ids
    records = Nic.merge(*nics.values())[-len(job.flows) :]
    if not finished or any(record.end_ns is None or record.retransmitted for record in records):
        raise BenchError("flows did not finish, or retransmitted packets")
    return network.traffic().packet_hops - hops, cpu_s, wall_s


def _peak_bytes() -> int:
    """The most memory that this process ever had in RAM (proc(5), status, in KiB)."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise BenchError("/proc/self/status has no peak of memory (VmHWM)")


def _rounds(network: Network, job: Job, load: FatTreeLoad) -> Iterator[tuple[int, float, float]]:
    """The figures of `_round` for each round after the warm-up."""
    nics = _attach(network, job)
    for number in range(load.rounds + load.warm_up):
        measured = _round(network, nics, job, number)
        if number > 0 or not load.warm_up:
            yield measured


def measure(load: FatTreeLoad) -> RoundFigures:
    """Runs a load.

    Raises:
        BenchError: the NICs are not of the kind that the load names, or flows did not finish as expected.
    """
    if load.hosts != hosts.IMPLEMENTATION:
        raise BenchError(f"NICs are {hosts.IMPLEMENTATION}, not {load.hosts}")
    settings = {
        "scheme": load.scheme,
        "topology": TOPOLOGY.format(k=load.k),
        "workload": f"permutation:size={load.flow_bytes}B",
        "mtu": "2KiB",
    }
    job = plan(make(settings), "virtual").job
    with Network(job.topology, seed=job.seed) as network:
        _configure(network, job.scheme)
        hops, cpu_s, wall_s = zip(*_rounds(network, job, load), strict=True)
        return RoundFigures(hops, cpu_s, wall_s, _peak_bytes())


def _compile(scheme: Resolved) -> None:
    """Compiles all C code that a network runs, unless it is in the cache."""
    runtime_library()
    extension()
    compiled(programs.load(scheme.program).json)


def set_up(scheme: str, k: int) -> dict[str, float]:
    """Sets up a network, without traffic; returns the seconds that its parts took, without imports."""
    began_s = time.perf_counter()
    topology = parse_topology(TOPOLOGY.format(k=k))
    parsed_s = time.perf_counter()
    resolved = resolve(parse_scheme(scheme), topology)
    _compile(resolved)
    compiled_s = time.perf_counter()
    with Network(topology) as network:
        built_s = time.perf_counter()
        _configure(network, resolved)
        installed_s = time.perf_counter()
    return {
        "compile": compiled_s - parsed_s,
        "build": parsed_s - began_s + built_s - compiled_s,
        "install": installed_s - built_s,
    }
