# SPDX-License-Identifier: Apache-2.0
"""What was looked at while a run went on: queues at regular times, and the paths of some flows.

    queues.parquet   time_ns, switch, port, peer, queue_bytes, tx_bytes, paused   of ports that ever sent
    paths.parquet    time_ns, flow, switch, port, peer, psn                       a row a packet at a switch

`peer` is what is on the port; `tx_bytes` what it sent since the time before; `paused` whether PFC stopped it.
"""

from __future__ import annotations

from pathlib import Path

from arro3.core import Table

from tailrace.results.parquet import read_parquet, refuse_gaps, write_parquet
from tailrace.sim.timelines import PATH_COLUMNS, QUEUE_COLUMNS, Timelines
from tailrace.tables.arrow import Columns

MOST_ROWS = 20_000_000
"""Of a timeline that is read."""

QUEUES, PATHS = "queues.parquet", "paths.parquet"


def write_timelines(timelines: Timelines, folder: Path) -> None:
    """Write the tables that there are."""
    for table, name in ((timelines.queues, QUEUES), (timelines.paths, PATHS)):
        if table is not None:
            write_parquet(table, folder / name)


def read_timelines(folder: Path) -> Timelines:
    """The tables that there are in a folder.

    Raises:
        FileError: one cannot be read, or has other columns, or gaps in them.
    """
    return Timelines(_read(folder / QUEUES, QUEUE_COLUMNS), _read(folder / PATHS, PATH_COLUMNS))


def _read(path: Path, columns: Columns) -> Table | None:
    if not path.exists():
        return None
    table = read_parquet(path, "a timeline", columns, MOST_ROWS)
    refuse_gaps(table, path, "a timeline", columns)
    return table
