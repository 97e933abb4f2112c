# SPDX-License-Identifier: Apache-2.0
"""Tables and their files: what is written is read again, also by others; a damaged file is told in a line."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.results import parquet
from tailrace.results.parquet import read_parquet, write_parquet
from tailrace.spec.errors import FileError
from tailrace.tables.arrow import BOOLEAN, INTEGER, NUMBER, TEXT, make_table, values_of

MOST_ROWS = 1000
COLUMNS = {"number": INTEGER, "text": TEXT, "share": NUMBER, "truth": BOOLEAN}
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(st.characters(codec="utf-8")),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.booleans(),
    ),
    max_size=20,
)


def values(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[number] for row in rows] for number, name in enumerate(COLUMNS)}


@given(rows=ROWS)
def test_values_come_back(rows: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """From the file, from another process, and to another program, which may write it anew."""
    path = tmp_path_factory.mktemp("table") / "it.parquet"
    table = make_table(values(rows), COLUMNS)
    assert values_of(table) == values_of(pickle.loads(pickle.dumps(table))) == values(rows)
    write_parquet(table, path)
    assert values_of(read_parquet(path, "things", COLUMNS, MOST_ROWS)) == values(rows)
    theirs = polars.read_parquet(path)
    assert theirs.rows() == rows
    theirs.write_parquet(path)
    assert values_of(read_parquet(path, "things", COLUMNS, MOST_ROWS)) == values(rows)


def test_a_column_may_be_absent_but_not_another(tmp_path: Path) -> None:
    path = tmp_path / "it.parquet"
    write_parquet(make_table({"text": ["a"], "number": [1]}, COLUMNS), path)
    assert values_of(read_parquet(path, "things", COLUMNS, MOST_ROWS)) == {"number": [1], "text": ["a"]}
    for columns in ({"number": INTEGER}, {**COLUMNS, "text": INTEGER}):
        with pytest.raises(FileError, match="no table of things: column 'text' is not expected, or of"):
            read_parquet(path, "things", columns, MOST_ROWS)


@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_damaged_files(
    position: float, bit: int, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Wherever a bit is wrong or the file ends: the very table, where only the seal was hit, or one line."""
    path = tmp_path_factory.mktemp("table") / "it.parquet"
    rows = [(number, f"text {number}", number / 3, bool(number % 2)) for number in range(200)]
    write_parquet(make_table(values(rows), COLUMNS), path)
    damaged = bytearray(path.read_bytes())
    where = int(position * len(damaged))
    damaged[where] ^= 1 << bit
    path.write_bytes(damaged[:where] if cut else damaged)
    try:
        assert values_of(read_parquet(path, "things", COLUMNS, MOST_ROWS)) == values(rows)
    except FileError as error:
        assert str(path) in str(error)
        assert "no table of things" in str(error)
        assert "\n" not in str(error)
    else:
        assert not cut
        assert b"\0tailrace sha256\0" not in damaged


def test_files_of_others(tmp_path: Path) -> None:
    """They have no seal; what is no table at all is told, as is a file that is not there."""
    path = tmp_path / "it.parquet"
    polars.DataFrame({"number": [1, None]}).write_parquet(path)
    assert values_of(read_parquet(path, "things", COLUMNS, MOST_ROWS)) == {"number": [1, None]}
    for content in (b"", b"PAR1", b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(FileError, match="no table of things"):
            read_parquet(path, "things", COLUMNS, MOST_ROWS)
    path.unlink()
    with pytest.raises(FileError, match="No such file"):
        read_parquet(path, "things", COLUMNS, MOST_ROWS)


def _repeated(count: int, text: str, path: Path) -> None:
    """A file of a few bytes, whatever the number of rows."""
    columns = [
        polars.repeat(7, count, dtype=polars.Int64, eager=True).alias("number"),
        polars.repeat(text, count, eager=True).alias("text"),
    ]
    polars.DataFrame(columns).write_parquet(path, row_group_size=count)


READ = r"""
import re, sys
from pathlib import Path
from tailrace.results import parquet
from tailrace.spec.errors import FileError
from tailrace.tables.arrow import BOOLEAN, INTEGER, TEXT

def peak_bytes():
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

columns = {"number": INTEGER, "text": TEXT}
path = Path(sys.argv[1])
parquet.read_parquet(path / "small.parquet", "things", columns, 1000)
before = peak_bytes()
try:
    names = sys.argv[3].split(",")
    parquet.read_parquet(
        path / "large.parquet", "things", {name: columns[name] for name in names}, int(sys.argv[2])
    )
except FileError as error:
    print(peak_bytes() - before, error)
"""
PEAK_BYTES = 16 << 20
"""What may be taken before a table is refused; the table has 85 MB and more."""


@pytest.mark.parametrize(
    ("most_rows", "columns", "message"),
    [
        (MOST_ROWS, "number,text", "things: table: that comes to 1,024 rows or more, and the limit is 1,000"),
        (1 << 30, "number", "no table of things: column 'text' is not expected, or of another type"),
    ],
)
def test_a_small_file_of_many_rows_takes_little_memory(
    most_rows: int, columns: str, message: str, tmp_path: Path
) -> None:
    """A table is refused with the first batch of rows that is too many, and before any where it is another."""
    _repeated(MOST_ROWS, "a", tmp_path / "small.parquet")
    _repeated(5_000_000, "a", tmp_path / "large.parquet")
    assert (tmp_path / "large.parquet").stat().st_size < 100_000
    command = [sys.executable, "-c", READ, str(tmp_path), str(most_rows), columns]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak_bytes, _, line = done.stdout.partition(" ")
    assert int(peak_bytes) < PEAK_BYTES
    assert message in line
    assert line.count("\n") == 1


def test_a_text_counts_for_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is written once for all rows is there for each of them when it is unpacked."""
    path = tmp_path / "it.parquet"
    _repeated(100_000, "long " * 200, path)
    monkeypatch.setattr(parquet, "MOST_BYTES", 1 << 20)
    with pytest.raises(FileError, match="bytes or more, and the limit is 1,048,576 "):
        read_parquet(path, "things", COLUMNS, 100_000)
    monkeypatch.setenv("TAILRACE_LIMIT_FACTOR", "200")
    assert read_parquet(path, "things", COLUMNS, 100_000).num_rows == 100_000
