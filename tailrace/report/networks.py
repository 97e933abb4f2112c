# SPDX-License-Identifier: Apache-2.0
"""The networks of runs, made anew from their words, which may name a file that has changed since."""

from __future__ import annotations

from functools import cache

from tailrace.results.result import Result
from tailrace.spec import SpecError
from tailrace.tables.arrow import values_of
from tailrace.topology import Topology, parse_topology


@cache
def network(words: str) -> Topology:
    """The network that words describe.

    Raises:
        SpecError: they describe none, or the file is not here any more.
    """
    return parse_topology(words)


def misfit(result: Result) -> str:
    """Why nothing can be said of a run's network; empty where its words still describe it."""
    words = result.summary.topology
    try:
        unlike = _unlike(result, network(words))
    except SpecError as error:
        return str(error)
    return f"{words}: another network than that of the run, which had {unlike}" if unlike else ""


def _unlike(result: Result, topology: Topology) -> str:
    """Something that a run saw and its network does not have; empty where there is nothing."""
    hosts = {host.name for host in topology.hosts}
    for name in sorted({name for row in result.rows for name in (row.src, row.dst)} - hosts):
        return f"a host {name}"
    switches = {switch.name for switch in topology.switches}
    for table in (result.timelines.queues, result.timelines.paths):
        found = {} if table is None else values_of(table)
        seen = set(zip(*(found.get(name, ()) for name in ("switch", "port", "peer")), strict=True))
        for switch, port, peer in sorted(seen):
            there = topology.ports_of(switch).get(port) if switch in switches else None
            if there is None or there.name != peer:
                return f"{peer} on port {port} of {switch}"
    return ""
