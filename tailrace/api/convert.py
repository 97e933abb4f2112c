# SPDX-License-Identifier: Apache-2.0
"""Writes topologies, workloads and distributions of flow sizes in the formats of other tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tailrace.experiments.workloads.sizes import find_cdf
from tailrace.experiments.workloads.workload import parse_workload, rng_of
from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.node_link import GRAPH, from_graph
from tailrace.formats.registry import Kind, format_named
from tailrace.spec import Spec, SpecError
from tailrace.spec.atomic import write_output
from tailrace.spec.keys import read
from tailrace.topology.from_file import FileOptions, data_of, topology_of
from tailrace.topology.parse import parse_topology


def convert(
    source: Any,
    path: str | os.PathLike[str],
    format: str,  # noqa: A002 - the name of the command's option
    *,
    topology: str = "",
    seed: int = 1,
    **keys: object,
) -> None:
    """Write a topology, a workload or a distribution of flow sizes to a file.

    Args:
        source: the spec or file of a topology or workload, or the name or file of a distribution. A topology
            may also be a graph of NetworkX.
        path: the file.
        format: the name of its format, such as `htsim-cm` (docs/reference/formats.md), which decides what
            `source` is.
        topology: for a workload, the spec or file of the topology on which it runs.
        seed: for a workload, the seed of the run whose flows are written.
        keys: for a graph, the keys that may follow a file's name: `hosts=1` adds a host to each switch,
            `rate="100Gbps"` and `delay="1us"` are defaults of its edges.

    Raises:
        SpecError: an invalid source, or one that the format cannot express.
    """
    chosen = format_named(format)
    is_graph = chosen.kind is Kind.TOPOLOGY and not isinstance(source, str)
    if not isinstance(source, str) and not is_graph:
        raise SpecError(f"{chosen.kind.value}: expected a string, found {type(source).__name__}")
    if keys and not is_graph:
        raise SpecError(f"{next(iter(keys))}: keys are for graphs; write them after a file's name")
    if is_graph:
        spec = Spec("graph", {key: str(value) for key, value in keys.items()}, "topology")
        data: Any = data_of(topology_of(from_graph(source), GRAPH, spec, read(spec, FileOptions)))
    elif chosen.kind is Kind.TOPOLOGY:
        data = data_of(parse_topology(source))
    else:
        data = find_cdf(source).points if chosen.kind is Kind.SIZES else _flows(source, topology, seed)
    write_output(Path(path), chosen.write(data))


def _flows(source: str, topology_spec: str, seed: int) -> FlowTable:
    if not topology_spec:
        raise SpecError("topology: a workload can only be written for a topology; expected its spec or file")
    topology = parse_topology(topology_spec)
    numbers = {host.ip: number for number, host in enumerate(topology.hosts)}
    rows = []
    for flow in parse_workload(source).traffic(topology, rng_of(seed)).flows:
        if flow.steering:
            raise SpecError(f"workload {source}: cannot be written: flow {flow.id} has paths of its own")
        if flow.after_count:
            raise SpecError(
                f"workload {source}: cannot be written: flow {flow.id} waits for some of several flows"
            )
        ends = numbers[flow.src], numbers[flow.dst]
        rows.append(FlowData(0, *ends, flow.bytes, flow.start_ns, flow.sport, flow.after, flow.after_ns))
    return FlowTable(tuple(rows), len(topology.hosts), names=tuple(host.name for host in topology.hosts))
