# SPDX-License-Identifier: Apache-2.0
"""The folder of finished runs: what a row holds, bad rows, writers at once, the order of rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import polars
import pytest
from arro3.io import read_parquet as read_arrow

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.identity import run_id
from tailrace.results.metrics import measure
from tailrace.results.parquet import write_parquet
from tailrace.results.result import Result
from tailrace.results.summary import FORMAT
from tailrace.sim.errors import RunError
from tailrace.spec.errors import FileError
from tailrace.study.store.record import MOST_CODES, Record, differences, joined, record_of
from tailrace.study.store.store import (
    COLUMNS,
    MOST_METRICS,
    MOST_ROW_BYTES,
    Store,
    read_records,
    table_bytes,
)
from tailrace.study.task import Task, make_task, run_task
from tailrace.tables.arrow import NUMBER, TEXT, make_table, values_of

WORDS = {
    "scheme": "ecmp",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=3",
    "workload": "permutation:size=16KiB",
    "target": "virtual",
}


def task(**changes) -> Task:
    return make_task(make({**WORDS, **changes}), "virtual", label="it", out=Path("it"))


@pytest.fixture(scope="module")
def ran() -> tuple[Task, Result]:
    planned = task(gaps=True, workload="incast:degree=2,size=16KiB,bystanders=2")
    return planned, run_task(planned)


def copies(record: Record, count: int) -> list[Record]:
    """Runs with other seeds, as if each had been run."""
    records = []
    for seed in range(count):
        specs = {**record.specs, "seed": seed}
        summary = msgspec.structs.replace(record.summary, seed=seed)
        records.append(msgspec.structs.replace(record, specs=specs, run=run_id(specs, {}), summary=summary))
    return records


def test_a_row_holds_what_pages_need(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Read again it gives the same metrics, of each class of flows, too, and the same gaps."""
    planned, result = ran
    store = Store(tmp_path / "new" / "folder")
    store.add(record_of(planned, result))
    (record,) = Store(store.folder).of("ecmp").values()
    assert record == record_of(planned, result)
    assert record.measured == measure(result)
    assert record.result(planned).gaps == result.gaps
    assert record.result(planned).summary == result.summary
    assert {"fct_p99", "fct_p99_of_incast", "fct_p99_of_bystander"} <= record.measured.keys()


def test_rows_are_sorted(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Whatever the order in which runs end: the files are equal."""
    every = copies(record_of(*ran), 4)
    for number, order in enumerate((every, every[::-1])):
        store = Store(tmp_path / str(number))
        for record in order:
            store.add(record)
    first, second = ((tmp_path / name / "ecmp.parquet").read_bytes() for name in "01")
    assert first == second
    records, bad = read_records(tmp_path / "0" / "ecmp.parquet")
    assert not bad
    assert [each.summary.seed for each in records.values()] == [0, 1, 2, 3]
    assert sorted(each.name for each in (tmp_path / "0").iterdir()) == ["ecmp.parquet"]


def test_metrics_are_columns(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Other programs can read them; a metric that a run does not have is empty."""
    store = Store(tmp_path)
    record = record_of(*ran)
    store.add(record)
    table = polars.read_parquet(tmp_path / "ecmp.parquet")
    assert table["fct_mean"].to_list() == [record.measured["fct_mean"]]
    assert set(table.columns) - record.measured.keys() == set(COLUMNS)
    unmeasured = {name for name, value in record.metrics.items() if value is None}
    assert unmeasured
    assert set(json.loads(table["unmeasured"][0])) == unmeasured


def test_writers_at_once_lose_nothing(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Four that add runs to one file, each by itself, and what a fifth has left that was killed.

    Threads, for locks of folders that were opened twice keep these apart as they do processes.
    """
    every = copies(record_of(*ran), 40)
    (tmp_path / ".ecmp.parquet.0123abcd").write_text("half a ta")

    def write_some(number: int) -> None:
        for each in every[number::4]:
            Store(tmp_path).add(each)

    with ThreadPoolExecutor(4) as writers:
        assert list(writers.map(write_some, range(4))) == [None] * 4
    records, bad = read_records(tmp_path / "ecmp.parquet")
    assert not bad
    assert records.keys() == {each.run for each in every}
    assert [path.name for path in tmp_path.iterdir()] == ["ecmp.parquet"]


def rows_of(*records: Record) -> dict[str, list]:
    """The values of each column of a file with these runs."""
    table = read_arrow(io.BytesIO(table_bytes(records))).read_all()
    return values_of(table)


def write_rows(values: dict[str, list], path: Path) -> None:
    kinds = {name: TEXT if name in COLUMNS else NUMBER for name in values}
    write_parquet(make_table(values, kinds), path)


def summary_with(**changes: object) -> Callable[[dict[str, list]], None]:
    def change(values: dict[str, list]) -> None:
        values["summary"][0] = json.dumps(json.loads(values["summary"][0]) | changes)

    return change


def cell(name: str, text: str) -> Callable[[dict[str, list]], None]:
    def change(values: dict[str, list]) -> None:
        values[name][0] = text

    return change


BAD: list[tuple[Callable[[dict[str, list]], None], str]] = [
    (cell("specs", "<<<<<<< HEAD"), "JSON is malformed"),
    (cell("summary", '{"format":'), "Input data was truncated"),
    (cell("summary", "[" * 100_000), "not a finished run: "),
    (cell("summary", "[]"), f"summary.format: expected {FORMAT}, found 0"),
    (cell("specs", "{}"), "`run` is not the id"),
    (summary_with(scheme="spray"), "summary.scheme differs"),
    (summary_with(format=3), f"summary.format: expected {FORMAT}, found 3"),
    (summary_with(trace_sha256="\x1b["), "expected 64 hexadecimal digits"),
    (cell("run", "../../etc/passwd"), "Expected `str` matching regex"),
    (cell("ran", "[]"), "Expected `array` of length >= 1"),
    (cell("ran", json.dumps(["0" * 16] * (MOST_CODES + 1))), "Expected `array` of length <= 8"),
    (cell("unmeasured", "[1]"), "Expected `str`, got `int`"),
    (cell("gap_bins", "[1,2,3]"), "gaps: expected pairs of numbers"),
    (cell("files", " " * MOST_ROW_BYTES), f"bytes, expected at most {MOST_ROW_BYTES}"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_row_is_one_message(
    ran: tuple[Task, Result], tmp_path: Path, change: Callable[[dict[str, list]], None], message: str
) -> None:
    """It names the file and the row; nothing is written to such a file, and the others are read."""
    first, second = copies(record_of(*ran), 2)
    path = tmp_path / "ecmp.parquet"
    values = rows_of(first, second)
    change(values)
    write_rows(values, path)
    before = path.read_bytes()
    with pytest.raises(FileError) as caught:
        Store(tmp_path).of("ecmp")
    assert str(caught.value).startswith(f"{path}: row 1: ")
    assert message in str(caught.value)
    with pytest.raises(FileError):
        Store(tmp_path).add(first)
    assert path.read_bytes() == before
    records, bad = Store(tmp_path).every()
    assert [each.run for each in records] == [second.run]
    assert len(bad) == 1


def test_a_bad_file_is_one_message(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """No Parquet, a changed byte, a missing column, one of another type, too many of them."""
    (record,) = copies(record_of(*ran), 1)
    path, values = tmp_path / "ecmp.parquet", rows_of(record)
    good = table_bytes([record])

    def problem() -> str:
        [error] = Store(tmp_path).every()[1]
        with pytest.raises(FileError):
            Store(tmp_path).add(record)
        return str(error)

    path.write_bytes(b"<<<<<<< HEAD")
    assert "no table of finished runs" in problem()
    path.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    assert "a damaged one" in problem()
    write_rows({name: value for name, value in values.items() if name != "specs"}, path)
    assert "column 'specs' is missing" in problem()
    write_parquet(make_table({**values, "more": ["x"]}, {**COLUMNS, "more": TEXT}), path)
    assert "column 'more' is not expected, or of another type" in problem()
    write_rows(values | {f"m{number}": [1.0] for number in range(MOST_METRICS)}, path)
    assert f"expected at most {MOST_METRICS} metrics" in problem()


def test_rows_that_contradict_each_other(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """The same run counts once; two results of the same specs, or another scheme's, are errors."""
    (record,) = copies(record_of(*ran), 1)
    path = tmp_path / "ecmp.parquet"
    values = {name: value * 3 for name, value in rows_of(record).items()}
    summary = json.loads(values["summary"][0])
    values["summary"][1] = json.dumps(summary | {"wall_s": 99.0})
    values["summary"][2] = json.dumps(summary | {"trace_sha256": "0" * 64})
    write_rows(values, path)
    records, bad = read_records(path)
    assert list(records.values()) == [record]
    assert [str(error) for error in bad] == [f"{path}: row 3: row 1 has another result of the same specs"]
    (tmp_path / "spray.parquet").write_bytes(table_bytes([record]))
    with pytest.raises(FileError, match=r"row 1: a run of ecmp, expected in ecmp\.parquet"):
        Store(tmp_path).of("spray")


def test_a_row_that_is_too_large_is_not_stored(ran: tuple[Task, Result], tmp_path: Path) -> None:
    record = record_of(*ran)
    summary = msgspec.structs.replace(record.summary, overload_reasons=("x" * MOST_ROW_BYTES,))
    large = msgspec.structs.replace(record, summary=summary)
    with pytest.raises(RunError, match=f"expected at most {MOST_ROW_BYTES}"):
        table_bytes([large])


def test_what_differs(ran: tuple[Task, Result]) -> None:
    """What was measured, and neither times nor what was not looked for before."""
    record = record_of(*ran)
    summary = msgspec.structs.replace(record.summary, wall_s=99.0, nics="interpreted", version="7")
    assert differences(record, msgspec.structs.replace(record, summary=summary)) == []
    more = msgspec.structs.replace(record, metrics={**record.metrics, "later": 3.0})
    assert differences(record, more) == []
    assert differences(more, record) == []
    lost = msgspec.structs.replace(record, metrics=record.metrics | {"drains": None})
    assert differences(record, lost) == ["metrics.drains"]
    packets = msgspec.structs.replace(record.summary.packets, sent=1)
    summary = msgspec.structs.replace(record.summary, packets=packets, trace_sha256="0" * 64)
    assert differences(record, msgspec.structs.replace(record, summary=summary)) == ["trace", "packets.sent"]


def test_a_row_remembers_which_code_gave_it(ran: tuple[Task, Result]) -> None:
    """Each that gave its result; and where the result is another one, those that gave it before."""
    first = record_of(*ran)
    second, third = (msgspec.structs.replace(first, ran=(digit * 16,)) for digit in "23")
    assert joined(None, first) == first
    both = joined(first, second)
    assert both.ran == (*first.ran, "2" * 16)
    assert joined(both, second).ran == both.ran
    summary = msgspec.structs.replace(first.summary, trace_sha256="0" * 64)
    other = joined(both, msgspec.structs.replace(third, summary=summary))
    assert (other.ran, other.differs) == (("3" * 16,), both.ran)
    back = joined(other, second)
    assert (back.ran, back.differs) == (("2" * 16,), (*first.ran, "3" * 16))
    record = first
    for number in range(20):
        record = joined(record, msgspec.structs.replace(first, ran=(f"{number:016x}",)))
    assert len(record.ran) == MOST_CODES
    assert (record.ran[0], record.ran[-1]) == (first.ran[0], f"{19:016x}")
