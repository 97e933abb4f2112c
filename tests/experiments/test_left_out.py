# SPDX-License-Identifier: Apache-2.0
"""Schemes that cannot run on a network are left out of comparisons, and named with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.p4rt import programs
from tailrace.p4rt.errors import P4ProgramError
from tailrace.spec import SpecError
from tailrace.study.grids import plans

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
SMALL = ["--target", "virtual", "--topology", TOPOLOGY, "--workload", "permutation:size=16KiB"]


@pytest.mark.parametrize(
    ("refused", "more", "reason"),
    [
        ("minimal", [], "scheme minimal: minimal paths need a Dragonfly"),
        ("rlb:pfc=64KiB", ["--pfc", "xoff=128KiB"], "pfc: xoff is 131072 bytes, expected the scheme"),
        ("flowcut:queue=0", [], "age must be given with queue=0"),
    ],
)
def test_the_others_run(
    refused: str, more: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it stands in the list; ratios are against the first that runs. The exit status is 0."""
    out = tmp_path / "out"
    assert main(["compare", "--scheme", f"{refused},ecmp,spray", *SMALL, *more, "--out", str(out)]) == 0
    shown, errors = capsys.readouterr()
    label = refused.partition(":")[0]
    assert f"warning: {label} is left out: " in errors and reason in errors
    assert reason in shown.splitlines()[-1] and "/ecmp" in shown
    document = json.loads((out / "results.json").read_text())
    assert [run["settings"]["scheme"] for run in document["runs"]] == ["ecmp", "spray"]
    assert [entry["scheme"] for entry in document["left_out"]] == [label]
    assert tailrace.open_results(out).left_out[0].reason == document["left_out"][0]["reason"]
    assert main(["report", str(out)]) == 0
    assert f"{label} is left out: " in (out / "report.html").read_text()


def test_python() -> None:
    """Whatever the labels and the faults are; the scheme runs in no case."""
    done = tailrace.compare(
        schemes={"mine": "ecmp", "theirs": "ugal-l"},
        target="virtual",
        topology=TOPOLOGY,
        workload="permutation:size=16KiB",
        fault="link-slow:link=leaf1-spine1,factor=0.5",
    )
    assert [(result.case, result.label) for result in done.results] == [
        ("clean", "mine"),
        ("link-slow", "mine"),
    ]
    assert [entry.scheme for entry in done.left_out] == ["theirs"]
    assert done.complete


def test_schemes_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the labels of the file."""
    file = tmp_path / "it.toml"
    file.write_text('[schemes]\n"by hop" = "valiant"\n"by flow" = "ecmp"\n')
    assert main(["compare", str(file), *SMALL, "--out", str(tmp_path / "out")]) == 0
    assert "warning: by hop is left out: scheme valiant: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--scheme", "minimal"], "scheme minimal: minimal paths"),
        (["--scheme", "minimal,valiant"], "minimal: scheme minimal: minimal paths"),
        (["--scheme", "ecmp,minimal", "--fault", "link-slow:link=leaf1-spine9,factor=0.5"], "spine9"),
        (["--scheme", "ecmp,mniimal"], "did you mean minimal?"),
    ],
)
def test_where_nothing_can_run(
    words: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is bad input, as a name that is none."""
    assert main(["compare", *words, *SMALL, "--out", str(tmp_path / "out")]) == 2
    assert line in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    load = programs.load

    def missing(name: str) -> programs.P4Program:
        if name == "letflow":
            raise P4ProgramError("letflow.json: no such file")
        return load(name)

    monkeypatch.setattr(programs, "load", missing)
    left_out: list = []
    base = make({"scheme": "ecmp", "topology": TOPOLOGY})
    planned = plans(base, ["ecmp", "letflow"], "virtual", left_out=left_out)
    assert [label for label, _ in planned] == ["ecmp"]
    assert [str(each) for each in left_out] == ["letflow is left out: letflow.json: no such file"]
    with pytest.raises(P4ProgramError):
        plans(base, ["letflow"], "virtual")


def test_a_sweep_goes_on(tmp_path: Path) -> None:
    """A combination that cannot run has failed; where none can run it is bad input."""
    out = tmp_path / "out"
    assert main(["sweep", "--scheme", "ecmp,minimal", *SMALL, "--out", str(out)]) == 1
    runs = json.loads((out / "results.json").read_text())["runs"]
    assert "summary" in runs[0] and runs[1]["failed"].startswith("scheme minimal: minimal paths")
    with pytest.raises(SpecError, match="minimal paths"):
        tailrace.sweep(axes={"seed": [1, 2]}, scheme="minimal", topology=TOPOLOGY, target="virtual")


def test_a_list_of_schemes_on_a_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """`tailrace schemes` goes on, too."""
    assert main(["schemes", "--topology", TOPOLOGY]) == 0
    shown = capsys.readouterr().out
    assert "left out: scheme minimal: " in shown and "queues of drill, ecmp" in shown
    assert main(["schemes", "minimal", "--topology", TOPOLOGY]) == 2
