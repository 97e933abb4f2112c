# SPDX-License-Identifier: Apache-2.0
"""What htsim is given, how its output is read, and the table without and with it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from checks.bench.htsim import (
    FULL_SIZE,
    HTSIM,
    SET_UP,
    CommandTimes,
    Size,
    connection_matrix,
    results,
    run_htsim,
)
from checks.bench.noise import Noise, Round
from checks.bench.result import BenchError

SIZE = Size(4, 20_000)


def _rounds(*cpu_s: float) -> list[Round[CommandTimes]]:
    return [Round(CommandTimes(each, 2 * each), Noise(0, 0, 0)) for each in cpu_s]


def test_the_matrix_is_a_permutation_of_all_hosts() -> None:
    """Every host sends once and receives once, never to itself, the bytes that are asked for."""
    head, count, *lines = connection_matrix(SIZE).splitlines()
    assert (head, count) == ("Nodes 16", "Connections 16")
    pairs = [tuple(map(int, line.split()[0].split("->"))) for line in lines]
    assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs) == list(range(16))
    assert all(a != b for a, b in pairs)
    assert [line.split()[1:3] for line in lines] == [["id", str(i)] for i in range(1, 17)]
    assert all(line.endswith("start 0 size 20000") for line in lines)


def test_set_up_and_traffic_stand_apart() -> None:
    """Traffic is a round's whole without its set-up, and ratios are of rounds, not of medians."""
    samples = {
        "ecmp": _rounds(3.0, 4.0, 5.0),
        "ecmp" + SET_UP: _rounds(1.0, 1.0, 2.0),
        HTSIM: _rounds(12.0, 12.0, 30.0),
        HTSIM + SET_UP: _rounds(2.0, 3.0, 3.0),
    }
    rows = {row.name: row for row in results(SIZE, "ecmp", samples)}
    assert rows["ecmp"].value == 4.0
    assert rows["ecmp, set-up"].value == 1.0
    assert rows["ecmp, traffic"].runs == (2.0, 3.0, 3.0)
    beside = rows["ecmp, traffic"].rival
    assert beside is not None
    assert beside.value == 10.0
    assert rows["ecmp, faster"].runs == (4.0, 3.0, 6.0)
    assert rows["ecmp, faster"].reaches_goal() is None
    assert [row.reaches_goal() for row in results(FULL_SIZE, "ecmp", samples) if row.goal is not None] == [
        True
    ]
    assert rows["ecmp, traffic, faster"].runs == (5.0, 3.0, 9.0)


def test_without_htsim_the_column_says_so() -> None:
    """Its figures are not there, and there is no ratio."""
    rows = results(SIZE, "ecmp", {"ecmp": _rounds(2.0), "ecmp" + SET_UP: _rounds(1.0)})
    assert [row.name for row in rows] == ["ecmp" + part for part in ("", ", set-up", ", traffic")]
    for row in rows:
        assert row.rival is not None
        assert (row.rival.name, row.rival.value) == ("htsim_roce is not on PATH", None)


def test_htsim_leaves_its_files_beside_the_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes some where it is started."""
    fake, here = tmp_path / "htsim_roce", tmp_path / "here"
    ended = "echo 'Flow Roce_{0} {0} finished at 1.02e+03 total bytes 20000'"
    lines = "\n".join(ended.format(number) for number in range(SIZE.hosts))
    fake.write_text(f"#!/bin/sh\n: > idmap.txt\n{lines}\n")
    fake.chmod(stat.S_IRWXU)
    here.mkdir()
    monkeypatch.chdir(here)
    (tmp_path / "files").mkdir()
    assert run_htsim(SIZE, str(fake), tmp_path / "files" / "a.cm").wall_s > 0
    assert (tmp_path / "files" / "idmap.txt").exists()
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'no such option' >&2; exit 3", "ended with 3: no such option"),
        ("echo 'Flow Roce_1_2 3 finished at 5.5 total bytes 20000'", "finished 1 of 16 flows"),
    ],
)
def test_an_htsim_that_fails_is_one_line(script: str, said: str, tmp_path: Path) -> None:
    """With what it said."""
    fake = tmp_path / "htsim_roce"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(stat.S_IRWXU)
    with pytest.raises(BenchError, match=said):
        run_htsim(SIZE, str(fake), tmp_path / "a.cm")
