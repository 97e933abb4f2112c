# SPDX-License-Identifier: Apache-2.0
"""A scheme from outside: one folder with Python and compiled P4, copied to where nothing of the project is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.extend.conftest import ROOT, Run

EXAMPLE = ROOT / "examples" / "two_choices"
TRAFFIC = ("--workload", "alltoall:size=32KiB,window=4", "--target", "virtual")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example, elsewhere."""
    copied = tmp_path / "elsewhere"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def test_it_runs_and_is_compared(folder: Path, tailrace: Run, tmp_path: Path) -> None:
    """Its program carries every flow; it takes keys as ours do, and stands beside ours in one table."""
    done = tailrace(
        "compare", "--plugin", folder, "--scheme", "letflow,two-choices:gap=2us", *TRAFFIC, "--out", "out"
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    both = {path.parent.name: json.loads(path.read_text("utf-8")) for path in tmp_path.rglob("summary.json")}
    two_choices = next(document for document in both.values() if document["scheme"].startswith("two-choices"))
    other = next(document for document in both.values() if document["scheme"].startswith("letflow"))
    assert two_choices["completed"] == two_choices["flows"] == other["flows"] > 0
    assert two_choices["p4_sha256"] != other["p4_sha256"]
    assert two_choices["trace_sha256"] != other["trace_sha256"]


def test_workers_have_it_too(folder: Path, tailrace: Run, tmp_path: Path) -> None:
    """Processes of a sweep load it by themselves."""
    (tmp_path / "one.toml").write_text(
        f'scheme = "two-choices"\ntarget = "virtual"\nworkload = "{TRAFFIC[1]}"\n', "utf-8"
    )
    words = ("sweep", "one.toml", "--set", "scheme.gap=1us,50us", "--workers", "2", "--out", "out")
    done = tailrace(*words, TAILRACE_PLUGINS=str(folder))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert len(list(tmp_path.rglob("summary.json"))) == 2


def test_it_is_listed_with_its_keys(folder: Path, tailrace: Run) -> None:
    done = tailrace("schemes", "two-choices", "--plugin", folder)
    assert done.returncode == 0, done.stderr
    assert "pause that begins a new flowlet" in done.stdout
    refused = tailrace("run", "--plugin", folder, "--scheme", "two-choices:gap=0", *TRAFFIC)
    assert refused.returncode == 2
    assert "gap must be" in refused.stderr


def test_what_is_missing_is_said_in_a_line(folder: Path, tailrace: Run) -> None:
    """A program that was not compiled, and one of a name that is taken."""
    (folder / "build" / "two_choices.json").unlink()
    done = tailrace("run", "--plugin", folder, "--scheme", "two-choices", *TRAFFIC)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "tailrace: program two_choices: " in done.stderr.splitlines()[-1]
    (folder / "build" / "ecmp.json").write_text("{}", "utf-8")
    done = tailrace("run", "--plugin", folder, "--scheme", "ecmp", *TRAFFIC)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "tailrace: program ecmp: it is both in " in done.stderr.splitlines()[-1]
