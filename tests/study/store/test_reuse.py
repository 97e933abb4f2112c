# SPDX-License-Identifier: Apache-2.0
"""Stored runs are used, also those of earlier code, and it is said how many those are."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.results.result import SUMMARY, Result, read_summary
from tailrace.study import pool
from tailrace.study import task as tasks
from tailrace.study.pool import Where
from tailrace.study.progress import Display
from tailrace.study.store.reuse import run_stored
from tailrace.study.store.store import Store, table_bytes
from tailrace.study.task import Failed, Task, make_task, run_task

SEEDS = 5
WORDS = {
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "workload": "permutation:size=4KiB",
    "target": "virtual",
}


def hashed(text: str) -> str:
    """A trace hash."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Laboratory:
    """Code that can be changed, and what a change of it does: nothing is run but one task, whose result all
    others get with a trace and numbers of their own.

    code: names the code, and the folder of results where `out` does not
    result: the trace of a run, by scheme and seed and code; a failure where it is empty
    """

    folder: Path
    pattern: Result
    code: str = "first"
    out: str = ""
    ran: list[str] = field(default_factory=list)
    said: io.StringIO = field(default_factory=io.StringIO)

    def trace(self, scheme: str, seed: int) -> str:
        """What a run of the present code leaves."""
        return f"{scheme} {seed}"

    def tasks(self, *schemes: str, seeds: int = SEEDS) -> list[Task]:
        """Tasks by the present code."""
        made = []
        for scheme in schemes:
            for seed in range(seeds):
                experiment = make({**WORDS, "scheme": scheme, "seed": seed})
                task = make_task(experiment, "virtual", label=f"{scheme} {seed}", out=Path("runs"))
                made.append(replace(task, out=Path("runs") / task.key[:16]))
        return made

    def guarded(self, task: Task, *_report) -> Result | Failed:
        """Instead of a run."""
        experiment = task.experiment
        self.ran.append(task.label)
        trace = self.trace(experiment.scheme, experiment.seed)
        if not trace:
            return Failed("it failed")
        summary = msgspec.structs.replace(
            self.pattern.summary,
            scheme=experiment.scheme,
            seed=experiment.seed,
            trace_sha256=hashed(trace),
            task=task.key,
        )
        return replace(self.pattern, summary=summary)

    def run(self, asked: list[Task], **more) -> tuple[dict[str, Result | Failed], str]:
        """What becomes of tasks; `ran` has the labels of those that were run."""
        self.ran.clear()
        store, display = Store(self.folder / "store"), Display(self.said)
        # what an earlier call has left in its own folder is another matter
        out = self.folder / (self.out or self.code)
        return run_stored(asked, store, out, Where(), display, **more)


@pytest.fixture(scope="module")
def pattern() -> Result:
    return run_task(make_task(make({**WORDS, "scheme": "ecmp"}), "virtual", label="it", out=Path("it")))


@pytest.fixture
def lab(tmp_path: Path, pattern: Result, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    laboratory = Laboratory(tmp_path, pattern)
    monkeypatch.setattr(tasks, "code_sha256", lambda: laboratory.code)
    monkeypatch.setattr(pool, "guarded", laboratory.guarded)
    return laboratory


def traces(ends: dict[str, Result | Failed]) -> list[str]:
    """The traces of runs, none of which failed."""
    return [str(end.summary.trace_sha256) for end in ends.values() if isinstance(end, Result)]


def test_runs_of_earlier_code(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are used, and counted; what is missing is run; again runs all, and what has changed is reported."""
    lab.run(lab.tasks("ecmp"))
    assert len(lab.ran) == SEEDS
    lab.code = "second"
    ends, note = lab.run(lab.tasks("ecmp", "spray"))
    assert lab.ran == [task.label for task in lab.tasks("spray")]
    assert note == f"{SEEDS} of {2 * SEEDS} runs were made by earlier code."
    assert f"{SEEDS} stored runs were made by earlier code: --again runs them again\n" in lab.said.getvalue()
    assert traces(ends) == [
        hashed(lab.trace(scheme, seed)) for scheme in ("ecmp", "spray") for seed in range(SEEDS)
    ]
    for task in lab.tasks("ecmp", "spray"):
        assert read_summary(lab.folder / "second" / task.out / SUMMARY).task == task.key
    monkeypatch.setattr(lab, "trace", lambda scheme, seed: f"{scheme} {seed}{' new' * (seed == 3)}")
    _, note = lab.run(lab.tasks("ecmp"), again=True)
    assert (len(lab.ran), note) == (SEEDS, "")
    assert lab.said.getvalue().count("trace: not equal to the stored run of earlier code, now replaced") == 1
    assert lab.run(lab.tasks("ecmp"))[1] == ""
    assert lab.ran == []


def test_a_run_that_fails(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported as in any run, and nothing is stored."""
    monkeypatch.setattr(lab, "trace", lambda _scheme, _seed: "")
    ends, _ = lab.run(lab.tasks("ecmp"))
    assert all(isinstance(end, Failed) for end in ends.values())
    assert not Store(lab.folder / "store").of("ecmp")


def test_a_metric_that_nobody_looked_for(lab: Laboratory) -> None:
    """A page that needs it has the runs made again that were stored before it was known."""
    lab.run(lab.tasks("ecmp", seeds=3))
    store = Store(lab.folder / "store")
    earlier = []
    for record in store.of("ecmp").values():
        metrics = {name: value for name, value in record.metrics.items() if name != "timeouts"}
        earlier.append(msgspec.structs.replace(record, metrics=metrics))
    (store.folder / "ecmp.parquet").write_bytes(table_bytes(earlier))
    lab.run(lab.tasks("ecmp", seeds=3), needs=["fct_mean", "memory"])
    assert lab.ran == []
    lab.out = "elsewhere"
    lab.run(lab.tasks("ecmp", seeds=3), needs=["timeouts_of_incast"])
    assert len(lab.ran) == 3
    lab.out = "still elsewhere"
    lab.run(lab.tasks("ecmp", seeds=3), needs=["timeouts"])
    assert lab.ran == []


def test_what_a_folder_of_results_has_is_not_run(lab: Laboratory) -> None:
    """It goes into the store as if it had been."""
    lab.run(lab.tasks("ecmp", seeds=3))
    (lab.folder / "store" / "ecmp.parquet").unlink()
    lab.run(lab.tasks("ecmp", seeds=3))
    assert lab.ran == []
    assert len(Store(lab.folder / "store").of("ecmp")) == 3


def test_again_runs_everything(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands; a result that the same code did not give before is told, and replaces the other."""
    lab.run(lab.tasks("ecmp", seeds=3))
    lab.run(lab.tasks("ecmp", seeds=3), again=True)
    assert len(lab.ran) == 3
    assert "warning" not in lab.said.getvalue()
    monkeypatch.setattr(lab, "trace", lambda scheme, seed: f"{scheme} {seed} other")
    lab.run(lab.tasks("ecmp", seeds=3), again=True)
    assert lab.said.getvalue().count("not equal to the stored run of the same code, now replaced") == 3
    stored = {each.summary.trace_sha256 for each in Store(lab.folder / "store").of("ecmp").values()}
    assert stored == {hashed(f"ecmp {seed} other") for seed in range(3)}
