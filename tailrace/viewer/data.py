# SPDX-License-Identifier: Apache-2.0
"""The data of a run in a page: a header in JSON, then columns as typed arrays.

    length of the header in bytes (8 bytes), header, column, column, …   all little-endian

Each part begins at a multiple of 8 bytes. The key `columns` of the header has for each column its type, the
position of its first byte, its number of values, and whether it has differences. Nodes are numbered, switches
first. So are wires, the directions of links; those of one link are 2n and 2n + 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tailrace.hosts.nic.recording import KINDS
from tailrace.results.result import Result
from tailrace.sim.job import Job
from tailrace.sim.link_faults import LinkSlow
from tailrace.sim.network.record import ARRIVED, DROPPED, FAILED, RECIRCULATED
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.tables.arrow import values_of
from tailrace.topology import Host, Link, Topology
from tailrace.topology.paths.shortest import links_to_hosts

MOST_ROWS = 4_000_000
"""Maximum number of rows of a run's record, and of its samples."""

_NODE_EVENTS = (DROPPED, RECIRCULATED, *KINDS)
_ALIGNMENT = 8
_DELTAS = ("time_ns", "sample_ns", "flow_id")
_WIRE_COLUMNS = ("wire_source", "wire_target", "wire_port", "wire_rate_bps", "wire_delay_ns")
_FLOW_COLUMNS = ("id", "bytes", "start_ns", "packets", "retransmitted", "path_changes", "drains", "timeouts")
_Columns = dict[str, Sequence[int]]
_Port = tuple[str, int]


def run_data(result: Result, job: Job, state: Sequence[Mapping[str, Any]]) -> bytes:
    """The data of a run that has a record, with its job, and tables at stops (state.py).

    Raises:
        SpecError: the files of the run do not fit each other, or are too large.
    """
    topology, summary = job.topology, result.summary
    switches = topology.switches
    names = [*(switch.name for switch in switches), *(host.name for host in topology.hosts)]
    nodes = {name: number for number, name in enumerate(names)}
    wires = _wires(topology, nodes)
    numbers = {port: number for number, port in enumerate(wires)}
    levels = links_to_hosts(topology)
    header = {
        "label": result.label,
        "case": result.case,
        "settings": [summary.topology, summary.workload, f"seed {summary.seed}", *summary.faults],
        "end_ns": summary.virtual_ns or 1,
        "packets": job.record == "packets",
        "kind": topology.kind,
        "names": names,
        "switches": len(switches),
        "roles": [switch.role for switch in switches],
        "groups": [switch.group for switch in switches],
        "levels": [levels[switch.name] for switch in switches],
        "slow": [
            [numbers[port], fault.factor, fault.at_ns, fault.until_ns]
            for fault in job.faults
            if isinstance(fault, LinkSlow)
            for port, wire in wires.items()
            if {names[wire[0]], names[wire[1]]} == {fault.a, fault.b}
        ],
        "state": state,
    }
    columns: _Columns = dict(zip(_WIRE_COLUMNS, zip(*wires.values(), strict=True), strict=True))
    try:
        columns |= _flows(result, nodes) | _record(result, nodes, numbers, header) | _samples(result, numbers)
        return _encode(header, columns)
    except (KeyError, TypeError) as error:
        problem = f"its record, samples or flows do not fit {summary.topology}: {error!r}"
        raise SpecError(f"view: {result.label}: {problem}") from error


def _wires(topology: Topology, nodes: Mapping[str, int]) -> dict[_Port, tuple[int, int, int, int, int]]:
    """The columns of each wire, by the port where it begins."""
    ends: list[tuple[_Port, _Port, Link | Host]] = [
        *(((link.a, link.a_port), (link.b, link.b_port), link) for link in topology.links),
        *(((host.switch, host.port), (host.name, 0), host) for host in topology.hosts),
    ]
    wires = {}
    for a, b, link in ends:
        for source, (target, _) in ((a, b), (b, a)):
            # a switch adds its latency where a frame arrives
            delay_ns = link.delay_ns + topology.latency_ns * (nodes[target] < len(topology.switches))
            wires[source] = (nodes[source[0]], nodes[target], source[1], link.rate_bps, delay_ns)
    return wires


def _flows(result: Result, nodes: Mapping[str, int]) -> _Columns:
    values = values_of(result.flows)
    columns: _Columns = {f"flow_{name}": values[name] for name in _FLOW_COLUMNS}
    columns["flow_end_ns"] = _known(values["end_ns"])
    return columns | {f"flow_{end}": [nodes[name] for name in values[end]] for end in ("src", "dst")}


def _record(
    result: Result, nodes: Mapping[str, int], wires: Mapping[_Port, int], header: dict[str, Any]
) -> _Columns:
    """The record. `place` is a wire for frames on wires, otherwise a node."""
    record = result.timelines.record
    assert record is not None
    refuse_above(f"view {result.label}", "recorded events", record.num_rows, MOST_ROWS)
    values = values_of(record)
    at_nodes = {(name, -1): number for name, number in nodes.items()}
    places = dict.fromkeys(_NODE_EVENTS, at_nodes) | {ARRIVED: wires, FAILED: wires}
    events = zip(values["what"], values["node"], values["port"], strict=True)
    columns: _Columns = {"place": [places[what][node, port] for what, node, port in events]}
    flows = {None: -1} | {flow: number for number, flow in enumerate(values_of(result.flows)["id"])}
    columns["flow"] = [flows[flow] for flow in values["flow"]]
    for name in ("what", "frame"):
        header[f"{name}s"] = sorted(set(filter(None, values[name])))
        numbers = {None: -1} | {text: number for number, text in enumerate(header[f"{name}s"])}
        columns[name] = [numbers[text] for text in values[name]]
    columns |= {name: _known(values[name]) for name in ("psn", "bytes")}
    return columns | {name: values[name] for name in ("time_ns", "count")}


def _known(values: Sequence[int | None]) -> list[int]:
    return [-1 if value is None else value for value in values]


def _samples(result: Result, wires: Mapping[_Port, int]) -> _Columns:
    """The samples, all of a port after each other; no columns if ports were not sampled."""
    if result.timelines.queues is None:
        return {}
    refuse_above(f"view {result.label}", "samples", result.timelines.queues.num_rows, MOST_ROWS)
    values = values_of(result.timelines.queues)
    ports = [wires[port] for port in zip(values["switch"], values["port"], strict=True)]
    names = ("queue_bytes", "tx_bytes", "paused")
    rows = sorted(zip(ports, values["time_ns"], *(values[name] for name in names), strict=True))
    times, wire_numbers = sorted(set(values["time_ns"])), sorted(set(ports))
    if [row[:2] for row in rows] != [(wire, time_ns) for wire in wire_numbers for time_ns in times]:
        raise SpecError(f"view: {result.label}: queues.parquet lacks the row of a port and time")
    columns: _Columns = {name: [row[2 + number] for row in rows] for number, name in enumerate(names)}
    return columns | {"sample_ns": times, "port_wire": wire_numbers}


def _encode(header: Mapping[str, Any], columns: _Columns) -> bytes:
    import numpy as np  # imported late, since it is slow

    described, parts, at = {}, [], 0
    for name, values in columns.items():
        column = np.array(values, dtype=np.int64)
        if name in _DELTAS:
            column = np.diff(column, prepend=0)
        # the smallest type; scripts have no integers of 64 bits
        ends = (column.min(initial=0), column.max(initial=0))
        kind = np.result_type(*map(np.min_scalar_type, ends)).newbyteorder("<")
        column = column.astype(kind if kind.itemsize < _ALIGNMENT else "<f8")
        described[name] = [column.dtype.str[1:], at, len(values), name in _DELTAS]
        parts.append(_padded(column.tobytes()))
        at += len(parts[-1])
    text = _padded(json.dumps(msgspec.to_builtins({**header, "columns": described})).encode(), b" ")
    return b"".join([len(text).to_bytes(_ALIGNMENT, "little"), text, *parts])


def _padded(data: bytes, padding: bytes = b"\0") -> bytes:
    return data + padding * (-len(data) % _ALIGNMENT)
