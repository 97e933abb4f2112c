# SPDX-License-Identifier: Apache-2.0
"""Rows of flows.parquet, one per flow: measurements of the NICs, and the ideal completion time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from arro3.core import Table

from tailrace.experiments.plan.size_estimate import MOST_FLOWS
from tailrace.experiments.workloads.classes import BACKGROUND, NO_CLASS
from tailrace.hosts.flows.flow import FlowRecord
from tailrace.results.parquet import read_parquet, refuse_missing, write_parquet
from tailrace.spec.errors import FileError
from tailrace.tables.arrow import INTEGER, NUMBER, TEXT, make_table, values_of


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One flow. `start_ns` and `end_ns` are in ns since the traffic began. `end_ns`, `fct_ns` and `slowdown`
    are None if the flow did not finish; `ideal_fct_ns` and `slowdown` are None with a user's program, whose
    entries may lead flows over any paths.

    src, dst: host names
    packets: data packets sent, including retransmissions
    received: data packets that arrived, including duplicates
    first_received: first transmissions that arrived
    out_of_order: first transmissions that arrived when another PSN was expected; gaps that only a
        retransmission fills, that is, losses, do not count (hosts.nic.order)
    ood_max: largest distance between an arriving PSN and the expected PSN
    out_of_order_raw: arrivals with another PSN than the receiver's transport expected, gaps that losses left
        included (Flowcut §III-C2)
    path_changes: changes of path between consecutive packets, in the order of sending
    drains, drained_ns: pauses of the flow for a change of path (Flowcut §II-B), and their total duration
    overtaken: first transmissions that arrived after a later packet
    timeouts: retransmission timeouts
    ce_marked, trimmed: data packets that arrived with an ECN mark, and without their payload
    nacks: NACKs that report trimmed packets to the sender
    explored, reused, blocked: packets on a path drawn at random, packets on a path known to be good or on the
        flow's current path, and paths blocked after a timeout (Spritz §IV)
    cnps_sent, cnps_received: DCQCN's CNPs that the receiver sent, and that reached the sender
    stretched, stretched_ns: gaps between packets that the NIC stretched, so that switches begin a flowlet,
        and by how much in total (HF2T, host-based flowlet fine-tuning, §4)
    natural: gaps that exceeded the flowlet threshold without being stretched
    flow_class: the column `class` (tailrace/experiments/workloads/classes.py)
    """

    id: int
    src: str
    dst: str
    bytes: int
    start_ns: int
    end_ns: int | None
    fct_ns: int | None
    ideal_fct_ns: int | None
    slowdown: float | None
    packets: int
    retransmitted: int
    out_of_order: int = 0
    ood_max: int = 0
    path_changes: int = 0
    drains: int = 0
    drained_ns: int = 0
    overtaken: int = 0
    timeouts: int = 0
    ce_marked: int = 0
    trimmed: int = 0
    nacks: int = 0
    explored: int = 0
    reused: int = 0
    blocked: int = 0
    received: int = 0
    first_received: int = 0
    out_of_order_raw: int = 0
    cnps_sent: int = 0
    cnps_received: int = 0
    stretched: int = 0
    stretched_ns: int = 0
    natural: int = 0
    flow_class: str = NO_CLASS


_FIELDS = {"class": "flow_class"}
"""The field of each column whose name is a keyword of Python."""

_COLUMNS = {field: column for column, field in _FIELDS.items()}
_TYPES = {"int": INTEGER, "int | None": INTEGER, "float | None": NUMBER, "str": TEXT}

SCHEMA = {_COLUMNS.get(field.name, field.name): _TYPES[str(field.type)] for field in fields(FlowRow)}
"""The types of the columns of flows.parquet; they are fixed even if no flow finished."""

_OPTIONAL = ("end_ns", "fct_ns", "ideal_fct_ns", "slowdown")
"""Columns that may have no value."""

_NEEDED = {field.name for field in fields(FlowRow) if field.default is MISSING}
"""Columns that runs of all earlier versions have."""

_COPIED = {field.name for field in fields(FlowRow)} & {field.name for field in fields(FlowRecord)} - {
    "src",
    "dst",
}
"""Fields that a row copies unchanged from its FlowRecord."""


def make_row(
    record: FlowRecord, *, src: str, dst: str, ideal_fct_ns: int | None, flow_class: str = NO_CLASS
) -> FlowRow:
    """The row of one flow's record; `src` and `dst` are the names of its hosts."""
    fct_ns = None if record.end_ns is None else record.end_ns - record.start_ns
    return FlowRow(
        src=src,
        dst=dst,
        fct_ns=fct_ns,
        ideal_fct_ns=ideal_fct_ns,
        slowdown=None if fct_ns is None or ideal_fct_ns is None else fct_ns / ideal_fct_ns,
        flow_class=flow_class,
        **{name: getattr(record, name) for name in _COPIED},
    )


def write_rows(rows: Sequence[FlowRow], path: Path) -> None:
    """Write flows.parquet: the table of the rows."""
    write_parquet(flow_table(rows), path)


def flow_table(rows: Sequence[FlowRow]) -> Table:
    """The table of the rows, sorted by flow id."""
    return make_table(flow_values(sorted(rows, key=lambda row: row.id)), SCHEMA)


def flow_values(rows: Sequence[FlowRow]) -> dict[str, list[Any]]:
    """The values of each column, in the order of the rows."""
    return {column: [getattr(row, _FIELDS.get(column, column)) for row in rows] for column in SCHEMA}


def read_rows(path: Path) -> tuple[FlowRow, ...]:
    """The rows of a flows.parquet.

    Raises:
        FileError: the file cannot be read, has other columns, or contains a flow of 0 bytes.
    """
    table = read_parquet(path, "flows", SCHEMA, MOST_FLOWS)
    # columns of later versions may be absent; a column that is present has a value for each flow
    refuse_missing(table, path, "flows", sorted({*_NEEDED, *table.column_names}), _OPTIONAL)
    values = values_of(table)
    if min(values["bytes"], default=1) < 1:
        raise FileError(
            path, "", f"table of flows: column bytes: expected at least 1, found {min(values['bytes'])}"
        )
    names = [_FIELDS.get(name, name) for name in values]
    # a run of an earlier version has fewer columns
    return tuple(FlowRow(**dict(zip(names, row, strict=True))) for row in zip(*values.values(), strict=True))


def measured_rows(rows: Sequence[FlowRow]) -> tuple[FlowRow, ...]:
    """The rows of the flows that are measured: all except background flows."""
    return tuple(row for row in rows if row.flow_class != BACKGROUND)
