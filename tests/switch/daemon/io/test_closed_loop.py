"""The closed-loop benchmark's own parts: generator, headers, table, what it writes. No speed is judged."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checks.bench import closed_loop, routes
from checks.bench.closed_loop import LoadCase, LoadFigures
from checks.bench.result import BenchError

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Net


@pytest.mark.parametrize("case", [LoadCase(64, 1, 1), LoadCase(64, 1000, 32), LoadCase(1500, 7, 300)])
def test_the_generator_counts_what_comes_through(net: Net, case: LoadCase) -> None:
    net.veth("p0", "h0")
    figures = closed_loop.Generator(0.01, 0.05).measure("h0", "p0", case)
    assert figures.packets_per_s > 0
    assert 0 < figures.p50_ns <= figures.p99_ns
    assert figures.lost == 0


def test_the_generator_says_when_nothing_comes_through(net: Net) -> None:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    with pytest.raises(BenchError, match="no packet came through from h0 to h1"):
        closed_loop.Generator(0.01, 0.05).measure("h0", "h1", LoadCase(64, 1, 1))
    with pytest.raises(BenchError, match="load generator: No such device"):
        closed_loop.Generator(0.01, 0.05).measure("nosuch0", "h1", LoadCase(64, 1, 1))


def test_headers_are_valid_and_flows_differ() -> None:
    text = closed_loop.headers(1500, 64)
    flows = [text[i : i + 42] for i in range(0, len(text), 42)]
    assert len(set(flows)) == 1500
    for head in flows:
        total = sum(struct.unpack("!10H", head[14:34]))
        assert (total & 0xFFFF) + (total >> 16) in (0xFFFF, 0x1FFFE)
        assert struct.unpack("!H", head[16:18]) == (50,)
        assert 0 <= (struct.unpack("!I", head[30:34])[0] - routes.network(0)) >> 8 < 1000


def test_the_median_is_taken_figure_by_figure() -> None:
    runs = [
        LoadFigures(1.0, 30.0, 5.0, 0.0),
        LoadFigures(3.0, 10.0, 7.0, 0.0),
        LoadFigures(2.0, 20.0, 6.0, 9.0),
    ]
    assert closed_loop.median(runs) == LoadFigures(2.0, 20.0, 6.0, 0.0)


def test_only_its_own_part_of_the_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text('{"pipeline": [1], "closed_loop": "old"}')
    closed_loop.save(tmp_path, {"cases": []})
    assert json.loads((tmp_path / "bench.json").read_text()) == {
        "pipeline": [1],
        "closed_loop": {"cases": []},
    }


@pytest.mark.parametrize("words", [["--windows", "1,x"], ["--flows", "0"], ["--seconds", "0"]])
def test_bad_options_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        closed_loop.main(words)
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
