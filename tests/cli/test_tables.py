# SPDX-License-Identifier: Apache-2.0
"""Every table fits its terminal: it wraps, or leaves columns out and says which; -o, --columns and --sort-by."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.cli.options import OutputFormat
from tailrace.cli.output import render
from tailrace.controller.inspect.flows import COLUMNS as FLOWS
from tailrace.results.summary import OF_THE_RUN_ITSELF
from tailrace.tables.listing import Column, Listing, Row
from tailrace.tables.table import STRONG, TextTable, unstyled
from tests.cli.conftest import Command, Fabric, read_terminal
from tests.cli.test_terminal import ROOT
from tests.cli.test_terminal import plain as without_escapes
from tests.long import more
from tests.switch.p4runtime.conftest import TIMEOUT_S

MARK = "=== "
MEASURED = Listing(
    "results",
    (
        Column("scheme", key=True),
        Column("fct_ns", is_time=True, ends=("low", "high")),
        Column("ratio", show="{:.2f}".format, ends=("least", "most")),
        Column("low", data=True),
        Column("high", data=True),
    ),
    (
        {
            "scheme": "a",
            "fct_ns": 2000.0,
            "low": 1000.0,
            "high": 3000.0,
            "ratio": 1.1,
            "least": 0.9,
            "most": 1.3,
        },
        {
            "scheme": "b",
            "fct_ns": 4000.0,
            "low": 4000.0,
            "high": 4000.0,
            "ratio": 2.0,
            "least": 1.5,
            "most": 2.5,
        },
        {"scheme": "c", "fct_ns": 9000.0, "best": ("fct_ns",), "ratio": 3.0},
    ),
    best="best",
)
"""Values with intervals, of which one is a point and one is not there."""
LOOK = (
    *("tables leaf1", "groups", "counters leaf1 --all --where counter==drops", "queues", "paths h1 h4"),
    *("registers leaf1", "diff", "flows"),
)
WORDS = (
    *("schemes flowcut", "topologies", "workloads", "faults", "topology fat-tree:k=4", "paper list"),
    "compare basic --target virtual",
    "run --scheme letflow:variant=hf2t --pfc default --workload permutation:size=16KiB --target virtual",
    "sweep --scheme ecmp,flowcut --set seed=1,2 --workload permutation:size=16KiB --target virtual",
    "paper spritz_table1",
)
"""Commands that print tables; those of LOOK look at a network, too."""

SCRIPT = """
import sys
from tailrace.cli.main import main
for line in sys.argv[1:]:
    print("=== " + line, flush=True)
    status = main(line.split())
    if status not in (0, 1):
        sys.exit(f"{line}: {status}")
"""


def in_terminal(columns: int, lines: list[str], folder: Path) -> dict[str, list[str]]:
    """What commands print to a real terminal of so many columns; one process for all of them."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with (folder / "errors").open("wb") as errors:
        started = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *lines],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=errors,
            env={**environment, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
        )
    os.close(theirs)
    written = read_terminal(ours)
    assert started.wait(TIMEOUT_S) == 0, (folder / "errors").read_text()
    outputs: dict[str, list[str]] = {}
    for text in without_escapes(written.decode()).replace("\r", "").splitlines():
        if text.startswith(MARK):
            name = text.removeprefix(MARK)
            outputs[name] = []
        else:
            outputs[name].append(text)
    return outputs


@pytest.mark.parametrize("columns", [80, 200, *more(120)])
def test_every_table_fits_its_terminal(fabric: Fabric, tmp_path: Path, columns: int) -> None:
    fabric.install()
    lines = [*(f"{line} --run {fabric.run_file}" for line in LOOK), *WORDS]
    outputs = in_terminal(columns, lines, tmp_path)
    assert list(outputs) == lines
    for line, texts in outputs.items():
        assert max(map(len, texts), default=0) <= columns, line
        assert texts or line.startswith(("flows", "diff", "registers")), line
        assert not any("…" in text for text in texts), f"{line}: nothing is cut"
    compared = outputs["compare basic --target virtual"]
    for name in ("ecmp", "letflow", "flowcut"):
        assert sum(name in text.split()[:2] for text in compared) == 2, "a row in each case"
    hidden = [text for text in compared if text.startswith("hidden: ")]
    assert len(hidden) == (columns < 200)
    assert ("(-o wide)" in " ".join(compared)) == (columns < 200), (
        "all of them are named, in two lines where need be"
    )


def test_a_flow_can_be_told_from_others_at_80_columns() -> None:
    row: Row = {
        **{column.name: 123456 for column in FLOWS},
        "switch": "leaf1",
        "src": "10.0.1.2",
        "dst": "10.0.2.3",
        "from": "h1",
        "to": "h4",
        "state": "DRAINING",
        "protocol": "udp",
        "in_port": "1:h1",
        "out_port": "3:spine1",
        "left": None,
    }
    text = unstyled(TextTable(Listing("flows", FLOWS, (row,)), 80).lines())
    assert {"switch", "sport", "from", "to", "state", "rtt_avg"} <= set(text.splitlines()[0].split())
    assert "\nhidden: src, dst, " in text


TEXT = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=30)


@given(
    st.integers(1, 8).flatmap(
        lambda count: st.tuples(
            st.lists(st.tuples(TEXT, st.integers(0, 3)), min_size=count, max_size=count),
            st.lists(st.lists(TEXT | st.integers(), min_size=count, max_size=count), min_size=1, max_size=4),
        )
    ),
    st.integers(30, 200),
)
def test_any_listing_fits_any_terminal(
    made: tuple[list[tuple[str, int]], list[list[str | int]]], width: int
) -> None:
    """No line is longer; every column of rank 0 is there with all it holds, the others or their names."""
    titles, values = made
    columns = tuple(Column(f"c{n}", title=title or "t", rank=rank) for n, (title, rank) in enumerate(titles))
    rows = tuple({column.name: cell for column, cell in zip(columns, row, strict=True)} for row in values)
    lines = unstyled(TextTable(Listing("things", columns, rows), width).lines()).splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    letters = {letter: text.count(letter) for letter in set(text)}
    for column in columns:
        if column.rank == 0:
            for row in rows:
                for letter in str(row[column.name]):
                    assert letters.get(letter), (letter, lines)
    left_out = "".join(lines).partition("hidden: ")[2]
    assert all(column.rank > 0 for column in columns if column.name in left_out.split(", "))


# ---- which columns, in which order, how ----


def test_columns_and_order(tailrace: Command) -> None:
    result = tailrace("groups", "leaf1", "--columns", "group,kind", "--sort-by", "-kind")
    assert result.out.splitlines()[0].split() == ["group", "kind"]
    kinds = [line.split()[1] for line in result.out.splitlines()[1:]]
    assert kinds == sorted(kinds, reverse=True)
    assert set(tailrace("groups", "leaf1", "--columns", "group", "-o", "json").rows[0]) == {"group"}
    assert tailrace("groups", "--columns", "kind", "-o", "csv").out.splitlines()[0] == "kind"


@pytest.mark.parametrize("option", ["--columns", "--sort-by"])
def test_an_unknown_column(tailrace: Command, option: str) -> None:
    result = tailrace("groups", option, "grup")
    assert (result.status, result.out) == (2, "")
    assert result.err == f"tailrace: {option}: no column 'grup'; did you mean group?\n"


@pytest.mark.parametrize(
    "line",
    [
        *("schemes ecmp", "topologies", "workloads", "faults", "topology leaf-spine", "paper list"),
        *("run --scheme ecmp --target virtual", "compare --scheme ecmp,spray --target virtual"),
        "sweep --scheme ecmp --set seed=1,2 --target virtual",
    ],
)
def test_two_ways_to_say_json(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = line.split()
    outs = []
    for ending in (["--json"], ["-o", "json"], ["--json", "-o", "json"]):
        result = command(*words, *ending)
        assert result.status == 0
        document = json.loads(result.out)
        outs.append(_without_times(document))
    assert outs[0] == outs[1] == outs[2]
    wrong = command(*words, "--json", "-o", "csv")
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err == "tailrace: --json and -o csv contradict each other; give one\n"


def _without_times(document: object) -> object:
    """What two runs have in common: all but how long they took."""
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if key not in OF_THE_RUN_ITSELF}
        return {key: _without_times(value) for key, value in kept.items()}
    return [_without_times(value) for value in document] if isinstance(document, list) else document


def test_json_and_another_way_of_looking(tailrace: Command) -> None:
    assert tailrace("groups", "--json").out == tailrace("groups", "-o", "json").out


def test_results_as_csv(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("compare", "--scheme", "ecmp", "--scheme", "spray", "--target", "virtual", "-o", "csv")
    result = command(*words, "--columns", "scheme,fct_mean,drains")
    assert result.out.splitlines()[0] == "scheme,fct_mean,drains"
    assert [line.split(",")[0] for line in result.out.splitlines()[1:]] == ["ecmp", "spray"]


def test_no_rows_are_a_sentence(tailrace: Command, fabric: Fabric) -> None:
    fabric.install()
    groups = len(json.loads(tailrace("groups", "--json").out))
    for words, said in (
        (("counters", "leaf1"), "all counters are 0; --all shows them"),
        # reading flows takes packets of its own, which are counted
        (("flows",), "4 switches track no flow now"),
        (("groups", "--where", "group == 99"), f"none of {groups} groups matches --where"),
    ):
        result = tailrace(*words)
        assert (result.status, result.out, result.err) == (0, "", f"{said}\n")
    assert tailrace("flows", "--json").out == "[]\n"


def test_intervals_and_what_stands_out() -> None:
    """A value has its interval behind it, in its unit; data has the ends."""
    lines = list(TextTable(MEASURED).lines())
    texts = [" ".join("".join(text for text, _ in line).split()) for line in lines]
    assert texts == [
        "scheme fct (µs) ratio",
        "a 2.00 (1.00..3.00) 1.10 (0.90..1.30)",
        "b 4.00 2.00 (1.50..2.50)",
        "c 9.00 3.00",
    ]
    bold = [text.strip() for line in lines[1:] for text, style in line if style == STRONG]
    assert bold == ["9.00"]
    rows = json.loads(render(MEASURED, OutputFormat.JSON))
    assert [row["low"] for row in rows] == [1000.0, 4000.0, None]
    assert "none" not in render(MEASURED, OutputFormat.CSV)
