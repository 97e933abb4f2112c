# SPDX-License-Identifier: Apache-2.0
"""`tailrace run` and `tailrace compare` as a user calls them, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

from tailrace.cli.main import main

SMALL = ("--topology", "leaf-spine:leaves=2,spines=2,hosts=1", "--workload", "permutation:size=16KiB")
VIRTUAL = ("--target", "virtual", *SMALL)


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two files, a table on standard output, messages on standard error."""
    out = tmp_path / "out"
    status, shown, stderr = call(
        capsys, "run", "--scheme", "flowcut", "--variant", "nic", *VIRTUAL, "--out", str(out)
    )
    assert status == 0
    assert sorted(path.name for path in out.iterdir()) == ["flows.parquet", "summary.json"]
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["scheme"], summary["variant"]) == ("flowcut:variant=nic", "nic")
    assert polars.read_parquet(out / "flows.parquet").height == summary["flows"] == 2
    assert "flowcut" in shown
    assert "target virtual: as requested" in stderr
    assert "target" not in shown.splitlines()[0]


def test_run_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints what summary.json holds, and nothing else, on standard output."""
    out = tmp_path / "out"
    status, shown, _ = call(capsys, "run", "--scheme", "ecmp", *VIRTUAL, "--out", str(out), "--json")
    assert status == 0
    assert json.loads(shown) == json.loads((out / "summary.json").read_text())


def test_run_from_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file says what to run, and options change it."""
    path = tmp_path / "it.toml"
    path.write_text(
        f'scheme = "ecmp"\ntopology = "{SMALL[1]}"\nworkload = "{SMALL[3]}"\ntarget = "virtual"\nseed = 3\n'
    )
    status, shown, _ = call(
        capsys, "run", str(path), "--scheme", "spray", "--json", "--out", str(tmp_path / "out")
    )
    assert status == 0
    summary = json.loads(shown)
    assert (summary["scheme"], summary["seed"], summary["topology"]) == ("spray", 3, SMALL[1])


FLOWCUT = "flowcut:variant=ingress"


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder a case and scheme, results.json, the figure, and one table of all."""
    out = tmp_path / "out"
    fault = ("--fault", "link-slow:fraction=0.01,factor=0.5")
    schemes = ("--scheme", "ecmp,flowcut:variant=ingress,buckets=64")
    status, shown, _ = call(capsys, "compare", *schemes, *VIRTUAL, *fault, "--out", str(out))
    assert status == 0
    document = json.loads((out / "results.json").read_text())
    assert [run["folder"] for run in document["runs"]] == [
        "clean/ecmp", "clean/flowcut-variant-ingress", "link-slow/ecmp", "link-slow/flowcut-variant-ingress",
    ]  # fmt: skip
    for run in document["runs"]:
        assert json.loads((out / run["folder"] / "summary.json").read_text()) == run["summary"]
    assert {path.name for path in out.iterdir()} == {
        "clean", "link-slow", "results.json", "runs.parquet", "table.md", "figure.svg", "figure.png",
    }  # fmt: skip
    for word in ("clean", "link-slow", "ecmp", "flowcut"):
        assert word in shown


def test_flows_that_do_not_finish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results are written all the same, the table marks them, and the exit status is 1."""
    out = tmp_path / "out"
    words = (
        "--target",
        "virtual",
        "--topology",
        "leaf-spine:leaves=2,spines=1,hosts=1",
        "--workload",
        SMALL[3],
    )
    dead = ("--fault", "link-down:link=leaf1-spine1")
    status, shown, stderr = call(capsys, "run", "--scheme", "ecmp", *words, *dead, "--out", str(out))
    assert status == 1
    assert json.loads((out / "summary.json").read_text())["completed"] == 0
    assert "(!)" in shown
    assert "2 of 2 flows did not finish" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--scheme", "ecmp", *VIRTUAL),
        ("run", "--scheme", "ecmp", *VIRTUAL, "--seed", "1..2"),
        ("compare", "--scheme", "ecmp,letflow", *VIRTUAL),
        ("sweep", "--set", "scheme.rtt=2", "--scheme", "flowcut", *VIRTUAL),
    ],
)
@pytest.mark.parametrize("option", ["--columns", "--sort-by"])
def test_a_column_that_is_none_is_told_before_anything_runs(
    words: tuple[str, ...], option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown, stderr = call(capsys, *words, option, "nope", "--out", str(tmp_path / "out"))
    assert (status, shown) == (2, "")
    assert stderr.startswith(f"tailrace: {option}: no column 'nope'; expected ")
    assert stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_columns_that_there_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a table has is asked for without complaint: names as its JSON has them, and short ones."""
    words = (
        "compare",
        "--scheme",
        "ecmp,letflow",
        *VIRTUAL,
        "--seed",
        "1..3",
        "--out",
        str(tmp_path / "out"),
    )
    _, shown, _ = call(capsys, *words, "-o", "csv")
    names = shown.splitlines()[0]
    assert "fct_mean_low" in names
    status, shown, _ = call(capsys, *words, "-o", "csv", "--columns", names, "--sort-by", "fct_mean")
    assert (status, shown.splitlines()[0]) == (0, names)
    sweep = ("sweep", "--set", "seed=1,2", "--scheme", "ecmp", *VIRTUAL, "--out", str(tmp_path / "sweep"))
    status, shown, _ = call(capsys, *sweep, "-o", "csv", "--columns", "seed,fct_p50")
    assert (status, shown.splitlines()[0]) == (0, "seed,fct_p50")
