# SPDX-License-Identifier: Apache-2.0
"""Runs, comparisons and sweeps from Python: the same as those of the command line, and as quiet as they should be."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.cli.main import main
from tailrace.results.result import Result, to_json
from tailrace.results.summary import OF_THE_RUN_ITSELF
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome, Report
from tailrace.sim.run import VirtualBackend
from tailrace.tables.arrow import values_of
from tests.api.conftest import KEYS, TINY
from tests.eventually import eventually
from tests.processes import NOT_IGNORED, children

TIMEOUT_S = 120


def known(result: Result) -> dict[str, Any]:
    """What does not depend on the machine's speed, nor on who ran it."""
    summary: dict[str, Any] = json.loads(to_json(result.summary))
    return {key: value for key, value in summary.items() if key not in OF_THE_RUN_ITSELF | {"task", "nics"}}


def options(*more: str) -> list[str]:
    return [
        *(word for key, value in KEYS.items() for word in (f"--{key}", value)),
        *("--seed", "3", *more),
    ]


def test_a_run_is_the_command_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--scheme", "spray", *options("--out", str(tmp_path / "cli"))]) == 0
    capfd.readouterr()
    result = tailrace.run(TINY, scheme="spray", out=tmp_path / "api")
    assert capfd.readouterr() == ("", "")
    written, other = tailrace.open_result(tmp_path / "api"), tailrace.open_result(str(tmp_path / "cli"))
    assert known(result) == known(written) == known(other)
    assert result.rows == written.rows == other.rows
    assert (written.case, written.label) == (result.case, result.label) == ("clean", "spray")
    assert result.complete
    assert result.problems == ()


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tailrace.run(TINY)
    tailrace.compare(TINY, ["ecmp"])
    tailrace.sweep(TINY, {"scheme": ["ecmp"]})
    assert list(tmp_path.iterdir()) == []


def test_flows_and_figure(tmp_path: Path) -> None:
    result = tailrace.run(TINY)
    values = values_of(result.flows)
    assert values["fct_ns"] == [row.fct_ns for row in result.rows]
    assert values["class"] == [row.flow_class for row in result.rows]
    assert repr(result).startswith("<Result clean, ecmp: 2 of 2 flows, FCT mean 4.8")
    tailrace.figure(result).savefig(tmp_path / "it.png")
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")


def test_progress_where_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    tailrace.run(TINY, progress=file)
    assert "target virtual" in file.getvalue()
    assert "ecmp: 2 of 2 flows" in file.getvalue()
    assert capfd.readouterr() == ("", "")
    tailrace.run(TINY, progress=True)
    assert "ecmp: 2 of 2 flows" in capfd.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_comparison_is_the_command_lines(tmp_path: Path, workers: int) -> None:
    """With faults, and labels of one's own."""
    fault = "link-slow:link=leaf1-spine1,factor=0.5"
    words = ["compare", "--scheme", "ecmp,spray", *options("--fault", fault, "--out", str(tmp_path / "cli"))]
    assert main(words) == 0
    done = tailrace.compare(
        TINY, {"ecmp": "ecmp", "spray": "spray"}, fault=fault, out=tmp_path / "api", workers=workers
    )
    written, other = tailrace.open_results(tmp_path / "api"), tailrace.open_results(tmp_path / "cli")
    for results in (written, other):
        assert list(map(known, results.results)) == list(map(known, done.results))
        assert (results.axes, results.failed) == (done.axes, done.failed)
        assert (results.first, results.left_out) == (done.first, done.left_out) == ("ecmp", ())
        assert results.markdown() == done.markdown()
    assert done.complete
    assert done.axes == {"case": ("clean", "link-slow"), "scheme": ("ecmp", "spray"), "seed": (3,)}
    assert done.result(scheme="spray", case="link-slow").summary.faults == (fault,)
    with pytest.raises(tailrace.SpecError, match="no result of clean drill; expected one run of case=clean"):
        done.result(case="clean", scheme="drill")
    values = values_of(done.flows)
    assert list(values)[:4] == ["case", "scheme", "seed", "id"]
    assert values["scheme"] == ["ecmp"] * 2 + ["spray"] * 2 + ["ecmp"] * 2 + ["spray"] * 2
    assert repr(done) == "<Results of case, scheme: 4 runs>"


def test_schemes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "it.toml"
    text = "".join(f'{key} = "{value}"\n' for key, value in KEYS.items())
    path.write_text(text + '[schemes]\nhashed = "ecmp"\nsprayed = "spray"\n', "utf-8")
    assert tailrace.compare(path).axes["scheme"] == ("hashed", "sprayed")
    assert tailrace.run(path, seed=9).summary.seed == 9
    chosen = tailrace.experiment(path, seed=4)
    assert tailrace.run(chosen, scheme="drill").summary.scheme == "drill"
    assert tailrace.experiment(chosen) == chosen


def test_a_sweep_is_the_command_lines(tmp_path: Path) -> None:
    axes: dict[str, list[object]] = {"scheme": ["ecmp", "letflow"], "workload.size": ["16KiB", 8192]}
    words = [
        *("sweep", "--set", "scheme=ecmp,letflow", "--set", "workload.size=16KiB,8192"),
        *options("--out", str(tmp_path / "cli")),
    ]
    assert main(words) == 0
    done = tailrace.sweep(TINY, axes, out=tmp_path / "api")
    written, other = tailrace.open_results(tmp_path / "api"), tailrace.open_results(tmp_path / "cli")
    for results in (written, other):
        assert list(map(known, results.results)) == list(map(known, done.results))
        assert results.axes == done.axes
        assert [run.settings for run in results.runs] == [run.settings for run in done.runs]
    values = values_of(done.flows)
    assert list(values)[:3] == ["scheme", "workload.size", "id"]
    assert values["bytes"] == [16384, 16384, 8192, 8192] * 2
    assert "| letflow | 8192 |" in done.markdown()
    assert done.complete
    out = io.StringIO()
    tailrace.sweep(TINY, axes, out=tmp_path / "api", progress=out)
    assert "4 of 4 results were there already" in out.getvalue()


def test_a_run_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is told, and written."""

    def fail(self: VirtualBackend, job: Job, report: Report) -> Outcome:
        if job.scheme.name == "spray":
            raise tailrace.RunError("the network is on fire")
        return run(self, job, report)

    run = VirtualBackend.run
    monkeypatch.setattr(VirtualBackend, "run", fail)
    done = tailrace.compare(TINY, ["ecmp", "spray"])
    assert not done.complete
    assert list(map(str, done.failed)) == ["clean spray: the network is on fire"]
    assert [result.label for result in done.results] == ["ecmp"]
    swept = tailrace.sweep(TINY, {"scheme": ["ecmp", "spray"]})
    assert not swept.complete
    assert swept.failed == ("spray: the network is on fire",)
    assert [run.result is None for run in swept.runs] == [False, True]
    with pytest.raises(tailrace.RunError, match="the network is on fire"):
        tailrace.run(TINY, scheme="spray")


def test_flows_that_do_not_finish_are_a_result() -> None:
    result = tailrace.run(TINY, fault="link-down:fraction=1,at=1us")
    assert not result.complete
    assert result.problems == ("link-down, ecmp: 2 of 2 flows did not finish",)
    assert values_of(result.flows)["fct_ns"] == [None, None]


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: tailrace.run(seed=1), "scheme: missing"),
    (lambda: tailrace.run(TINY, scheme="nonsense"), "scheme 'nonsense' is not known"),
    (lambda: tailrace.run(sceme="ecmp"), "sceme: unknown key"),  # type: ignore[call-arg]
    (lambda: tailrace.run(scheme=3), "expected a string or one of .*EcmpConfig.*, found int"),  # type: ignore[arg-type]
    (lambda: tailrace.run("nowhere"), "nowhere: no such file or preset; expected basic"),
    (lambda: tailrace.run("basic", scale="paper"), r"'scale\.paper': missing"),
    (lambda: tailrace.run(TINY, pcap=True), "captures need a folder"),
    (lambda: tailrace.run(TINY, stop_at=["soon"]), "^--stop-at: column 1: no field 'soon'; expected"),
    (lambda: tailrace.run(TINY, stop_at=["5 parsecs"]), "^--stop-at: '5 parsecs'"),
    (lambda: tailrace.run(TINY, stop_at=[5]), r"stop-at: expected a list of times .*, found \[5\]"),  # type: ignore[list-item]
    (lambda: tailrace.run(TINY, stop_at="5us"), "stop-at: expected a list of times"),
    (lambda: tailrace.run(TINY, progress="x"), "progress: expected True, False or a file"),  # type: ignore[arg-type]
    (
        lambda: tailrace.compare(TINY, ["ecmp"], workers=0),
        "workers: expected a whole number of at least 1, found 0",
    ),
    (lambda: tailrace.repeat(TINY, workers="2"), "workers: expected a whole number .*, found '2'"),  # type: ignore[arg-type]
    (lambda: tailrace.sweep(TINY, {"seed": [1]}, workers=1.5), "workers: expected a whole number"),  # type: ignore[arg-type]
    (lambda: tailrace.compare("basic", "ecmp"), "expected a list of schemes, found 'ecmp'"),
    (lambda: tailrace.compare("basic", []), "expected a list of schemes"),
    (lambda: tailrace.compare("basic", ["ecmp", "ecmp"]), "'ecmp' is given twice"),
    (lambda: tailrace.compare("basic", {"../x": "ecmp"}), "expected a label of letters"),
    (lambda: tailrace.compare("basic", ["ecmp"], pcap=True, workers=2, target="virtual"), "one worker only"),
    (lambda: tailrace.sweep("basic"), "expected axes"),
    (lambda: tailrace.sweep("basic", {"colour": [1]}), "colour: unknown key"),
    (lambda: tailrace.sweep("basic", {"seed": []}), "at least one value"),
    (lambda: tailrace.sweep("basic", {"seed": iter(int, 1)}), "runs"),
    (lambda: tailrace.sweep("basic", {"seed": ["x"]}), "seed: expected a whole number"),
    (lambda: tailrace.open_result("/nowhere"), r"summary\.json: No such file"),
    (lambda: tailrace.open_results("/nowhere"), r"results\.json: No such file"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_errors_are_exceptions(
    call: Callable[[], object], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(tailrace.SpecError, match=message) as raised:
        call()
    assert isinstance(raised.value, tailrace.Error)
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_where_an_event_loop_runs() -> None:
    """As in a notebook; with processes, too."""

    async def cell() -> Sequence[bool]:
        result = tailrace.run(TINY)
        return result.complete, tailrace.compare(TINY, ["ecmp", "spray"], workers=2).complete

    assert asyncio.run(cell()) == (True, True)


def test_in_another_thread() -> None:
    results: list[tailrace.Results] = []
    thread = threading.Thread(
        target=lambda: results.append(tailrace.sweep(TINY, {"scheme": ["ecmp", "spray"]}, workers=2))
    )
    thread.start()
    thread.join(TIMEOUT_S)
    assert [done.complete for done in results] == [True]


def script(path: Path, text: str) -> subprocess.Popen[str]:
    path.write_text(text, "utf-8")
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_processes_do_not_run_the_script_again(tmp_path: Path) -> None:
    """One without `if __name__ == "__main__":`."""
    text = f"""
import tailrace
print("begins")
done = tailrace.compare(schemes=["ecmp", "spray"], workers=2, **{KEYS!r})
print(done.complete)
"""
    out, err = script(tmp_path / "it.py", text).communicate(timeout=TIMEOUT_S)
    assert (out, err) == ("begins\nTrue\n", "")


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c(tmp_path: Path, workers: int) -> None:
    """It is a KeyboardInterrupt; no process and no half-written folder is left."""
    text = f"""
import multiprocessing, os, sys
import tailrace

keys = {KEYS!r} | {{"workload": "permutation:size=64MiB", "topology": "leaf-spine:leaves=2,spines=2,hosts=8"}}
print("begins", flush=True)
try:
    tailrace.sweep(axes={{"scheme": ["ecmp", "spray"]}}, workers={workers}, out="out", progress=sys.stdout, **keys)
except KeyboardInterrupt:
    print("stopped", len(multiprocessing.active_children()), os.path.exists("out"))
"""
    path = tmp_path / "it.py"
    path.write_text(text, "utf-8")
    process = subprocess.Popen(
        [*NOT_IGNORED, sys.executable, str(path)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while "ecmp" not in process.stdout.readline() and workers == 1:
        pass
    if workers > 1:
        # until then modules are imported: a KeyboardInterrupt within code that is a text, as dataclasses run it, is
        # the interpreter's exit status also where it was caught
        assert eventually(lambda: len(children(process.pid)) > workers)  # with what tracks their resources
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert out.endswith("stopped 0 False\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it.py"]
