# SPDX-License-Identifier: Apache-2.0
"""Files that some runs have in their folder besides summary.json and flows.parquet.

    queues.parquet   time_ns, switch, port, peer, queue_bytes, tx_bytes, paused   one row per port and sample
    paths.parquet    time_ns, flow, switch, port, peer, psn              one row per packet at a switch
    record.parquet   time_ns, what, node, port, flow, psn, bytes, frame, marked, count    one row per event
    gaps.parquet     low_ns, count      gaps between data packets of all flows (HF2T §3), one row per bin
    job.json         with record.parquet: the network, and all else that a replay needs (sim/job.py)
    events.jsonl     the event log: one JSON object per line, in chronological order

queues.parquet has only ports that ever sent. `peer` is the node at the other end of the port's link;
`tx_bytes` counts bytes sent since the previous sample; `paused` is whether PFC paused the port.
In record.parquet `what` is arrived or failed (a frame on the link that begins at a port of a node), dropped
or recirculated (by a switch; its port is -1), or an event of a flow at a host: drain, resume, path change,
timeout (`count` of them). `frame` is its class (sim/network/record.py), `marked` whether ECN marks it. With
record=events frames arrive only if they are PFC frames, trimmed, or a flow's first ones at a node by a link.
queues.parquet, paths.parquet and record.parquet are the *timelines* of a run.

The bins of gaps.parquet are those of tailrace/hosts/gaps/histogram.py: a bin begins at `low_ns` and is at
most `low_ns` / 128 wide. Gaps.at_least counts the gaps of bins that begin at or above the threshold. So this
number may miss gaps that exceed the threshold by less than 1/128, but never includes a gap below it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from arro3.core import Table

from tailrace.hosts.gaps.histogram import MOST_BINS
from tailrace.hosts.measured import Gaps
from tailrace.p4rt.events import Event, event_of, structured
from tailrace.results.parquet import read_parquet, refuse_missing, write_parquet
from tailrace.sim.timelines import PATH_COLUMNS, QUEUE_COLUMNS, RECORD_COLUMNS, Timelines
from tailrace.spec.errors import FileError
from tailrace.spec.files import text_of
from tailrace.tables.arrow import INTEGER, Columns, make_table, values_of

QUEUES, PATHS, RECORD = "queues.parquet", "paths.parquet", "record.parquet"
GAPS, EVENTS, JOB = "gaps.parquet", "events.jsonl", "job.json"

MOST_ROWS = 20_000_000
"""Largest number of rows of a timeline file; larger files are refused."""

_GAP_COLUMNS = {"low_ns": INTEGER, "count": INTEGER}


def write_timelines(timelines: Timelines, folder: Path) -> None:
    """Write the timelines that the run recorded."""
    for table, name in (
        (timelines.queues, QUEUES),
        (timelines.paths, PATHS),
        (timelines.record, RECORD),
    ):
        if table is not None:
            write_parquet(table, folder / name)


def read_timelines(folder: Path) -> Timelines:
    """Reads the timelines of a run from its folder; None for a missing file.

    Raises:
        FileError: a file cannot be read, or has other columns or missing values.
    """
    return Timelines(
        _read(folder / QUEUES, "a timeline", QUEUE_COLUMNS, MOST_ROWS),
        _read(folder / PATHS, "a timeline", PATH_COLUMNS, MOST_ROWS),
        _read_record(folder / RECORD),
    )


def _read(path: Path, what: str, columns: Columns, most_rows: int) -> Table | None:
    """The table in a file; None if the file does not exist. `what` names the table in errors."""
    if not path.exists():
        return None
    table = read_parquet(path, what, columns, most_rows)
    refuse_missing(table, path, what, columns)
    return table


def _read_record(path: Path) -> Table | None:
    # events of hosts have no values in some columns
    return read_parquet(path, "a record", RECORD_COLUMNS, MOST_ROWS) if path.exists() else None


def write_gaps(gaps: Gaps | None, folder: Path) -> None:
    """Write gaps.parquet, if gaps were measured."""
    if gaps is not None:
        values = {name: [pair[number] for pair in gaps.bins] for number, name in enumerate(_GAP_COLUMNS)}
        write_parquet(make_table(values, _GAP_COLUMNS), folder / GAPS)


def read_gaps(folder: Path) -> Gaps | None:
    """Reads what `write_gaps` wrote into a folder; None if gaps were not measured.

    Raises:
        FileError: the file cannot be read, or has other columns.
    """
    table = _read(folder / GAPS, "gaps", _GAP_COLUMNS, MOST_BINS)
    if table is None:
        return None
    values = values_of(table)
    return Gaps(tuple(zip(*(values[name] for name in _GAP_COLUMNS), strict=True)))


def write_events(events: Sequence[Event], folder: Path) -> None:
    """Writes the event log into a folder. Without events there is no file."""
    if events:
        lines = "".join(json.dumps(structured(event)) + "\n" for event in events)
        (folder / EVENTS).write_text(lines, "utf-8")


def read_events(folder: Path) -> tuple[Event, ...]:
    """Reads what `write_events` wrote into a folder.

    Raises:
        FileError: the file is not a log of events.
    """
    path = folder / EVENTS
    if not path.exists():
        return ()
    lines = text_of(path).splitlines()
    try:
        return tuple(event_of(json.loads(line)) for line in lines)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(path, "", "no log of events") from error
