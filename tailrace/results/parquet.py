# SPDX-License-Identifier: Apache-2.0
"""Arrow tables of typed columns, and their parquet files with the errors of files.

Arrow's reader believes what it reads: of a damaged file it gives other numbers, or it ends the process. So a
file of ours has a seal, a hash of its bytes, between data and footer, where the format lets anything lie and
readers do not look. Files of earlier versions and of other programs have none, and are read as they are.

A few bytes can stand for any number of rows: a table is unpacked a batch of rows after the other, and refused
as soon as it is too large; and not at all, where it has columns that are not expected.
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
from tailrace.spec.files import read_bytes
from tailrace.spec.limits import refuse_above
from tailrace.tables.arrow import TEXT, Columns

MOST_BYTES = 1 << 30
"""Of a table that is unpacked; one of the most flows that there may be has half of that."""

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_SEAL = b"\0tailrace sha256\0"
_COMPRESSION = "zstd(3)"
_TEXTS = {TEXT, DataType.large_string(), DataType.string_view()}
"""Arrow has several types of text, and other programs use them."""


def write_parquet(table: Table, path: Path) -> None:
    """Writes a table; OSError where it cannot be written."""
    content = _content(table)
    end = _footer(content)
    path.write_bytes(content[:end] + _SEAL + hashlib.sha256(content).digest() + content[end:])


def _footer(content: bytes) -> int:
    """Where the footer of a file begins; its size stands behind it, before the last four bytes."""
    return len(content) - _TAIL_BYTES - int.from_bytes(content[-_TAIL_BYTES : -len(_MAGIC)], "little")


def _sound(content: bytes) -> bool:
    """Whether a file is as it was written, as far as it says so."""
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


# results go from process to process, and arro3 has no way of its own
copyreg.pickle(Table, lambda table: (_table, (_content(table),)))


def read_parquet(path: Path, what: str, columns: Columns, most_rows: int) -> Table:
    """The table of `what` in a file; of an earlier version, it may have fewer columns.

    Raises:
        FileError: it cannot be read, is none, has other columns, or more than `most_rows` or MOST_BYTES.
    """
    try:
        content = read_bytes(path)
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    if not _sound(content):
        raise FileError(path, "", f"no table of {what}, or a damaged one")
    try:
        reader = read_arrow(io.BytesIO(content))
        unexpected = _unexpected(reader.schema, columns)
        table = None if unexpected is not None else _bounded(reader, most_rows)
    except SpecError as error:
        raise FileError(path, what, str(error)) from error
    except BaseException as error:
        # a panic of its Rust is no Exception; what else is none, such as a signal's, is no fault of the file
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        raise FileError(path, "", f"no table of {what}, or a damaged one") from error
    if table is None:
        raise FileError(
            path, "", f"no table of {what}: column {unexpected!r} is not expected, or of another type"
        )
    return table


def refuse_gaps(
    table: Table, path: Path, what: str, columns: Iterable[str], gaps: Collection[str] = ()
) -> None:
    """Raises FileError unless all of these columns are there, and but for `gaps` have a value in each row."""
    for name in columns:
        if name not in table.column_names:
            raise FileError(path, "", f"no table of {what}: column {name!r} is missing")
        if name not in gaps and table.column(name).null_count:
            raise FileError(path, "", f"no table of {what}: column {name!r} has gaps")


def _unexpected(schema: Schema, columns: Columns) -> str | None:
    """The first column that is not expected, comes twice or is of another type; None: all are as expected."""
    expected = dict(columns)
    for name, kind in zip(schema.names, schema.types, strict=True):
        wanted = expected.pop(name, None)
        if wanted is None or not _same(kind, wanted):
            return name
    return None


def _bounded(reader: RecordBatchReader, most_rows: int) -> Table:
    """The table that is read; SpecError, before it is unpacked any further, where it is too large."""
    batches, rows, octets = [], 0, 0
    for batch in reader:
        batches.append(batch)
        rows, octets = rows + batch.num_rows, octets + batch.nbytes
        refuse_above("table", "rows or more", rows, most_rows)
        refuse_above("table", "bytes or more", octets, MOST_BYTES)
    return Table.from_batches(batches, schema=reader.schema)


def _same(kind: DataType, wanted: DataType) -> bool:
    """Whether values of two types are the same to Python."""
    return kind == wanted or {kind, wanted} <= _TEXTS
