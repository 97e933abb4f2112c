# SPDX-License-Identifier: Apache-2.0
"""The folder of finished runs: a Parquet file for each scheme, SCHEME.parquet, with a row for each run.

The columns are those of COLUMNS, which contain JSON or text, and a column of numbers for each metric. The
rows are sorted by specs. A writer locks the folder, reads the file again, and replaces the file atomically.
So no row is incomplete, and concurrent writers lose no rows. If two rows of a run have the same trace hash,
the first is used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tailrace.cbuild.artifacts import ROOT
from tailrace.experiments.plan.spec_list import slug
from tailrace.results.parquet import parquet_bytes, read_parquet, refuse_missing
from tailrace.results.summary import FORMAT
from tailrace.sim.errors import RunError
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import FileError
from tailrace.study.store.record import Record, joined
from tailrace.tables.arrow import NUMBER, TEXT, make_table, values_of

MOST_ROW_BYTES = 256 << 10
"""Limit of the texts of a row, which typically have 2 KB, or 30 KB with the gaps of a long run."""

MOST_ROWS = 100_000
"""Limit of a file, which has at most a few thousand rows; it also bounds the errors, one per row."""

MOST_METRICS = 1000
"""Limit of the columns of metrics in a file."""

SUFFIX = ".parquet"
WHAT = "finished runs"

_FIELDS = {"gap_bins": "gaps"}
"""The field of a record for each column that has another name: `gaps` is a metric, too."""

_JSON = ("specs", "files", "ran", "differs", "summary", "gap_bins")
UNMEASURED = "unmeasured"
COLUMNS = dict.fromkeys(("run", *_JSON, UNMEASURED), TEXT)
"""The columns that are not metrics, see Record. `unmeasured` lists the metrics that were computed, but that
the run does not have; other metrics without a value were not computed."""


def usual_folder() -> Path | None:
    """The folder docs/results of a checkout, with the runs of its pages; None outside of a checkout."""
    folder = ROOT / "docs" / "results"
    return folder if folder.is_dir() else None


def read_records(path: Path) -> tuple[dict[str, Record], list[FileError]]:
    """The runs in a file, by run id, and an error for each invalid row; both are empty for a missing file.

    Raises:
        FileError: the file cannot be read, or has too many rows or columns.
    """
    if not path.exists() and not path.is_symlink():
        return {}, []
    table = read_parquet(path, WHAT, COLUMNS, MOST_ROWS, others=NUMBER)
    refuse_missing(table, path, WHAT, COLUMNS)
    if len(table.column_names) > MOST_METRICS + len(COLUMNS):
        raise FileError(path, "", f"expected at most {MOST_METRICS} metrics")
    columns = values_of(table)
    records: dict[str, Record] = {}
    numbers: dict[str, int] = {}
    bad = []
    for number, values in enumerate(zip(*columns.values(), strict=True), start=1):
        try:
            record = _decoded(dict(zip(columns, values, strict=True)), path)
            other = records.get(record.run)
            if other is not None and other.summary.trace_sha256 != record.summary.trace_sha256:
                raise ValueError(f"row {numbers[record.run]} has another result of the same specs")
        except ValueError as error:
            bad.append(FileError(path, f"row {number}", str(error)))
            continue
        if other is None:
            records[record.run], numbers[record.run] = record, number
    return records, bad


def _decoded(row: dict[str, Any], path: Path) -> Record:
    """The run of a row; raises ValueError if the row is invalid."""
    size = sum(len(row[name]) for name in COLUMNS)
    if size > MOST_ROW_BYTES:
        raise ValueError(f"{size} bytes, expected at most {MOST_ROW_BYTES}")
    try:
        values = {_FIELDS.get(name, name): msgspec.json.decode(row[name]) for name in _JSON if row[name]}
        summary = values.get("summary")
        version = summary.get("format", 0) if isinstance(summary, dict) else 0
        if version != FORMAT:
            raise ValueError(
                f"summary.format: expected {FORMAT}, found {version!r}: run it again with --again"
            )
        unmeasured = msgspec.json.decode(row[UNMEASURED] or "[]", type=list[str])
        metrics = {name: value for name, value in row.items() if name not in COLUMNS and value is not None}
        values |= {"run": row["run"], "metrics": dict.fromkeys(unmeasured) | metrics}
        record: Record = msgspec.convert(values, Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a finished run: {error}") from error
    if path.name != _file_name(record.scheme):
        raise ValueError(f"a run of {record.scheme}, expected in {_file_name(record.scheme)}")
    return record


def _row(record: Record) -> dict[str, Any]:
    """The columns of a record's row."""
    values = msgspec.to_builtins(record)
    row: dict[str, Any] = {"run": record.run}
    for name in _JSON:
        value = values.get(_FIELDS.get(name, name))
        row[name] = "" if value is None else msgspec.json.encode(value).decode()
    unmeasured = [name for name, value in record.metrics.items() if value is None]
    row[UNMEASURED] = msgspec.json.encode(unmeasured).decode()
    size = sum(len(row[name]) for name in COLUMNS)
    if size > MOST_ROW_BYTES:
        raise RunError(f"the row of a run has {size} bytes, expected at most {MOST_ROW_BYTES}")
    for name in COLUMNS.keys() & record.metrics.keys():
        raise RunError(f"a metric cannot be stored under the name {name!r}")
    return row | record.measured


def table_bytes(records: Sequence[Record]) -> bytes:
    """The content of a file with these runs."""
    rows = [_row(record) for record in sorted(records, key=lambda each: each.order)]
    metrics = sorted({name for row in rows for name in row} - COLUMNS.keys())
    columns = COLUMNS | dict.fromkeys(metrics, NUMBER)
    return parquet_bytes(make_table({name: [row.get(name) for row in rows] for name in columns}, columns))


def _file_name(scheme: str) -> str:
    return slug(scheme) + SUFFIX


class Store:
    """The runs in a folder, read on first use."""

    def __init__(self, folder: Path) -> None:
        """The folder may be missing until a run is added."""
        self.folder = folder
        self._known: dict[str, dict[str, Record]] = {}

    def of(self, scheme: str) -> Mapping[str, Record]:
        """The runs of a scheme, by run id.

        Raises:
            FileError: the file cannot be read, or a row in it is invalid.
        """
        name = _file_name(scheme)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def every(self) -> tuple[list[Record], list[FileError]]:
        """All runs, by file and in the order of the rows, and an error for each invalid row or file.

        Raises:
            FileError: the folder cannot be read.
        """
        try:
            paths = sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except FileNotFoundError:
            paths = []
        except OSError as error:
            raise FileError(self.folder, "", error.strerror or str(error)) from error
        records: list[Record] = []
        bad: list[FileError] = []
        for path in paths:
            try:
                of_file, errors = read_records(path)
            except FileError as error:
                of_file, errors = {}, [error]
            records += of_file.values()
            bad += errors
        return records, bad

    def add(self, record: Record) -> Record | None:
        """Adds a run with one code hash; returns its stored record, with which it is merged, if there is one.

        Raises:
            FileError: the file cannot be read, or has an invalid row; it is left unchanged.
            RunError: the file cannot be written.
        """
        name = _file_name(record.scheme)
        try:
            with self._locked():
                records = self._read(name)
                before = records.get(record.run)
                records[record.run] = joined(before, record)
                content = table_bytes(list(records.values()))
                self._remove_temporary_files(name)
                write_file(self.folder / name, content)
                self._known[name] = records
        except OSError as error:
            problem = f"{error.strerror or error}; the run was not stored"
            raise RunError(f"{self.folder / name}: {problem}") from error
        return before

    def _read(self, name: str) -> dict[str, Record]:
        records, bad = read_records(self.folder / name)
        if bad:
            raise bad[0]
        return records

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the folder itself against other writers; a lock file would show up in the repository."""
        self.folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def _remove_temporary_files(self, name: str) -> None:
        """Removes temporary files that killed writers left; the folder must be locked."""
        for path in self.folder.glob(f".{name}.????????"):
            path.unlink(missing_ok=True)
