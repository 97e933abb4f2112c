"""The closed-loop benchmark: generator, headers, rows of the table. No speed is judged."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checks.bench import closed_loop, routes
from checks.bench.__main__ import main
from checks.bench.closed_loop import LoadCase, LoadFigures
from checks.bench.noise import Noise, Round
from checks.bench.result import BenchError

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Net


@pytest.mark.parametrize("case", [LoadCase(64, 1, 1), LoadCase(64, 1000, 32), LoadCase(1500, 7, 300)])
def test_the_generator_counts_what_comes_through(net: Net, case: LoadCase) -> None:
    net.veth("p0", "h0")
    figures = closed_loop.Generator(0.01, 0.05, closed_loop.headers).measure("h0", "p0", case)
    assert figures.packets_per_s > 0
    assert 0 < figures.p50_ns <= figures.p99_ns
    assert figures.lost == 0


def test_the_generator_says_when_nothing_comes_through(net: Net) -> None:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    with pytest.raises(BenchError, match="no packet came through from h0 to h1"):
        closed_loop.Generator(0.01, 0.05, closed_loop.headers).measure("h0", "h1", LoadCase(64, 1, 1))
    with pytest.raises(BenchError, match="load generator: No such device"):
        closed_loop.Generator(0.01, 0.05, closed_loop.headers).measure("nosuch0", "h1", LoadCase(64, 1, 1))


def test_headers_are_valid_and_flows_differ() -> None:
    text = closed_loop.headers(1500, 64)
    flows = [text[i : i + 42] for i in range(0, len(text), 42)]
    assert len(set(flows)) == 1500
    for head in flows:
        total = sum(struct.unpack("!10H", head[14:34]))
        assert (total & 0xFFFF) + (total >> 16) in (0xFFFF, 0x1FFFE)
        assert struct.unpack("!H", head[16:18]) == (50,)
        assert 0 <= (struct.unpack("!I", head[30:34])[0] - routes.network(0)) >> 8 < 1000


@pytest.mark.parametrize("installed", [True, False])
def test_the_native_switch_is_compared(installed: bool) -> None:
    """Medians of each figure by itself; ratios to a thread that only forwards, and to BMv2 if it was measured."""
    figures = {
        "limit": [(4.0, 2e3, 9e3, 0.0)] * 3,
        "native": [(1.0, 30e3, 5e3, 0.0), (3.0, 10e3, 7e3, 0.0), (2.0, 20e3, 6e3, 9.0)],
        "bmv2": [(0.5, 40e3, 6e3, 0.0)] * 3,
    }
    rounds = {
        name: [Round(LoadFigures(*each), Noise(0, 0, 0)) for each in of_target]
        for name, of_target in figures.items()
        if installed or name != "bmv2"
    }
    rows = {row.name: row for row in closed_loop.results(LoadCase(64, 1, 32), rounds)}
    assert (rows["native"].value, rows["native"].runs) == (2.0, (1.0, 3.0, 2.0))
    assert rows["native"].note == "latency 20.0 us, p99 6.0 us; 0 lost"
    assert (rows["native / limit, packets"].value, rows["native / limit, packets"].reaches_goal()) == (
        0.5,
        False,
    )
    ratios = {name.rpartition(" ")[2]: row.value for name, row in rows.items() if "/ bmv2" in name}
    assert ratios == ({"packets": 4.0, "p50": 0.5, "p99": 1.0} if installed else {})


def test_the_benchmark_runs(net: Net, tmp_path: Path) -> None:
    """In a namespace of its own, with all targets that are installed."""
    assert main(["--quick", "--only", "closed_loop", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "bench.json").read_text("utf-8"))["results"]
    assert {"wire", "limit", "native"} <= {row["name"] for row in rows}
    assert all(row["value"] > 0 for row in rows)
