# SPDX-License-Identifier: Apache-2.0
"""Tables of what was observed in a virtual network: samples of ports, paths of flows, a record of frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arro3.core import Table

from tailrace.hosts.nic.recording import RecordingNic
from tailrace.sim.network.observation import Samples, Sight
from tailrace.sim.network.record import FrameRecord
from tailrace.spec.constants import PS_PER_NS
from tailrace.tables.arrow import BOOLEAN, INTEGER, TEXT, make_table
from tailrace.topology import Topology

QUEUE_COLUMNS = {
    "time_ns": INTEGER,
    "switch": TEXT,
    "port": INTEGER,
    "peer": TEXT,
    "queue_bytes": INTEGER,
    "tx_bytes": INTEGER,
    "paused": BOOLEAN,
}


PATH_COLUMNS = {
    "time_ns": INTEGER,
    "flow": INTEGER,
    "switch": TEXT,
    "port": INTEGER,
    "peer": TEXT,
    "psn": INTEGER,
}


RECORD_COLUMNS = {
    "time_ns": INTEGER,
    "what": TEXT,
    "node": TEXT,
    "port": INTEGER,
    "flow": INTEGER,
    "psn": INTEGER,
    "bytes": INTEGER,
    "frame": TEXT,
    "marked": BOOLEAN,
    "count": INTEGER,
}


@dataclass(frozen=True, slots=True)
class Timelines:
    """The tables; None: not recorded."""

    queues: Table | None = None
    paths: Table | None = None
    record: Table | None = None


NO_TIMELINES = Timelines()


def queue_table(samples: Samples, topology: Topology) -> Table:
    """One row per time and port, for ports that ever sent a frame or had a frame in a queue."""
    values: dict[str, list[int | str | bool]] = {name: [] for name in QUEUE_COLUMNS}
    for (switch, port), of_port in samples.ports.items():
        if not any(of_port.queue_bytes) and not any(of_port.tx_bytes):
            continue
        count = len(of_port.queue_bytes)
        values["time_ns"] += samples.times_ns
        values["switch"] += [switch] * count
        values["port"] += [port] * count
        values["peer"] += [topology.ports_of(switch)[port].name] * count
        values["queue_bytes"] += of_port.queue_bytes
        values["tx_bytes"] += of_port.tx_bytes
        # whether any priority is paused
        values["paused"] += map(bool, of_port.paused)
    return make_table(values, QUEUE_COLUMNS)


def path_table(sights: Mapping[int, Sequence[Sight]], topology: Topology) -> Table:
    """One row per arrival of a packet at a switch, by flow id; packets without a PSN are left out."""
    values: dict[str, list[int | str]] = {name: [] for name in PATH_COLUMNS}
    for flow, flow_sights in sights.items():
        for sight in flow_sights:
            if sight.psn is None:
                continue
            values["time_ns"].append(sight.time_ps // PS_PER_NS)
            values["flow"].append(flow)
            values["switch"].append(sight.switch)
            values["port"].append(sight.in_port)
            values["peer"].append(topology.ports_of(sight.switch)[sight.in_port].name)
            values["psn"].append(sight.psn)
    return make_table(values, PATH_COLUMNS)


def record_table(frames: Iterable[FrameRecord], nics: Sequence[RecordingNic], topology: Topology) -> Table:
    """One row per frame on a wire or in a switch, and per event of a flow at a host, by time."""
    host = topology.host_by_ip
    events = [
        (time_ns, kind, host(nic.ip).name, -1, flow, None, None, None, None, count)
        for nic in nics
        for time_ns, kind, flow, count in nic.events
    ]
    rows = [*((*frame, 1) for frame in frames), *events]
    rows.sort(key=lambda row: row[0])
    columns = zip(*rows, strict=True) if rows else [()] * len(RECORD_COLUMNS)
    return make_table(dict(zip(RECORD_COLUMNS, map(list, columns), strict=True)), RECORD_COLUMNS)
