# SPDX-License-Identifier: Apache-2.0
"""Tables in parquet files with the errors of files: a full disk or a damaged table is no matter of polars."""

from __future__ import annotations

import io
from pathlib import Path

import polars

from tailrace.words.errors import FileError
from tailrace.words.files import read_bytes

_PANIC = "PanicException"
"""What polars raises where its own code gives up on a file: a BaseException that it does not export."""


def write_parquet(table: polars.DataFrame, path: Path) -> None:
    """Writes a table; OSError where it cannot be written."""
    content = io.BytesIO()
    table.write_parquet(content)
    path.write_bytes(content.getvalue())


def read_parquet(path: Path, what: str) -> polars.DataFrame:
    """The table of `what` in a file.

    Raises:
        FileError: it cannot be read, or is none.
    """
    try:
        return polars.read_parquet(io.BytesIO(read_bytes(path)))
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except polars.exceptions.PolarsError as error:
        raise FileError(path, "", f"no table of {what}: {error}") from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise FileError(path, "", f"no table of {what}, or a damaged one") from error
