# SPDX-License-Identifier: Apache-2.0
"""The networks of runs, built again from specs. A spec may name a file that has changed since the run."""

from __future__ import annotations

from functools import cache

from tailrace.results.result import Result
from tailrace.spec import SpecError
from tailrace.tables.arrow import rows_of
from tailrace.topology import Topology, parse_topology


@cache
def network(spec: str) -> Topology:
    """The network of a spec.

    Raises:
        SpecError: the spec is invalid, or a file that it names is missing.
    """
    return parse_topology(spec)


def misfit(result: Result) -> str:
    """Why the network of a run is unknown; empty if the run's spec still describes the network."""
    spec = result.summary.topology
    try:
        missing = _missing(result, network(spec))
    except SpecError as error:
        return str(error)
    return f"{spec}: another network than that of the run, which had {missing}" if missing else ""


def _missing(result: Result, topology: Topology) -> str:
    """A host or link that a run recorded and the topology lacks; empty if the topology lacks nothing."""
    hosts = {host.name for host in topology.hosts}
    for name in sorted({name for row in result.rows for name in (row.src, row.dst)} - hosts):
        return f"a host {name}"
    switches = {switch.name for switch in topology.switches}
    for table in (result.timelines.queues, result.timelines.paths):
        for switch, port, peer in sorted(set(rows_of(table, ("switch", "port", "peer")))):
            neighbour = topology.ports_of(switch).get(port) if switch in switches else None
            if neighbour is None or neighbour.name != peer:
                return f"{peer} on port {port} of {switch}"
    return ""
