# SPDX-License-Identifier: Apache-2.0
"""Figures depend on nothing that a user has configured for matplotlib, and none costs results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from tailrace import api
from tailrace.report.collect import as_results
from tailrace.report.figures.figure import draw

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240
WORDS = (
    *("compare", "--target", "virtual", "--scheme", "ecmp,letflow", "--workload", "permutation:size=1KiB"),
    *("--topology", "leaf-spine:leaves=2,spines=2,hosts=1", "--out", "out"),
)
LARGE = b"font.size: 40\ntext.usetex: True\nnonsense: 1\naxes.prop_cycle: zzz\n"


def compared(folder: Path, **environment: str) -> tuple[bytes, list[str]]:
    """The figure of a comparison that is made in a folder, and the lines of standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", *WORDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "out" / "figure.svg").read_bytes(), done.stderr.splitlines()


def test_commands_draw_alone(tmp_path: Path) -> None:
    """Whatever files and variables say: the same figure, and no lines of matplotlib's own."""
    plain, configured = tmp_path / "plain", tmp_path / "configured"
    plain.mkdir()
    configured.mkdir()
    (configured / "matplotlibrc").write_bytes(LARGE + b"# \xff\n")
    rc = tmp_path / "rc"
    rc.write_bytes(LARGE)
    expected, lines = compared(plain)
    environment = {"MPLBACKEND": "nonsense", "MATPLOTLIBRC": str(rc), "MPLCONFIGDIR": str(rc / "none")}
    actual, messages = compared(configured, SOURCE_DATE_EPOCH="x", **environment)
    assert actual == expected
    assert len(messages) == len(lines)


def test_a_process_that_has_configured_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook: the same figure, and its configuration stays."""
    keys = {"scheme": "ecmp", "workload": "permutation:size=1KiB", "target": "virtual"}
    results = as_results(api.run(topology="leaf-spine:leaves=2,spines=2,hosts=1", **keys))  # type: ignore[arg-type]
    first, second = tmp_path / "one.svg", tmp_path / "two.svg"
    draw(results, [first])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "x")
    with mpl.rc_context({"text.usetex": True, "font.size": 40, "lines.linewidth": 9}):
        draw(results, [second])
        assert mpl.rcParams["font.size"] == 40
    assert os.environ["SOURCE_DATE_EPOCH"] == "x"
    assert first.read_bytes() == second.read_bytes()


def test_a_figure_that_fails_costs_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Results are there before it is drawn, it is told in a line, and no older figure stays beside them."""
    from tailrace.cli.main import main

    out = tmp_path / "out"
    (out / "figure.svg").mkdir(parents=True)
    (out / "figure.png").touch()
    assert main([*WORDS[:-1], str(out)]) == 0
    lines = capfd.readouterr().err.splitlines()
    warnings = [line for line in lines if "no figure" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: ")
    assert (out / "results.json").is_file()
    assert (out / "clean" / "ecmp" / "summary.json").is_file()
    assert not (out / "figure.png").exists()
    assert not any(line.startswith("figure: ") for line in lines)
