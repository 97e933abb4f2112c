# SPDX-License-Identifier: Apache-2.0
"""What a person at a terminal sees: tables, --watch that redraws, colours that can be turned off, help."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.app import COMMANDS
from tailrace.cli.options import OutputFormat
from tailrace.cli.output import render
from tailrace.tables.listing import Column, Listing
from tailrace.tables.rates import RateColumns
from tailrace.tables.table import CHANGED, TextTable, cells_of
from tests.cli.conftest import Command, Fabric, read_terminal
from tests.switch.p4runtime.conftest import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]


def on_terminal(words: list[str], **environment: str) -> tuple[str, int]:
    """What a command writes to a terminal of 200 columns, and its status."""
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "tailrace.cli.main", *words],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", "LINES": "50", **environment},
    )
    os.close(theirs)
    written = read_terminal(ours)
    assert started.stderr is not None
    assert started.stderr.read() == b""
    started.stderr.close()
    return written.decode(), started.wait(TIMEOUT_S)


def plain(text: str) -> str:
    """Without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_table_on_a_terminal(fabric: Fabric) -> None:
    text, status = on_terminal(["groups", "leaf1", "--run", str(fabric.run_file)])
    assert status == 0
    assert "3:spine1 4:spine2" in plain(text)
    assert "\x1b[1m" in text, "the head stands out"


def test_no_color(fabric: Fabric) -> None:
    text, _ = on_terminal(["groups", "leaf1", "--run", str(fabric.run_file)], NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", text)


def test_watch_redraws_on_the_alternate_screen(fabric: Fabric) -> None:
    words = ["counters", "leaf1", "--all", "--watch", "0.01", "--rounds", "2", "--run", str(fabric.run_file)]
    text, status = on_terminal(words)
    assert status == 0
    assert "\x1b[?1049h" in text, "the screen before is kept"
    assert "\x1b[?1049l" in text, "and comes back"
    assert "packets_per_s" in plain(text)
    assert "Ctrl-C ends" in plain(text)


COLUMNS = (Column("name", key=True), Column("count", grows=True), Column("left_ns", is_time=True))


def listing(**counts: int) -> Listing:
    return Listing(
        "t", COLUMNS, tuple({"name": name, "count": n, "left_ns": 1500} for name, n in counts.items())
    )


def changed(listing: Listing, before: Any = None) -> list[list[bool]]:
    """Whether cells stand out, by row."""
    return [[style == CHANGED for _, style in line[::2]] for line in TextTable(listing).lines(before)][1:]


def test_changed_cells_and_new_rows_stand_out() -> None:
    before = cells_of(listing(a=1, b=2))
    assert changed(listing(a=1, b=3, c=4), before) == [
        [False, False, False],
        [False, True, False],
        [True, True, True],
    ]
    assert changed(listing(a=1)) == [[False, False, False]]


def test_rates() -> None:
    rates = RateColumns()
    assert [row["count_per_s"] for row in rates.add(listing(a=10, b=5), 100.0).rows] == [None, None]
    second = rates.add(listing(a=30, b=4, c=1), 102.0)
    assert [column.name for column in second.columns] == ["name", "count", "count_per_s", "left_ns"]
    assert [row["count_per_s"] for row in second.rows] == [10.0, None, None], "a count that fell began anew"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (OutputFormat.TABLE, "name  count  left (µs)\na        12       1.50\n"),
        (OutputFormat.CSV, "name,count,left_ns\na,12,1500\n"),
        (OutputFormat.JSONL, '{"name": "a", "count": 12, "left_ns": 1500}\n'),
        (OutputFormat.JSON, '[\n  {\n    "name": "a",\n    "count": 12,\n    "left_ns": 1500\n  }\n]\n'),
    ],
)
def test_forms(form: OutputFormat, text: str) -> None:
    assert render(listing(a=12), form) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (OutputFormat.TABLE, ""),
        (OutputFormat.WIDE, ""),
        (OutputFormat.CSV, "name,count,left_ns\n"),
        (OutputFormat.JSONL, ""),
        (OutputFormat.JSON, "[]\n"),
    ],
)
def test_forms_of_nothing(form: OutputFormat, text: str) -> None:
    assert render(listing(), form) == text


def test_a_listing_prints_as_its_table() -> None:
    """As in a notebook; without rows a sentence."""
    assert f"{listing(a=1)}\n" == render(listing(a=1), OutputFormat.TABLE)
    assert str(listing()) == f"there are no {listing().kind}"


def test_repeated_json_is_one_line_a_reading() -> None:
    assert render(listing(a=1), OutputFormat.JSON, "T") == (
        '{"at": "T", "rows": [{"name": "a", "count": 1, "left_ns": 1500}]}\n'
    )
    assert render(listing(a=1), OutputFormat.CSV, "T", header=False) == "T,a,1,1500\n"


# ---- help ----


def test_help_names_every_command(command: Command) -> None:
    result = command("--help")
    assert result.status == 0
    for commands in COMMANDS.values():
        for name, (_, text) in commands.items():
            assert re.search(rf"^  {name} +{re.escape(text)}$", result.out, re.MULTILINE)
    assert "Examples" in result.out


def test_help_fits_80_columns(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of each command, with its options; examples may be longer."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in (name for commands in COMMANDS.values() for name in commands):
        result = command(name, "--help")
        assert (result.status, result.err) == (0, "")
        assert result.out.startswith(f"usage: tailrace {name} [OPTIONS]")
        for line in result.out.splitlines():
            assert len(line) <= 80 or line.startswith("    tailrace ")


def test_without_words_there_is_help(command: Command) -> None:
    assert command().out == command("--help").out


def test_version(command: Command) -> None:
    result = command("--version")
    assert result.status == 0
    assert re.fullmatch(r"tailrace \S.*\n", result.out)
