# SPDX-License-Identifier: Apache-2.0
"""The folder of finished runs: what a line holds, bad lines, writers at once, the order of lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.identity import run_id
from tailrace.results.metrics import measure
from tailrace.results.result import Result
from tailrace.results.summary import FORMAT
from tailrace.spec.errors import FileError
from tailrace.study.store.record import MOST_CODES, Record, differences, joined, record_of
from tailrace.study.store.store import MOST_LINE_BYTES, MOST_LINES, Store, read_lines
from tailrace.study.task import Task, make_task, run_task

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


def test_a_line_holds_what_pages_need(ran: tuple[Task, Result], tmp_path: Path) -> None:
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


def test_lines_are_sorted_and_others_stay_as_they_are(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Whatever the order in which runs end, so that merges are small."""
    every = copies(record_of(*ran), 4)
    for number, order in enumerate((every, every[::-1])):
        store = Store(tmp_path / str(number))
        for record in order:
            store.add(record)
    first, second = ((tmp_path / name / "ecmp.jsonl").read_bytes() for name in "01")
    assert first == second
    lines = first.splitlines()
    # a key that a later version may have added stays where nothing is run
    lines[1] = lines[1].replace(b'"summary":{', b'"summary":{"later":1,')
    path = tmp_path / "0" / "ecmp.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    Store(tmp_path / "0").add(every[0])
    assert path.read_bytes().splitlines() == lines
    assert sorted(each.name for each in (tmp_path / "0").iterdir()) == ["ecmp.jsonl"]


def test_writers_at_once_lose_nothing(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """Four that add runs to one file, each by itself, and what a fifth has left that was killed.

    Threads, for locks of folders that were opened twice keep these apart as they do processes.
    """
    every = copies(record_of(*ran), 40)
    (tmp_path / ".ecmp.jsonl.0123abcd").write_text("half a li")

    def write_some(number: int) -> None:
        for each in every[number::4]:
            Store(tmp_path).add(each)

    with ThreadPoolExecutor(4) as writers:
        assert list(writers.map(write_some, range(4))) == [None] * 4
    lines, bad = read_lines(tmp_path / "ecmp.jsonl")
    assert not bad
    assert lines.keys() == {each.run for each in every}
    assert [path.name for path in tmp_path.iterdir()] == ["ecmp.jsonl"]


def line_with(**changes) -> Callable[[bytes], bytes]:
    def change(text: bytes) -> bytes:
        return json.dumps(json.loads(text) | changes).encode()

    return change


BAD: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda _text: b"<<<<<<< HEAD", "JSON is malformed"),
    (lambda text: text[:-10], "Input data was truncated"),
    (lambda _text: b"", "Input data was truncated"),
    (lambda _text: b"[" * 100_000, "not a finished run: "),
    (lambda _text: b'{"run": "\xff"}', "not a finished run: "),
    (lambda text: text.replace(b'"seed":0', b'"seed":7', 1), "`run` is not the id"),
    (lambda text: text.replace(b',"scheme":"ecmp"', b',"scheme":"spray"'), "summary.scheme differs"),
    (
        lambda text: text.replace(f'"format":{FORMAT},'.encode(), b""),
        f"summary.format: expected {FORMAT}, found 0",
    ),
    (
        lambda text: text.replace(b'"trace_sha256":"', b'"trace_sha256":"\\u001b['),
        "expected 64 hexadecimal digits",
    ),
    (line_with(run="../../etc/passwd"), "Expected `str` matching regex"),
    (line_with(ran=[]), "Expected `array` of length >= 1"),
    (line_with(ran=["0" * 16] * (MOST_CODES + 1)), "Expected `array` of length <= 8"),
    (line_with(more=1), "Object contains unknown field `more`"),
    (line_with(metrics={"fct_mean": "x"}), "Expected `float | null`"),
    (line_with(gaps=[1, 2, 3]), "gaps: expected pairs of numbers"),
    (lambda text: text + b" " * MOST_LINE_BYTES, f"bytes, expected at most {MOST_LINE_BYTES}"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_line_is_one_message(
    ran: tuple[Task, Result], tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    """It names the file and the line; nothing is written to such a file, and the others are read."""
    first, second = copies(record_of(*ran), 2)
    path = tmp_path / "ecmp.jsonl"
    good = msgspec.json.encode(second)
    path.write_bytes(good + b"\n" + change(msgspec.json.encode(first)) + b"\n")
    before = path.read_bytes()
    with pytest.raises(FileError) as caught:
        Store(tmp_path).of("ecmp")
    assert str(caught.value).startswith(f"{path}: line 2: ")
    assert message in str(caught.value)
    with pytest.raises(FileError):
        Store(tmp_path).add(first)
    assert path.read_bytes() == before
    records, bad = Store(tmp_path).every()
    assert [each.run for each in records] == [second.run]
    assert len(bad) == 1


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_too_many_lines_are_one_message(end: str, tmp_path: Path) -> None:
    """Each that is none would take an error of its own."""
    path = tmp_path / "ecmp.jsonl"
    path.write_text(end * (MOST_LINES + 1))
    with pytest.raises(FileError) as caught:
        Store(tmp_path).every()
    assert str(caught.value) == f"{path}: {MOST_LINES + 1} lines, expected at most {MOST_LINES}"


def test_lines_that_contradict_each_other(ran: tuple[Task, Result], tmp_path: Path) -> None:
    """The same run of two branches counts once; two results of the same specs, or another scheme's, do not."""
    (record,) = copies(record_of(*ran), 1)
    slower = msgspec.structs.replace(record, summary=msgspec.structs.replace(record.summary, wall_s=99.0))
    other = msgspec.structs.replace(
        record, summary=msgspec.structs.replace(record.summary, trace_sha256="0" * 64)
    )
    path = tmp_path / "ecmp.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, (record, slower, other))) + b"\n")
    lines, bad = read_lines(path)
    assert [line.record for line in lines.values()] == [record]
    assert [str(error) for error in bad] == [f"{path}: line 3: line 1 has another result of the same specs"]
    (tmp_path / "spray.jsonl").write_bytes(msgspec.json.encode(record))
    with pytest.raises(FileError, match=r"line 1: a run of ecmp, expected in ecmp\.jsonl"):
        Store(tmp_path).of("spray")


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


def test_a_line_remembers_which_code_gave_it(ran: tuple[Task, Result]) -> None:
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
