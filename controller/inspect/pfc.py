# SPDX-License-Identifier: Apache-2.0
"""PFC counts of each port. The native switch and the virtual target offer counts of their traffic manager. On
BMv2 the P4 program emulates PFC (p4src/pfc), and counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.controller.inspect.counters import read_cells
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt.connection import GrpcConnection
from tailrace.tables.listing import Column, Row

# rank: columns of the highest rank are hidden first if the terminal is too narrow
COLUMNS = (
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
