# SPDX-License-Identifier: Apache-2.0
"""The commands that summaries and pages print run the same again."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.plan.command import checked, run_command
from tailrace.experiments.plan.experiment import KEYS, make
from tailrace.experiments.plan.experiment_file import read_option_string
from tailrace.sim.errors import RunError
from tailrace.spec import SpecError, plugins
from tailrace.study.grid import Grid
from tests.long import times

runs = importlib.import_module("tailrace.api.run")

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
SCHEMES = (
    "ecmp",
    "spray",
    "letflow:gap=50us",
    "ecmp:hf2t=99,train=100",
    "flowcut:variant=full,left=3",
    "flowcut:variant=nic",
    "rlb:variant=letflow,gap=50us",
    "hermes",
    "mp-rdma",
    "spritz:variant=scout",
    "minimal",
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "scheme": st.sampled_from(SCHEMES),
    "topology": st.sampled_from((TOPOLOGY, "fat-tree:k=4", "dragonfly:p=1,a=2,h=1")),
    "workload": st.sampled_from(
        ("permutation:size=16KiB", "random:flows=4,size=5KiB", "incast:degree=2,size=9KiB")
    ),
    "flows": st.integers(1, 9),
    "target": st.just("virtual"),
    "seed": st.sampled_from((3, "1..3", "7,1..2", [9, 4])),
    "fault": st.lists(
        st.sampled_from(("link-slow:fraction=0.1,factor=0.25", "drop:rate=0.01,where=core", "none")),
        max_size=2,
    ),
    "time_scale": st.sampled_from((1, 1.5, 1e3)),
    "transport": st.sampled_from(("gbn", "sr", "dctcp", "dcqcn:clamp=no", "tcp")),
    "window": st.sampled_from(("64KiB", "1.5BDP", "1")),
    "mtu": st.sampled_from(("1KiB", "2KiB", "1000B")),
    "reorder": st.integers(1, 99),
    "pfc": st.sampled_from(("default", "xoff=64KiB,xon=32KiB", "xoff=256KB,buffer=9MB,alpha=1/8")),
    "controller": st.sampled_from(("ideal", "real", "real:latency=2us,interval=30us")),
    "sample": st.sampled_from(("10us", "1500ns")),
    "follow": st.lists(st.integers(1, 4), max_size=2, unique=True),
    "record": st.sampled_from(("events", "packets")),
    "gaps": st.booleans(),
}
SOME = st.fixed_dictionaries(
    {"scheme": VALUES["scheme"], "target": VALUES["target"]},
    optional={key: value for key, value in VALUES.items() if key not in ("scheme", "target")},
)
QUIETLY = settings(suppress_health_check=list(HealthCheck), max_examples=times(300, 30))


def test_every_key_is_tried() -> None:
    """A new key has values here; `variant` is an option of the scheme's own words."""
    assert VALUES.keys() == set(KEYS) - {"variant"}


class Planned:
    """What would run: each run as it was written, with its seed; and the command that is printed for it."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.command = ""

    def stop(self, written: Sequence[dict[str, Any]]) -> None:
        self.runs = [repr(sorted(values.items(), key=str)) for values in written]
        raise RunError("it is known what would run")


def planned(call: Callable[[], object]) -> Planned:
    """What a call of the command line or of Python would run, without running it."""
    seen = Planned()

    def studied(grid: Grid, *_more: Any, **_keywords: Any) -> None:
        seen.command = grid.command
        seen.stop([task.experiment.written for task in grid.tasks])

    def ran(task: Any, *_more: Any, **_keywords: Any) -> None:
        seen.command = run_command(task.experiment)
        seen.stop([task.experiment.written])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "run_plan", ran)
        patch.setattr(runs, "run_grid", studied)
        try:
            status = call()
        except RunError:
            return seen
        except SpecError:
            status = 2
    if status != 1:
        assume(False)
    return seen


def check(call: Callable[[], object], folder: Path) -> None:
    """The command that is printed for what a call runs makes the same runs."""
    before = planned(call)
    assert before.runs and before.command
    assert checked(before.command) == before.command
    words = shlex.split(before.command)
    after = planned(lambda: main([*words[1:], "--out", str(folder)]))
    assert after.runs == before.runs
    assert after.command == before.command


@QUIETLY
@given(values=SOME)
def test_a_run(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """With several seeds, too."""
    folder = tmp_path_factory.getbasetemp() / "none"
    several = len(made(values).seeds) > 1
    check(lambda: (tailrace.repeat if several else tailrace.run)(**values), folder)
    experiment = made(values)
    assert read_option_string(experiment.option_string).written == experiment.written


def made(values: dict[str, Any]) -> Any:
    try:
        return make(values)
    except SpecError:
        assume(False)


@QUIETLY
@given(values=SOME, schemes=st.lists(VALUES["scheme"], min_size=1, max_size=4, unique=True))
def test_a_comparison(
    values: dict[str, Any], schemes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also of schemes that keep a transport of their own, or cannot run on the network."""
    made(values)
    values = {key: value for key, value in values.items() if key != "scheme"}
    check(lambda: tailrace.compare(schemes=schemes, **values), tmp_path_factory.getbasetemp() / "none")


AXES = {
    "scheme": ["ecmp", "flowcut:variant=full,left=3", "minimal"],
    "scheme.seed": ["1", "2"],
    "scheme.queue": ["0", "64KiB"],
    "workload.size": ["9KiB", "16KiB"],
    "topology.delay": ["1us", "2us"],
    "topology": [TOPOLOGY, "fat-tree:k=4"],
    "fault": ["none", "link-slow:fraction=0.1,factor=0.25"],
    "seed": ["1", "5"],
    "transport": ["sr", "dcqcn:clamp=no"],
    "pfc": ["default", "xoff=64KiB,xon=32KiB"],
    "mtu": ["1KiB", "2KiB"],
    "window": ["64KiB", "1.5BDP"],
    "gaps": ["true", "false"],
    "controller": ["ideal", "real:latency=2us,interval=30us"],
    "follow": ["1", "2"],
}


@QUIETLY
@given(values=SOME, keys=st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=3, unique=True))
def test_a_sweep(values: dict[str, Any], keys: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Over keys, and over options of a key's words."""
    made(values)
    axes = {key: AXES[key] for key in keys}
    if "pfc" in keys:  # its words have no name, so a list of them says something else
        assert planned(lambda: tailrace.sweep(axes=axes, **values)).command == ""
    else:
        check(lambda: tailrace.sweep(axes=axes, **values), tmp_path_factory.getbasetemp() / "none")


@pytest.mark.parametrize("name", ["common", "spritz", "rlb", "hf2t", "basic"])
def test_presets(name: str, tmp_path: Path) -> None:
    """What a file says stands in the command; labels follow from the schemes' words there."""
    scale = "small" if name == "common" else None
    check(lambda: tailrace.compare(name, target="virtual", scale=scale), tmp_path / "out")


# ---- commands of pages, run ----


def commands(folder: Path) -> list[str]:
    """The commands on the page of a folder of results."""
    assert main(["report", str(folder)]) == 0
    blocks = re.findall(r"<pre><code>(.*?)</code></pre>", (folder / "report.html").read_text(), re.DOTALL)
    return [line for block in blocks for line in unescape(block).splitlines()]


def traces(folder: Path) -> list[str]:
    return sorted(json.loads(path.read_text())["trace_sha256"] for path in folder.rglob("summary.json"))


def check_runs(words: Sequence[str], tmp_path: Path) -> None:
    """What the page of some runs prints gives the same traces."""
    first = tmp_path / "first"
    assert main([*words, "--out", str(first)]) == 0
    lines = commands(first)
    assert lines
    for number, line in enumerate(lines):
        assert main([*shlex.split(line)[1:], "--out", str(tmp_path / "again" / str(number))]) == 0
    assert traces(tmp_path / "again") == traces(first)


SMALL = ["--target", "virtual", "--topology", TOPOLOGY, "--workload", "permutation:size=16KiB"]
SLOW = ["--fault", "link-slow:link=leaf1-spine1,factor=0.25"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--scheme", "letflow", "--reorder", "7", "--transport", "sr", "--controller", "real"],
        ["run", "--scheme", "ecmp", "--seed", "4..5", *SLOW],
        shlex.split("compare --scheme ecmp,flowcut:variant=full,mp-rdma --transport dcqcn --pfc default"),
        ["compare", "--scheme", "ecmp", *SLOW, *shlex.split("--sample 10us --follow 2 --gaps --seed 1,3")],
        ["sweep", "--scheme", "flowcut", "--set", "scheme.left=0,9", "--mtu", "2KiB", "--seed", "1..2"],
    ],
    ids=" ".join,
)
def test_a_page(words: list[str], tmp_path: Path) -> None:
    check_runs([*words, *SMALL], tmp_path)


def test_where_no_list_says_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose name has a comma cannot be among several values: each run has a command of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("one,two.csv", "-three.csv"):
        (tmp_path / name).write_text("src,dst,bytes,start\nh1,h3,20000,0us\n")
    axes = {"workload": ["one,two.csv", "-three.csv"]}
    tailrace.sweep(axes=axes, scheme="ecmp", target="virtual", topology=TOPOLOGY, out="first")
    lines = commands(Path("first"))
    assert len(lines) == 2
    for number, line in enumerate(lines):
        assert main([*shlex.split(line)[1:], "--out", f"again/{number}"]) == 0
    assert traces(Path("again")) == traces(Path("first"))


def test_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of plug-ins are named, so that their schemes and workloads are known."""
    monkeypatch.setattr(plugins, "_loaded", {tmp_path / "mine.py": "0" * 64})
    experiment = make({"scheme": "ecmp"})
    words = experiment.option_string
    assert words.startswith(f"--plugin {tmp_path / 'mine.py'} --scheme ecmp")
    assert read_option_string(words).written == experiment.written
    assert checked(run_command(experiment)) == run_command(experiment)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "rm -rf /",
        "tailrace",
        "tailrace report --out x",
        "tailrace run --out /etc",
        "tailrace run --scheme",
        "tailrace run ecmp",
        "tailrace compare --scheme ecmp; rm -rf /",
        "tailrace compare 'ecmp",
        "sudo tailrace run --scheme ecmp",
    ],
)
def test_commands_of_files_are_checked(command: str) -> None:
    """A file of results may say anything; only options of experiments are shown."""
    assert checked(command) == ""
