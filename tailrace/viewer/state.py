# SPDX-License-Identifier: Apache-2.0
"""Tables of switches, and Flowcut's flows, at stops of a finished run, which is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from tailrace.controller.inband.query import PrimaryQueryClient
from tailrace.controller.inspect.flows import keeps_flows, read_flows
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.tables import read_tables
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.values import text_of
from tailrace.results.result import Result
from tailrace.sim.job import Job
from tailrace.sim.network.serve import serving
from tailrace.sim.outcome import Report
from tailrace.sim.pause import LOOPBACK
from tailrace.sim.run import Breakpoints, PausedRun, VirtualBackend
from tailrace.spec import plugins
from tailrace.spec.limits import refuse_above
from tailrace.study.packet.rerun import check_same
from tailrace.tables.listing import Listing, merge

MOST_ROWS = 50_000
"""Maximum number of entries and flows at all stops of a run."""

Stop = dict[str, Any]
"""`time_ns`, and `listings` with title, columns and rows as texts; the first column is the switch."""


def read_state(result: Result, job: Job, times_ns: Sequence[int], report: Report) -> list[Stop]:
    """Repeats a run, and reads its switches at stops.

    Raises:
        RunError: the repeated run is not the same.
        SpecError: there are too many rows.
    """
    stops: list[Stop] = []
    rows = 0

    async def read(paused: PausedRun) -> None:
        nonlocal rows
        async with serving(paused.network, f"{LOOPBACK}:0") as port:
            listings = await asyncio.to_thread(lambda: list(_listings(paused, port)))
        rows += sum(len(listing["rows"]) for listing in listings)
        refuse_above("view --state", "rows of tables", rows, MOST_ROWS)
        stops.append({"time_ns": paused.network.now_ns, "listings": listings})

    stop = Breakpoints(tuple(times_ns), lambda paused: asyncio.run(read(paused)))
    with plugins.blamed(result.summary.scheme):
        outcome = VirtualBackend(breakpoints=stop).run(job, report)
    check_same(result.label, result.summary, outcome)
    return stops


def _listings(paused: PausedRun, port: int) -> Iterator[dict[str, Any]]:
    job, topology = paused.job, paused.network.topology
    names = {host.ip: host.name for host in topology.hosts}
    nodes = []
    for switch in topology.switches:
        peers = {number: peer.name for number, peer in topology.ports_of(switch.name).items()}
        connection = GrpcConnection(switch.name, f"{LOOPBACK}:{port}", switch.id)
        nodes.append(InspectedSwitch(switch.name, connection, peers, names, job.switches.tick_ns))
    if flows := [_flows(node) for node in nodes if keeps_flows(node.program)]:
        yield _texts("flows", flows)
    yield _texts("table entries", [read_tables(node) for node in nodes])


def _flows(node: InspectedSwitch) -> Listing:
    assert isinstance(node.connection, GrpcConnection)
    with PrimaryQueryClient(node.connection, node.program) as queries:
        return read_flows(node, queries)


def _texts(title: str, listings: Sequence[Listing]) -> dict[str, Any]:
    """The columns that have values."""
    rows = merge(title, listings[0].columns, listings).rows
    names = [column.name for column in listings[0].columns]
    names = [name for name in names if any(row.get(name) is not None for row in rows)]
    texts = [["" if row.get(name) is None else text_of(row[name]) for name in names] for row in rows]
    return {"title": title, "columns": names, "rows": texts}
