# SPDX-License-Identifier: Apache-2.0
"""What was looked at while a run went on: queues at regular times, and the paths of some flows.

    queues.parquet   time_ns, switch, port, peer, queue_bytes, tx_bytes, paused   of ports that ever queued
    paths.parquet    time_ns, flow, switch, port, peer, psn                       a row a packet at a switch

`peer` is what is on the port; `tx_bytes` what it sent since the time before; `paused` whether PFC stopped it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from tailrace.experiments.results.parquet import read_parquet, write_parquet
from tailrace.words.errors import FileError

QUEUES, PATHS = "queues.parquet", "paths.parquet"

QUEUE_COLUMNS = {
    "time_ns": polars.Int64,
    "switch": polars.String,
    "port": polars.Int64,
    "peer": polars.String,
    "queue_bytes": polars.Int64,
    "tx_bytes": polars.Int64,
    "paused": polars.Boolean,
}
PATH_COLUMNS = {
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
    return Timelines(_read(folder / QUEUES, QUEUE_COLUMNS), _read(folder / PATHS, PATH_COLUMNS))


def _read(path: Path, schema: Mapping[str, Any]) -> polars.DataFrame | None:
    if not path.exists():
        return None
    found = read_parquet(path, "a timeline")
    # of an earlier version it may have fewer columns
    for name, kind in found.schema.items():
        if schema.get(name) != kind:
            raise FileError(path, "", f"column {name!r}: expected columns {', '.join(schema)}")
    return found
