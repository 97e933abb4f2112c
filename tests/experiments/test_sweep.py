# SPDX-License-Identifier: Apache-2.0
"""Sweeps: which runs the words mean, and `tailrace sweep` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.run.sweep import Axis, parse_axis, points
from tailrace.words import SpecError

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
        ("seed", "expected KEY=VALUE,VALUE"),
        ("seed=", "expected KEY=VALUE,VALUE"),
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
    found = [
        (point.task.experiment.scheme, point.task.experiment.seed) for point in points(BASE, axes, "virtual")
    ]
    assert found == [
        ("flowcut:variant=nic,rtt=2", 1),
        ("flowcut:variant=nic,rtt=2", 2),
        ("flowcut:variant=nic,rtt=3", 1),
        ("flowcut:variant=nic,rtt=3", 2),
    ]
    places = {point.task.out for point in points(BASE, axes, "virtual")}
    assert len(places) == 4


def test_no_fault_is_a_value() -> None:
    """`none` beside faults."""
    axis = parse_axis("fault=none,link-slow:fraction=0.1,factor=0.5")
    faults = [point.task.experiment.faults for point in points(BASE, [axis], "virtual")]
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
        points(BASE, [parse_axis(text) for text in axes], "virtual")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder for each run, sweep.json, a table; a second call runs nothing."""
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
    document = json.loads((out / "sweep.json").read_text())
    assert document["axes"] == {"seed": ["1", "2"], "scheme": ["ecmp", "spray"]}
    assert [point["settings"] for point in document["points"]][1] == {"seed": "1", "scheme": "spray"}
    for point in document["points"]:
        summary = json.loads((out / point["folder"] / "summary.json").read_text())
        assert summary == point["summary"]
        assert (str(summary["seed"]), summary["scheme"]) == tuple(point["settings"].values())
    assert main([*words, "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == document
    assert "4 of 4 results were there already" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "--set", "seed=1"], "one must say which scheme runs"),
        (["sweep"], "--set: missing"),
        (["sweep", "--set", "scheme=ecmp", "--scale", "small"], "--scale needs an experiment file"),
        (["run", "it.toml", "--scale", "huge"], "--scale: 'huge' is not known; expected small, paper"),
        (["run", "it.toml", "--scale", "paper"], "key 'scale.paper': missing"),
    ],
)
def test_bad_calls(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line on standard error, exit 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.toml").write_text('scheme = "ecmp"\n[scale.small]\nseed = 2\n')
    assert main(words) == 2
    told = capsys.readouterr().err
    assert message in told.splitlines()[-1]
    assert "Traceback" not in told
