# SPDX-License-Identifier: Apache-2.0
"""What was looked at while a run went on: queues at regular times, and the paths of some flows.

    queues.parquet   time_ns, switch, port, peer, queue_bytes, tx_bytes, paused   of ports that ever queued
    paths.parquet    time_ns, flow, switch, port, peer, psn                       a row a packet at a switch

`peer` is what is on the port; `tx_bytes` what it sent since the time before; `paused` whether PFC stopped it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from tailrace.experiments.results.parquet import read_parquet, write_parquet
from tailrace.native.virtual.looking import Samples, Sight
from tailrace.topology import Topology
from tailrace.words.errors import FileError

QUEUES, PATHS = "queues.parquet", "paths.parquet"

_PS_PER_NS = 1000
_QUEUES = {
    "time_ns": polars.Int64,
    "switch": polars.String,
    "port": polars.Int64,
    "peer": polars.String,
    "queue_bytes": polars.Int64,
    "tx_bytes": polars.Int64,
    "paused": polars.Boolean,
}
_PATHS = {
    "time_ns": polars.Int64,
    "flow": polars.Int64,
    "switch": polars.String,
    "port": polars.Int64,
    "peer": polars.String,
    "psn": polars.Int64,
}


@dataclass(frozen=True, slots=True)
class Timelines:
    """The tables; None where nobody looked."""

    queues: polars.DataFrame | None = None
    paths: polars.DataFrame | None = None


NO_TIMELINES = Timelines()


def queue_table(samples: Samples, topology: Topology) -> polars.DataFrame:
    """A row a time and port, for ports in which something ever waited."""
    tables = [polars.DataFrame(schema=_QUEUES)]
    for place, (switch, port) in enumerate(samples.ports):
        queued = list(samples.queue_bytes(place))
        if not any(queued):
            continue
        count = len(queued)
        columns = {
            "time_ns": list(samples.times_ns),
            "switch": [switch] * count,
            "port": [port] * count,
            "peer": [topology.ports_of(switch)[port].name] * count,
            "queue_bytes": queued,
            "tx_bytes": list(samples.tx_bytes(place)),
            "paused": [bool(bits) for bits in samples.paused(place)],
        }
        tables.append(polars.DataFrame(columns, schema=_QUEUES))
    return polars.concat(tables)


def path_table(sights: Mapping[int, Sequence[Sight]], topology: Topology) -> polars.DataFrame:
    """A row a packet at a switch, by the number of its flow; packets without a number are left out."""
    rows = [
        (
            sight.time_ps // _PS_PER_NS,
            flow,
            sight.switch,
            sight.in_port,
            topology.ports_of(sight.switch)[sight.in_port].name,
            sight.psn,
        )
        for flow, found in sights.items()
        for sight in found
        if sight.psn is not None
    ]
    return polars.DataFrame(rows, schema=_PATHS, orient="row")


def clear_timelines(folder: Path) -> None:
    """Take away the tables of an earlier run, which would be taken for those of the one that replaced it."""
    for name in (QUEUES, PATHS):
        (folder / name).unlink(missing_ok=True)


def write_timelines(timelines: Timelines, folder: Path) -> None:
    """Write the tables that there are."""
    for table, name in ((timelines.queues, QUEUES), (timelines.paths, PATHS)):
        if table is not None:
            write_parquet(table, folder / name)


def read_timelines(folder: Path) -> Timelines:
    """The tables that there are in a folder.

    Raises:
        FileError: one cannot be read.
    """
    return Timelines(_read(folder / QUEUES, _QUEUES), _read(folder / PATHS, _PATHS))


def _read(path: Path, schema: Mapping[str, Any]) -> polars.DataFrame | None:
    if not path.exists():
        return None
    found = read_parquet(path, "a timeline")
    # of an earlier version it may have fewer columns
    for name, kind in found.schema.items():
        if schema.get(name) != kind:
            raise FileError(path, "", f"column {name!r}: expected columns {', '.join(schema)}")
    return found
