# SPDX-License-Identifier: Apache-2.0
"""Columns of the tables of port samples and flow paths, in Arrow."""

from __future__ import annotations

from dataclasses import dataclass

from arro3.core import Table

from tailrace.tables.arrow import INTEGER, TEXT, TRUTH

QUEUE_COLUMNS = {
    "time_ns": INTEGER,
    "switch": TEXT,
    "port": INTEGER,
    "peer": TEXT,
    "queue_bytes": INTEGER,
    "tx_bytes": INTEGER,
    "paused": TRUTH,
}


PATH_COLUMNS = {
    "time_ns": INTEGER,
    "flow": INTEGER,
    "switch": TEXT,
    "port": INTEGER,
    "peer": TEXT,
    "psn": INTEGER,
}


@dataclass(frozen=True, slots=True)
class Timelines:
    """The tables; None where nothing was observed."""

    queues: Table | None = None
    paths: Table | None = None


NO_TIMELINES = Timelines()
