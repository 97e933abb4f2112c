# SPDX-License-Identifier: Apache-2.0
"""A folder from outside adds a topology, a workload and a metric, and nothing of the project changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.sim.child import environment
from tests.extend.conftest import ROOT, Run

RING = """
from dataclasses import dataclass
from typing import Annotated

from tailrace.api.extend import Builder, LinkOptions, SpecError, keys, register_topology


@register_topology("ring", "switches in a ring")
@dataclass(frozen=True, slots=True)
class Ring:
    links: LinkOptions
    switches: Annotated[int, keys.integer("switches", "of the ring", least=3, most=500)] = 4
    hosts: Annotated[int, keys.integer("hosts", "of each switch", least=1)] = 1

    def __post_init__(self) -> None:
        if self.switches == 13:
            raise SpecError("switches must be lucky")

    def build(self, builder: Builder) -> None:
        builder.expect(switches=self.switches, hosts=self.switches * self.hosts, links=self.switches)
        names = [builder.switch(f"s{number}", "leaf", hosts=self.hosts) for number in range(self.switches)]
        for number, name in enumerate(names):
            builder.link(name, names[(number + 1) % len(names)])
"""
ROUND = """
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tailrace.api.extend import Topology, Transfer, keys, register_workload


@register_workload("round", "every host sends to the next one")
@dataclass(frozen=True, slots=True)
class Round:
    size_bytes: Annotated[int, keys.size("size", "of each flow", least=1)] = 65536

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = topology.hosts
        for number, host in enumerate(hosts):
            yield Transfer(host, hosts[(number + 1) % len(hosts)], self.size_bytes, rng.randint(0, 1000))
"""
METRIC = """
from tailrace.api.extend import Result, register_metric


@register_metric("spread", "longest over shortest", "times")
def spread(result: Result) -> float | None:
    times = [row.fct_ns for row in result.rows if row.fct_ns]
    return max(times) / min(times) if times else None
"""
WORDS = ("--topology", "ring:switches=5,rate=10Gbps", "--workload", "round:size=32KiB", "--target", "virtual")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the three files."""
    plugins = tmp_path / "mine"
    plugins.mkdir()
    for name, text in (("ring", RING), ("round", ROUND), ("spread", METRIC)):
        (plugins / f"{name}.py").write_text(text, "utf-8")
    return plugins


def test_run(folder: Path, tailrace: Run, tmp_path: Path) -> None:
    """One run: the topology carries the workload, and the summary has the metric."""
    done = tailrace("run", "--plugin", folder, "--scheme", "ecmp", *WORDS, "--out", "out")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert (summary["flows"], summary["completed"]) == (5, 5)
    assert summary["metrics"]["spread"] >= 1
    assert set(summary["plugins"]) == {"ring.py", "round.py", "spread.py"}
    assert "shortest" in done.stdout


def test_compare_and_its_figure(folder: Path, tailrace: Run, tmp_path: Path) -> None:
    """The metric is a column of the table, a panel of the figure and in results.json; by the variable, too."""
    done = tailrace(
        *("compare", "--scheme", "ecmp,spray", *WORDS, "--out", "out"), TAILRACE_PLUGINS=str(folder)
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["runs"]
    assert [set(run["summary"]["metrics"]) for run in runs] == [{"spread"}] * 2
    assert "longest over shortest (×)" in (tmp_path / "out" / "table.md").read_text("utf-8")
    assert (tmp_path / "out" / "figure.svg").is_file()


def test_sweep_in_workers(folder: Path, tailrace: Run, tmp_path: Path) -> None:
    """Other processes load the same files; a changed file makes what was finished run again."""
    words = ("sweep", "--plugin", folder, *WORDS, "--set", "scheme=ecmp,spray", "--set", "seed=1..2")
    done = tailrace(*words, "--workers", 2, "--out", "out")
    assert done.returncode == 0, done.stderr
    runs = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["runs"]
    assert [run["summary"]["metrics"]["spread"] >= 1 for run in runs] == [True] * 4
    assert "4 of 4 results were there already" in tailrace(*words, "--out", "out").stderr
    (folder / "spread.py").write_text(METRIC.replace("max(times) /", "2 * max(times) /"), "utf-8")
    again = tailrace(*words, "--out", "out")
    assert again.returncode == 0
    assert "there already" not in again.stderr


def test_listings_have_them(folder: Path, forked_tailrace: Run) -> None:
    """With their keys, and in the message about a name that nobody knows."""
    shown = json.loads(forked_tailrace("topologies", "ring", "--plugin", folder, "-o", "json").stdout)
    assert [row["key"] for row in shown][1:] == ["switches", "hosts", "rate", "delay", "latency"]
    unknown = forked_tailrace("topology", "cube", "--plugin", folder)
    assert (unknown.returncode, "slim-fly or FILE.json" in unknown.stderr) == (2, True)
    assert "ring" in unknown.stderr
    assert "5 switches" in forked_tailrace("topology", "ring:switches=5", "--plugin", folder).stdout


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_installed_packages_have_them(form: str, tailrace: Run, tmp_path: Path) -> None:
    """By the entry points of a package, wherever Python finds it."""
    site = tmp_path / "site"
    (site / "rings-1.0.dist-info").mkdir(parents=True)
    (site / "rings.py").write_text(RING, "utf-8")
    (site / "rings-1.0.dist-info" / "METADATA").write_text("Name: rings\nVersion: 1.0\n", "utf-8")
    points = "[tailrace.topologies]\nring = rings\n"
    (site / "rings-1.0.dist-info" / "entry_points.txt").write_text(points, "utf-8")
    place = site if form == "folder" else Path(shutil.make_archive(str(tmp_path / "rings"), "zip", site))
    done = tailrace("topology", "ring:switches=5", PYTHONPATH=f"{ROOT}{os.pathsep}{place}")
    assert "5 switches" in done.stdout
    assert tailrace("topology", "ring:switches=5").returncode == 2


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("bad", "#" * (1 << 20) + "#", "bad.py: larger than 1 MiB"),
        ("bad", RING, "topology 'ring' is registered twice"),
        ("bad", METRIC.replace('"times"', '"furlongs"'), "metric 'spread': unit 'furlongs' is not known"),
        ("bad", METRIC.replace('"spread"', '"fct_p99"'), "metric 'fct_p99' is registered twice"),
        ("bad", ROUND.replace('"round"', '"../x"'), "workload '../x': expected a name of at most 40"),
        ("ring", RING.replace("link(name, names", "link('s99', names"), "ring.py: line 23: KeyError: 's99'"),
        (
            "round",
            ROUND.replace("Transfer(host,", "Transfer('h1',"),
            "round: expected Transfers between hosts",
        ),
        ("round", ROUND.replace("self.size_bytes, rng", "-1, rng"), "workload round: flow 1: bytes is -1"),
        (
            "spread",
            METRIC.replace("max(times) / min(times)", "'x'"),
            "metric spread: expected a finite number",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    folder: Path, forked_tailrace: Run, name: str, text: str, problem: str
) -> None:
    """It names the file and what was expected; nobody sees a traceback."""
    (folder / f"{name}.py").write_text(text, "utf-8")
    done = forked_tailrace("run", "--plugin", folder, "--scheme", "ecmp", *WORDS, "--out", "out")
    lines = [line for line in done.stderr.splitlines() if line.startswith("tailrace: ")]
    assert (done.returncode, len(lines)) == (2, 1), done.stderr
    assert problem in lines[0]
    assert "Traceback" not in done.stderr


def test_mininet_s_processes_get_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness, which is another program, reads the same words."""
    monkeypatch.setenv("TAILRACE_PLUGINS", str(folder))
    code = "from tailrace.topology import parse_topology; print(len(parse_topology('ring:switches=7').links))"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7\n"
