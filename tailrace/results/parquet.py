# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Arrow tables of typed columns as Parquet files; problems are raised as FileError.

Arrow's reader trusts its input: from a damaged file it returns wrong numbers, or it aborts the process.
Therefore files of Tailrace have a seal, a hash of all other bytes, between data and footer, where the format
allows other bytes and readers ignore them. Files of earlier versions and of other programs have no seal and
are read without this check.

A few compressed bytes can expand to any number of rows. Therefore a table is decompressed one batch of rows
at a time, and refused as soon as it is too large. A table with unexpected columns is not decompressed at all.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
from collections.abc import Collection, Iterable
from pathlib import Path

from arro3.core import DataType, RecordBatchReader, Schema, Table
from arro3.io import read_parquet as read_arrow
from arro3.io import write_parquet as write_arrow

from tailrace.spec.errors import FileError, SpecError
from tailrace.spec.files import bytes_of
from tailrace.spec.limits import refuse_above
from tailrace.tables.arrow import TEXT, Columns, RowTable

MOST_BYTES = 1 << 30
"""Size limit of a decompressed table; a table with the maximum number of flows has half as many bytes."""

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_SEAL = b"\0tailrace sha256\0"
_COMPRESSION = "zstd(9)"
_TEXTS = {TEXT, DataType.large_string(), DataType.string_view()}
"""Arrow's string types; other programs may use each of them."""


def write_parquet(table: Table, path: Path) -> None:
    """Writes a table with its seal; raises OSError if that fails."""
    path.write_bytes(parquet_bytes(table))


def parquet_bytes(table: Table) -> bytes:
    """The content of a file with this table and its seal."""
    content = _content(table)
    end = _footer(content)
    return content[:end] + _SEAL + hashlib.sha256(content).digest() + content[end:]


def _footer(content: bytes) -> int:
    """The offset of a file's footer. After the footer are its size, and the four magic bytes."""
    return len(content) - _TAIL_BYTES - int.from_bytes(content[-_TAIL_BYTES : -len(_MAGIC)], "little")


def _is_intact(content: bytes) -> bool:
    """Whether a file has Parquet's magic bytes and, if it has a seal, is unchanged."""
    if not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
        return False
    start = content.rfind(_SEAL)
    if start < 0:
        return True
    end = start + len(_SEAL) + hashlib.sha256().digest_size
    digest = hashlib.sha256(content[:start] + content[end:]).digest()
    return end == _footer(content) and digest == content[start + len(_SEAL) : end]


def _content(table: Table) -> bytes:
    content = io.BytesIO()
    write_arrow(table, content, compression=_COMPRESSION)
    return content.getvalue()


def _table(content: bytes) -> Table:
    return read_arrow(io.BytesIO(content)).read_all()


# results are passed between processes, but arro3 tables do not support pickle
copyreg.pickle(Table, lambda table: (_table, (_content(table),)))


def read_parquet(
    path: Path, what: str, columns: Columns, most_rows: int, others: DataType | None = None
) -> Table:
    """Reads the table of `what` (a word for messages) from a file; some of `columns` may be missing.

    `others` is the type of further columns; None: there must be none.

    Raises:
        FileError: the file cannot be read, is not such a table, or has other columns, more than `most_rows`
            rows, or more than MOST_BYTES.
    """
    content = bytes_of(path)
    if not _is_intact(content):
        raise FileError(path, "", f"no table of {what}, or a damaged one")
    try:
        reader = read_arrow(io.BytesIO(content))
        unexpected = _unexpected(reader.schema, columns, others)
        table = None if unexpected is not None else _read_bounded(reader, most_rows)
    except SpecError as error:
        raise FileError(path, what, str(error)) from error
    except BaseException as error:
        # a panic of Arrow's Rust code is a BaseException but not an Exception, like KeyboardInterrupt
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        raise FileError(path, "", f"no table of {what}, or a damaged one") from error
    if table is None:
        raise FileError(
            path, "", f"no table of {what}: column {unexpected!r} is not expected, or of another type"
        )
    return table


def refuse_missing(
    table: Table, path: Path, what: str, columns: Iterable[str], nullable: Collection[str] = ()
) -> None:
    """Raises FileError if a column is missing, or has missing values and is not one of `nullable`."""
    for name in columns:
        if name not in table.column_names:
            raise FileError(path, "", f"no table of {what}: column {name!r} is missing")
        if name not in nullable and table.column(name).null_count:
            raise FileError(path, "", f"no table of {what}: column {name!r} has missing values")


def _unexpected(schema: Schema, columns: Columns, others: DataType | None) -> str | None:
    """The first column that is unexpected, given twice or of another type; None: all are as expected."""
    expected: dict[str, DataType | None] = dict(columns)
    for name, kind in zip(schema.names, schema.types, strict=True):
        wanted = expected.get(name, others)
        if wanted is None or not _is_same_type(kind, wanted):
            return name
        expected[name] = None  # a second column of this name is unexpected
    return None


def _read_bounded(reader: RecordBatchReader, most_rows: int) -> Table:
    """Reads a table batch by batch; raises SpecError as soon as it is too large."""
    batches, rows, octets = [], 0, 0
    for batch in reader:
        batches.append(batch)
        rows, octets = rows + batch.num_rows, octets + batch.nbytes
        refuse_above("table", "rows or more", rows, most_rows)
        refuse_above("table", "bytes or more", octets, MOST_BYTES)
    return RowTable(Table.from_batches(batches, schema=reader.schema))


def _is_same_type(kind: DataType, wanted: DataType) -> bool:
    """Whether values of two types become the same Python type."""
    return kind == wanted or {kind, wanted} <= _TEXTS
