# SPDX-License-Identifier: Apache-2.0
"""Many tasks: in this process, in a pool, on a Dask cluster; the same results everywhere."""

from __future__ import annotations

import io
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.results.result import Result
from tailrace.sim.errors import RunError
from tailrace.spec import SpecError
from tailrace.study import cluster as dask
from tailrace.study import pool
from tailrace.study.pool import Where, run_all
from tailrace.study.progress import Display
from tailrace.study.task import Failed, Task, make_task

WORDS = {
    "scheme": "ecmp",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "workload": "permutation:size=16KiB",
    "target": "virtual",
}


def tasks(count: int = 3) -> list[Task]:
    return [
        make_task(make({**WORDS, "seed": seed}), "virtual", label=f"seed {seed}", out=Path(f"seed={seed}"))
        for seed in range(count)
    ]


def display() -> tuple[Display, io.StringIO]:
    out = io.StringIO()
    return Display(out), out


def hashes(ends) -> dict[str, str]:
    assert all(isinstance(end, Result) for end in ends.values())
    return {key: end.summary.trace_sha256 for key, end in ends.items()}


def test_pool_gives_what_one_process_gives(tmp_path: Path) -> None:
    """Trace for trace, and every folder is there."""
    shown, _ = display()
    here = run_all(tasks(), tmp_path / "a", Where(), shown)
    there = run_all(tasks(), tmp_path / "b", Where(workers=2), shown)
    assert hashes(here) == hashes(there)
    assert len(here) == 3
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["seed=0", "seed=1", "seed=2"]


@pytest.mark.parametrize("where", [Where(), Where(workers=2)])
def test_a_failure_does_not_stop_the_others(tmp_path: Path, where: Where) -> None:
    """The failed task says why; nothing is written for it."""
    good, other = tasks(2)
    bad = replace(other, key="0" * 64)
    shown, out = display()
    ends = run_all([bad, good], tmp_path, where, shown)
    assert isinstance(ends[good.key], Result)
    failed = ends[bad.key]
    assert isinstance(failed, Failed)
    assert "another version" in failed.reason
    assert "warning: seed 1" in out.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == ["seed=0"]


def die(_task: Task) -> Result:
    """Stands in for a worker that the kernel kills."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_a_worker_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of waiting for ever."""
    monkeypatch.setattr(pool, "guarded", die)
    shown, _ = display()
    ends = run_all(tasks(2), tmp_path, Where(workers=2), shown)
    assert set(ends.values()) == {Failed("a worker process has died, perhaps for lack of memory")}
    assert len(ends) == 2


def die_once(task: Task) -> Result | Failed:
    """Stands in for a worker that is killed while it is at one of the tasks, the first time."""
    mark = Path(os.environ["TAILRACE_TEST_MARK"])
    if task.label == "seed 1" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_guarded(task)


run_guarded = pool.guarded


def test_a_worker_that_dies_costs_one_repetition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tasks come to their end, and it is said which ran again."""
    monkeypatch.setattr(pool, "guarded", die_once)
    monkeypatch.setenv("TAILRACE_TEST_MARK", str(tmp_path / "mark"))
    shown, out = display()
    ends = run_all(tasks(3), tmp_path / "out", Where(workers=2), shown)
    assert len(hashes(ends)) == 3
    assert "run again: " in out.getvalue()
    assert "seed 1" in out.getvalue()


def test_damaged_results_are_told_and_run_again(tmp_path: Path) -> None:
    shown, out = display()
    run_all(tasks(2), tmp_path, Where(), shown)
    table = tmp_path / "seed=1" / "flows.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    assert len(hashes(run_all(tasks(2), tmp_path, Where(), shown))) == 2
    assert "run again: " in out.getvalue()
    assert "flows.parquet" in out.getvalue()
    assert "1 of 2 results were there already" in out.getvalue()


def test_real_time_targets_run_alone(tmp_path: Path) -> None:
    """Two at a time would be slower than the machine that they emulate."""
    shown, _ = display()
    real = [make_task(make(WORDS), "native", label=str(n), out=Path(str(n))) for n in range(2)]
    with pytest.raises(SpecError, match="use target virtual"):
        run_all(real, tmp_path, Where(workers=2), shown)


def test_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, not a trace of a scheduler's library."""
    pytest.importorskip("distributed", reason="Dask is an extra")
    monkeypatch.setattr(dask, "CONNECT_S", 1)
    shown, _ = display()
    with pytest.raises(SpecError, match=r"cluster tcp://127\.0\.0\.1:9: no Dask scheduler answers"):
        run_all(tasks(1), tmp_path, Where(cluster="tcp://127.0.0.1:9"), shown)


@pytest.mark.parametrize(
    "address", ["nonsense", "tcp://here", "ftp://here:1", "tls://127.0.0.1:9", "tcp://:x"]
)
def test_cluster_whose_address_is_none(tmp_path: Path, address: str) -> None:
    """One line at once: a client of such an address would hang at its end."""
    pytest.importorskip("distributed", reason="Dask is an extra")
    shown, _ = display()
    with pytest.raises(SpecError, match=rf"cluster {address}: expected HOST:PORT or tcp://HOST:PORT"):
        run_all(tasks(1), tmp_path, Where(cluster=address), shown)


def test_one_run_for_tasks_that_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures share runs; every folder has the result, also of those that did not run."""
    ran: list[str] = []

    def noted(task: Task, *report):
        ran.append(task.key)
        return run_guarded(task, *report)

    monkeypatch.setattr(pool, "guarded", noted)
    shown, _ = display()
    first, second = (replace(tasks(1)[0], out=Path(name)) for name in ("a", "b"))
    assert run_all([first, second], tmp_path, Where(), shown).keys() == {first.key}
    assert ran == [first.key]
    summaries = [(tmp_path / name / "summary.json").read_bytes() for name in ("a", "b")]
    assert summaries[0] == summaries[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_cluster(tmp_path: Path) -> None:
    """Worker processes of a real cluster give the same traces; a failure comes back as one."""
    distributed = pytest.importorskip("distributed", reason="Dask is an extra")
    shown, _ = display()
    bad = replace(tasks(4)[3], key="0" * 64)
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster:
        where = Where(cluster=cluster.scheduler_address)
        there = run_all([*tasks(), bad], tmp_path / "a", where, shown)
    failed = there.pop(bad.key)
    assert isinstance(failed, Failed)
    assert hashes(there) == hashes(run_all(tasks(), tmp_path / "b", Where(), shown))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said that nobody works, and after a while the runs have failed."""
    distributed = pytest.importorskip("distributed", reason="Dask is an extra")
    monkeypatch.setattr(dask, "NO_WORKER_S", 1.0)
    monkeypatch.setattr(dask, "LOOK_S", 0.2)
    shown, text = display()
    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster:
        where = Where(cluster=cluster.scheduler_address)
        with pytest.raises(RunError, match=r"no worker for 1 s; 2 runs are left"):
            run_all(tasks(2), tmp_path, where, shown)
    assert "there is no worker; waiting 1 s for one" in text.getvalue()
