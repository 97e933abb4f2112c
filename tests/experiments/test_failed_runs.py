# SPDX-License-Identifier: Apache-2.0
"""What one run cannot tell, or its failure, costs nothing of the runs beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome, Report
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.switch.core import StateError

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
AWAY = "switch-restart:switch=spine1,for=10ms,at=10us"
WORDS: dict[str, Any] = {
    "topology": TOPOLOGY,
    "workload": "permutation:size=32KiB",
    "target": "virtual",
    "fault": AWAY,
}


def options(values: dict[str, Any] = WORDS) -> list[str]:
    return [word for key, value in values.items() for word in (f"--{key}", value)]


@pytest.mark.parametrize(
    "more",
    [
        {"scheme": "ecmp"},
        {"scheme": "flowcut", "sample": "10us", "follow": [1], "pfc": "default", "gaps": True},
        {"scheme": "letflow", "controller": "real"},
        {"scheme": "rlb"},
    ],
    ids=lambda more: more["scheme"],
)
def test_a_switch_that_is_away_at_the_end_has_no_counters(more: dict[str, Any]) -> None:
    """All flows have finished, so there is a result; counters of the switch that has no program are absent."""
    planned = plan(make(WORDS | more), "virtual")
    outcome = VirtualBackend().run(planned.job, lambda _progress: None)
    assert outcome.counters.keys() == {"leaf1", "leaf2", "spine2"}
    assert all(record.end_ns is not None for record in outcome.records)
    assert outcome.virtual_ns is not None and outcome.virtual_ns < 10_000_000


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, *schemes: str) -> None:
    """Has runs of some schemes fail when their network is about to run."""
    run = VirtualBackend.run

    def fail(self: VirtualBackend, job: Job, report: Report) -> Outcome:
        if job.scheme.name in schemes:
            raise error
        return run(self, job, report)

    monkeypatch.setattr(VirtualBackend, "run", fail)


ERRORS = [
    StateError("not_found", "no program is loaded"),
    SpecError("plug-in mine.py: line 3: ValueError"),
    OSError(28, "No space left on device"),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_comparison_keeps_the_other_runs(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run that failed is named, and the exit status is 1."""
    failing(monkeypatch, error, "spray")
    words = ["compare", "--scheme", "ecmp,spray,letflow", *options(WORDS | {"fault": "none"})]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    reason = str(error) or type(error).__name__
    assert f"tailrace: clean spray: {reason}" in capsys.readouterr().err.splitlines()
    runs = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert [run["settings"]["scheme"] for run in runs] == ["ecmp", "spray", "letflow"]
    assert [run.get("failed") for run in runs] == [None, reason, None]
    assert ["summary" in run for run in runs] == [True, False, True]
    assert (tmp_path / "out" / "clean" / "letflow" / "summary.json").exists()


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("sweep", "spray seed 1..3: no program is loaded"),
        ("compare", "clean spray seed 1..3: no program is loaded"),
    ],
)
def test_seeds_that_fail_alike_are_one_failure(
    command: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last line has the reason once, with all seeds."""
    failing(monkeypatch, ERRORS[0], "spray")
    words = [command, "--scheme", "ecmp,spray", *options(WORDS | {"fault": "none", "seed": "1..3"})]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"tailrace: {line}"


@pytest.mark.parametrize(("error", "status"), [(ERRORS[0], 1), (ERRORS[1], 2)])
def test_where_every_run_fails(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no scheme can do is bad input, as it is for a single run; nothing is written then."""
    failing(monkeypatch, error, "ecmp", "spray")
    words = ["compare", "--scheme", "ecmp,spray", *options(WORDS | {"fault": "none"})]
    assert main([*words, "--out", str(tmp_path / "out")]) == status
    assert (tmp_path / "out").exists() == (status == 1)
