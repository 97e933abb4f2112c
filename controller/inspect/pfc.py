# SPDX-License-Identifier: Apache-2.0
"""What PFC has done at each port: as the traffic manager counts it, where the switch says so (the native
switch and the virtual target), else as the program counts that stands in for it (p4src/pfc).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.controller.inspect.counters import read_cells
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt.connection import GrpcConnection


@dataclass(frozen=True, slots=True)
class PfcPort:
    """PFC of one port, since the switch was started.

    pauses_sent: frames that asked its neighbour to wait, repeated ones, too
    frames_received: PFC frames of its neighbour
    paused_ns: how long it was not to send; waited_packets: packets that waited for it. None: not known
    storms: how often pauses held it for too long; storm_dropped: packets that were dropped for that
    """

    pauses_sent: int
    frames_received: int
    paused_ns: int | None = None
    waited_packets: int | None = None
    storms: int | None = None
    storm_dropped: int | None = None


def read_pfc(node: InspectedSwitch, ports: Iterable[int]) -> dict[int, PfcPort]:
    """PFC of some ports; empty where it is not counted. Raises SwitchError when the switch cannot be read."""
    connection = node.connection
    # only servers have more to tell than P4Runtime
    counts = connection.statistics() if isinstance(connection, GrpcConnection) else None
    if counts is not None:
        known: Mapping[str, Any] = counts["ports"]
        return {port: _of_statistics(known[str(port)]) for port in ports if str(port) in known}
    sent = read_cells(node, "pfc_pauses_sent")
    received, waited = read_cells(node, "pfc_received"), read_cells(node, "pfc_waits")
    storms, dropped = read_cells(node, "pfc_storms"), read_cells(node, "pfc_storm_drops")
    return {
        port: PfcPort(
            sent[port],
            received.get(port, 0),
            waited_packets=waited.get(port),
            storms=storms.get(port),
            storm_dropped=dropped.get(port),
        )
        for port in ports
        if port in sent
    }


def _of_statistics(port: Mapping[str, Any]) -> PfcPort:
    """All priorities of a port together; one that was paused counts, however many were."""
    classes = port["pfc"].values()
    return PfcPort(
        sum(found["xoff_sent"] for found in classes),
        port["pfc_received"],
        max((found["paused_ns"] for found in classes), default=0),
        storms=sum(found["storms"] for found in classes),
        storm_dropped=sum(found["storm_dropped"] for found in classes),
    )
