# SPDX-License-Identifier: Apache-2.0
"""One row a flow, as in flows.parquet: what the NICs measured, and the ideal completion time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars

from experiments.errors import FileError
from hosts.flow import FlowRecord


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One flow. Times in ns since the traffic began; None where the flow did not finish.

    `src` and `dst` are host names. `packets` counts data packets sent, retransmissions included;
    `out_of_order` those that arrived when another PSN was expected, `ood_max` the largest distance between
    the two. `overtaken` counts first transmissions that arrived after a later one, `timeouts` those of
    retransmission, `ce_marked` data packets that arrived marked by ECN.
    """

    id: int
    src: str
    dst: str
    bytes: int
    start_ns: int
    end_ns: int | None
    fct_ns: int | None
    ideal_fct_ns: int
    slowdown: float | None
    packets: int
    retransmitted: int
    out_of_order: int
    ood_max: int
    path_changes: int
    drains: int
    drained_ns: int
    overtaken: int
    timeouts: int
    ce_marked: int


# Explicit, so that a run in which no flow finished writes the same columns.
SCHEMA = {
    "id": polars.Int64,
    "src": polars.String,
    "dst": polars.String,
    "bytes": polars.Int64,
    "start_ns": polars.Int64,
    "end_ns": polars.Int64,
    "fct_ns": polars.Int64,
    "ideal_fct_ns": polars.Int64,
    "slowdown": polars.Float64,
    "packets": polars.Int64,
    "retransmitted": polars.Int64,
    "out_of_order": polars.Int64,
    "ood_max": polars.Int64,
    "path_changes": polars.Int64,
    "drains": polars.Int64,
    "drained_ns": polars.Int64,
    "overtaken": polars.Int64,
    "timeouts": polars.Int64,
    "ce_marked": polars.Int64,
}


def make_row(record: FlowRecord, *, src: str, dst: str, ideal_fct_ns: int) -> FlowRow:
    """The row of one flow's record; `src` and `dst` are the names of its hosts."""
    fct_ns = None if record.end_ns is None else record.end_ns - record.start_ns
    return FlowRow(
        id=record.id,
        src=src,
        dst=dst,
        bytes=record.bytes,
        start_ns=record.start_ns,
        end_ns=record.end_ns,
        fct_ns=fct_ns,
        ideal_fct_ns=ideal_fct_ns,
        slowdown=None if fct_ns is None else fct_ns / ideal_fct_ns,
        packets=record.packets,
        retransmitted=record.retransmitted,
        out_of_order=record.out_of_order,
        ood_max=record.ood_max,
        path_changes=record.path_changes,
        drains=record.drains,
        drained_ns=record.drained_ns,
        overtaken=record.overtaken,
        timeouts=record.timeouts,
        ce_marked=record.ce_marked,
    )


def write_rows(rows: Sequence[FlowRow], path: Path) -> None:
    """Write flows.parquet, rows by id."""
    ordered = sorted(rows, key=lambda row: row.id)
    polars.DataFrame([asdict(row) for row in ordered], schema=SCHEMA).write_parquet(path)


def read_rows(path: Path) -> tuple[FlowRow, ...]:
    """The rows of a flows.parquet.

    Raises:
        FileError: it cannot be read, or has other columns.
    """
    try:
        return tuple(FlowRow(**row) for row in polars.read_parquet(path).iter_rows(named=True))
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except (polars.exceptions.PolarsError, TypeError) as error:
        raise FileError(path, "", f"no table of flows: {error}") from error
