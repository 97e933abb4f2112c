# SPDX-License-Identifier: Apache-2.0
"""Sweeps: which runs the words mean, and `tailrace sweep` as a user calls it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tailrace.api import sweep
from tailrace.cli.main import main
from tailrace.experiments.plan.axes import Axis, parse_axis
from tailrace.experiments.plan.experiment import make
from tailrace.results.results import RESULTS, open_results
from tailrace.spec import SpecError
from tailrace.study.grids import sweep_grid

BASE = make(
    {
        "scheme": "flowcut:variant=nic",
        "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
        "workload": "permutation:size=16KiB",
        "target": "virtual",
    }
)


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("seed=1..3", Axis("seed", ("1", "2", "3"))),
        ("seed=1,5..6", Axis("seed", ("1", "5", "6"))),
        (
            "scheme=ecmp,flowcut:variant=nic,rtt=3,spray",
            Axis("scheme", ("ecmp", "flowcut:variant=nic,rtt=3", "spray")),
        ),
        ("scheme.rtt=2,3", Axis("scheme.rtt", ("2", "3"))),
    ],
)
def test_axis(text: str, axis: Axis) -> None:
    """Ranges, words with options, and options alone."""
    assert parse_axis(text) == axis


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour=red", "--set colour: unknown key; expected scheme, variant, topology"),
        ("seed.x=1", r"--set seed\.x: unknown key"),
        ("seed=3..1", r"3\.\.1: expected FIRST\.\.LAST"),
        ("seed=1,1", "'1' is given twice"),
    ],
)
def test_bad_axis(text: str, message: str) -> None:
    """One line that says what was expected."""
    with pytest.raises(SpecError, match=message):
        parse_axis(text)


def test_every_combination() -> None:
    """The last axis is the fastest; options go into the words, and the rest of the words stays."""
    axes = [parse_axis("scheme.rtt=2,3"), parse_axis("seed=1..2")]
    tasks = sweep_grid(BASE, axes, "virtual").tasks
    assert [(task.experiment.scheme, task.experiment.seed) for task in tasks] == [
        ("flowcut:variant=nic,rtt=2", 1),
        ("flowcut:variant=nic,rtt=2", 2),
        ("flowcut:variant=nic,rtt=3", 1),
        ("flowcut:variant=nic,rtt=3", 2),
    ]
    assert len({task.out for task in tasks}) == 4


def folders(*axes: Axis) -> list[str]:
    return [str(task.out) for task in sweep_grid(BASE, axes, "virtual").tasks]


def test_every_value_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where two would have one name, or a name no file could have; others keep the name they have."""
    monkeypatch.chdir(tmp_path)
    for name in ("f_a.csv", "f-a.csv", "g.csv"):
        Path(name).write_text("src,dst,bytes,start\nh1,h2,1000,0s\n")
    assert folders(Axis("workload", ("f_a.csv", "g.csv"))) == ["workload=f-a.csv", "workload=g.csv"]
    assert folders(Axis("workload", ("f_a.csv", "f-a.csv", "g.csv"))) == [
        "workload=f-a.csv-bf10389f",
        "workload=f-a.csv-4214b896",
        "workload=g.csv",
    ]
    long = [f"{'x' * 230}{end}.csv" for end in "ab"]
    for name in long:
        Path(name).write_text("src,dst,bytes,start\nh1,h2,1000,0s\n")
    names = folders(Axis("workload", tuple(long)), Axis("seed", ("1",)))
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {len("/seed=1") + 237}


def test_a_sweep_of_files_with_similar_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both results are kept, and found again."""
    monkeypatch.chdir(tmp_path)
    for name, size in (("f_a.csv", 1000), ("f-a.csv", 2000)):
        Path(name).write_text(f"src,dst,bytes,start\nh1,h2,{size},0s\n")
    axes = {"workload": ["f_a.csv", "f-a.csv"]}
    sweep(BASE, axes, out="out")
    progress = io.StringIO()
    sweep(BASE, axes, out="out", progress=progress)
    assert "2 of 2 results were there already" in progress.getvalue()
    assert [result.rows[0].bytes for result in open_results("out").results] == [1000, 2000]


@pytest.mark.parametrize("target", ["nowhere", "../elsewhere"])
def test_results_are_not_written_through_links(tmp_path: Path, target: str) -> None:
    """Neither where the folder of all is a link to nothing, nor where that of one is a link; told before any runs."""
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    if target == "nowhere":
        out.symlink_to(target)
    else:
        out.mkdir()
        (out / "seed=1").symlink_to(target)
    progress = io.StringIO()
    with pytest.raises(SpecError, match="link"):
        sweep(BASE, {"seed": [1]}, out=out, progress=progress)
    assert "1/1" not in progress.getvalue()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_fault_is_a_value() -> None:
    """`none` beside faults."""
    axis = parse_axis("fault=none,link-slow:fraction=0.1,factor=0.5")
    faults = [task.experiment.faults for task in sweep_grid(BASE, [axis], "virtual").tasks]
    assert faults == [(), ("link-slow:fraction=0.1,factor=0.5",)]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["seed=1,x"], "seed: expected a whole number"),
        (["scheme.rtt=0"], "--set scheme.rtt=0: .*rtt must be at least 1"),
        (["scheme.nokey=0"], "unknown key 'nokey'"),
        (["seed=1", "seed=2"], "--set seed: given twice"),
    ],
)
def test_bad_values(axes: list[str], message: str) -> None:
    """They are found before anything runs."""
    with pytest.raises(SpecError, match=message):
        sweep_grid(BASE, [parse_axis(text) for text in axes], "virtual")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder for each run, results.json, a table; a second call runs nothing."""
    path = tmp_path / "it.toml"
    path.write_text(
        'scheme = "ecmp"\ntopology = "leaf-spine:leaves=2,spines=2,hosts=1"\ntarget = "virtual"\n'
        '[scale.small]\nworkload = "permutation:size=16KiB"\n'
    )
    out = tmp_path / "out"
    words = ["sweep", str(path), "--scale", "small", "--set", "seed=1..2", "--set", "scheme=ecmp,spray"]
    assert main([*words, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "spray" in captured.out
    document = json.loads((out / RESULTS).read_text())
    assert document["axes"] == {"seed": [1, 2], "scheme": ["ecmp", "spray"]}
    assert [run["settings"] for run in document["runs"]][1] == {"seed": 1, "scheme": "spray"}
    for run in document["runs"]:
        summary = json.loads((out / run["folder"] / "summary.json").read_text())
        assert summary == run["summary"]
        assert (summary["seed"], summary["scheme"]) == tuple(run["settings"].values())
    assert main([*words, "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == document
    assert "4 of 4 results were there already" in captured.err
