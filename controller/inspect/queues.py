# SPDX-License-Identifier: Apache-2.0
"""The bytes queued at each port, as the program counts them, read by in-band queries
(`controller.inband.query`), with PFC's pauses, and RLB's warnings and recirculations.

With RLB programs, a row without a port has the figures of a whole switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.controller.inband.query import QueryClient, query_all, require_op
from tailrace.controller.inband.responses import parse_queues
from tailrace.controller.inspect.counters import read_cells
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.rlb_paths import in_ns, knows_warnings, read_ports
from tailrace.controller.inspect.tables import read_tables
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.errors import UnsupportedError
from tailrace.p4rt.values import SwitchPort, Value
from tailrace.tables.listing import Column, Listing, Row, in_order

COLUMNS = (
    Column("switch", key=True),
    Column("port", key=True),
    Column("egress_queue_bytes"),
    Column("ingress_queue_bytes"),
)
# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
RLB_COLUMNS = (
    Column("warns"),
    Column("warned_ago_ns", is_time=True, rank=4),
    Column("warnings_sent", grows=True, rank=3),
    Column("warnings_withdrawn", grows=True, rank=6),
    Column("warnings_received", grows=True, rank=5),
    Column("recirculating", rank=3),
    Column("recirculations", grows=True, rank=3),
    Column("recirculations_refused", grows=True, rank=5),
    Column("t_rc_ns", is_time=True, rank=6),
    Column("control_from_host", grows=True, rank=4),
)
"""`warns`: a warning was sent and not withdrawn; it may have expired. `t_rc_ns`: delay of a recirculation."""

PFC_COLUMNS = (
    Column("pauses_sent", grows=True),
    Column("pfc_received", grows=True, rank=2),
    Column("paused_ns", grows=True, is_time=True),
    Column("waited_packets", grows=True, rank=3),
    Column("storms", grows=True, rank=4),
    Column("storm_dropped", grows=True, rank=5),
)
"""PFC of a port since the switch was started; empty: not known.

pauses_sent: frames that paused its neighbour, including repeated ones
pfc_received: PFC frames from its neighbour
paused_ns: how long it was paused; waited_packets: packets that waited for the end of a pause
storms: how often it was paused for too long; storm_dropped: packets dropped in these pause storms
"""

_CELLS = {
    "pauses_sent": "pfc_pauses_sent",
    "pfc_received": "pfc_received",
    "waited_packets": "pfc_waits",
    "storms": "pfc_storms",
    "storm_dropped": "pfc_storm_drops",
}
"""The counters of a P4 program that emulates PFC, by column."""

TRAFFIC_MANAGER_COLUMNS = (
    Column("egress_queue_packets"),
    Column("sent_packets", grows=True, rank=2),
    Column("dropped_packets", grows=True),
)
"""Counts of the traffic manager, for programs that do not answer in-band queries."""

_OP = "READ_PORT"
_BY_PORT = ("warnings_sent", "warnings_withdrawn", "warnings_received")
_OF_SWITCH = ("recirculations", "recirculations_refused")
_DROPS, _REASONS, _FROM_HOST = "drops", "DropReason_t", "CONTROL_FROM_HOST"


def answers_queries(node: InspectedSwitch) -> bool:
    """Whether the program answers the in-band query of `read_queues`. Raises SwitchError."""
    try:
        require_op(node.program, node.name, node.title, _OP)
    except UnsupportedError:
        return False
    return True


def read_traffic_manager(node: InspectedSwitch) -> Listing:
    """The queues of a native switch, of any program: packets and bytes that wait to leave by each port.

    Raises:
        UnsupportedError: the switch is not native, and its program does not answer the in-band query.
        SwitchError: the switch cannot be read.
    """
    connection = node.connection
    counts = connection.statistics() if isinstance(connection, GrpcConnection) else None
    if counts is None:
        text = f"{node.title} does not answer {_OP} packets, and only native switches count queues"
        raise UnsupportedError(node.name, text)
    rows = [
        {
            "switch": node.name,
            "port": SwitchPort(int(number), node.peer_of(int(number))),
            "egress_queue_bytes": port["queued_bytes"],
            "egress_queue_packets": port["queued_packets"],
            "sent_packets": port["tx_packets"],
            "dropped_packets": port["dropped"],
        }
        for number, port in counts["ports"].items()
    ]
    columns = (*COLUMNS[:3], *TRAFFIC_MANAGER_COLUMNS)
    return Listing("queues", columns, in_order(columns, rows))


def read_queues(node: InspectedSwitch, queries: QueryClient) -> Listing:
    """Bytes that wait to leave by each port, and bytes in the switch that came in by it, with PFC and RLB.

    Raises:
        UnsupportedError: the program does not answer this query, or no ports are known.
        SwitchError: the switch cannot be read.
    """
    require_op(node.program, node.name, node.title, _OP)
    responses = query_all(queries, node.name, _OP, known_ports(node))
    rows: dict[int, dict[str, Value]] = {}
    for index, data in responses.items():
        port = SwitchPort(index, node.peer_of(index))
        rows[index] = {"switch": node.name, "port": port, **parse_queues(data, node.name)}
    columns, more = list(COLUMNS), list[Row]()
    pauses = read_pfc(node, rows)
    for index, pfc in pauses.items():
        rows[index] |= pfc
    if pauses:
        columns += PFC_COLUMNS
    if knows_warnings(node):
        columns += RLB_COLUMNS
        more = _rlb(node, queries, rows)
    names = [column.name for column in columns]
    complete = [{**dict.fromkeys(names), **row} for row in (*rows.values(), *more)]
    return Listing("queues", tuple(columns), in_order(tuple(columns), complete))


def _rlb(node: InspectedSwitch, queries: QueryClient, rows: Mapping[int, dict[str, Value]]) -> list[Row]:
    """Adds the RLB figures of ports to `rows`; returns the row of the whole switch."""
    ports = read_ports(node, queries, rows)
    counts = {name: read_cells(node, name) for name in _BY_PORT}
    for index, port in ports.items():
        rows[index]["warns"] = port.warned_ago_ticks is not None
        rows[index]["warned_ago_ns"] = in_ns(node, port.warned_ago_ticks)
        rows[index].update((name, cells.get(index)) for name, cells in counts.items())
    # each port's answer also has the figures of the whole switch; the first answer is taken
    newest = next(iter(ports.values()), None)
    reason = node.program.enum_value(_REASONS, _FROM_HOST)
    row: dict[str, Value] = {"switch": node.name, "port": None}
    row |= {name: sum(read_cells(node, name).values()) for name in _OF_SWITCH}
    if reason is not None:
        row["control_from_host"] = read_cells(node, _DROPS).get(reason)
    if newest is not None:
        row["recirculating"] = newest.recirculating
        row["t_rc_ns"] = in_ns(node, newest.recirculation_ticks)
    return [row]


_ALL_COLUMNS = (*COLUMNS, *TRAFFIC_MANAGER_COLUMNS, *PFC_COLUMNS, *RLB_COLUMNS)


def columns_of(parts: Iterable[Listing]) -> tuple[Column, ...]:
    """The columns of several switches together."""
    names = {column.name for part in parts for column in part.columns}
    return tuple(column for column in _ALL_COLUMNS if column.name in names)


def known_ports(node: InspectedSwitch) -> list[int]:
    """The ports of the topology; without one, the ports that table entries name."""
    if node.peers:
        return sorted(node.peers)
    special, numbers = node.program.special_ports, set()
    for row in read_tables(node).rows:
        for cell in (row["match"], row["params"]):
            if isinstance(cell, dict):
                numbers |= {value.number for value in cell.values() if isinstance(value, SwitchPort)}
    ports = sorted(numbers - set(special) - {0})
    if not ports:
        raise UnsupportedError(node.name, "no table names a port; give --topology to name them")
    return ports


def read_pfc(node: InspectedSwitch, ports: Iterable[int]) -> dict[int, Row]:
    """The columns of some ports; empty if PFC is not counted.

    Raises:
        SwitchError: the switch cannot be read.
    """
    connection = node.connection
    # only switches behind a server offer more than P4Runtime
    counts = connection.statistics() if isinstance(connection, GrpcConnection) else None
    if counts is not None:
        known: Mapping[str, Any] = counts["ports"]
        return {port: _of_statistics(known[str(port)]) for port in ports if str(port) in known}
    cells = {column: read_cells(node, counter) for column, counter in _CELLS.items()}
    return {
        port: {column: counts[port] for column, counts in cells.items() if port in counts}
        for port in ports
        if port in cells["pauses_sent"]
    }


def _of_statistics(port: Mapping[str, Any]) -> Row:
    """Sums over all priorities of a port; `paused_ns` is that of the priority paused longest."""
    by_priority = port["pfc"].values()
    return {
        "pauses_sent": sum(counts["xoff_sent"] for counts in by_priority),
        "pfc_received": port["pfc_received"],
        "paused_ns": max((counts["paused_ns"] for counts in by_priority), default=0),
        "storms": sum(counts["storms"] for counts in by_priority),
        "storm_dropped": sum(counts["storm_dropped"] for counts in by_priority),
    }
