# SPDX-License-Identifier: Apache-2.0
"""One experiment as a task that any process can run, and the folder of its result.

A task's key is a hash of everything that determines its result: the experiment (spec strings, and the
contents of files that they name) and the code (code_hash.py, the compiled P4 program, plug-ins). A folder
whose summary has this key contains the result of the task, so an interrupted sweep resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import structs

from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.identity import run_id_of, short_hash
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.experiments.plan.spec_list import case_name
from tailrace.p4rt import programs
from tailrace.results.atomic_folder import atomic_folder
from tailrace.results.result import SUMMARY, Result, read_result, read_summary, write_result
from tailrace.results.run_result import result_of
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.sim.errors import RunError
from tailrace.sim.outcome import Backend, Progress, Report
from tailrace.sim.run import VirtualBackend
from tailrace.spec import Error, SpecError, plugins
from tailrace.spec.errors import FileError
from tailrace.study.code_hash import code_sha256
from tailrace.study.machine import Usage
from tailrace.topology import Topology

_FORMAT = 3
"""Version of results; increased when results change in a way that the code hash does not cover."""

_CACHE_ENTRIES = 16


@dataclass(frozen=True, slots=True)
class Task:
    """An experiment that is ready to run; `make_task` creates and checks it.

    experiment: what to run; its `target` is never auto
    label: the scheme's label in tables
    out: the folder for the result, relative to the folder of all results
    key: the hash of everything that determines the result
    name: the run's name in progress messages
    """

    experiment: Experiment
    label: str
    out: Path
    key: str
    name: str

    def __reduce__(self) -> tuple[object, ...]:
        # fields may contain objects of plug-ins, so another process loads plug-ins before it unpickles fields
        return _unpickled, (pickle.dumps([getattr(self, item.name) for item in fields(self)]),)

    @property
    def case(self) -> str:
        """The name of the experiment's faults in tables: `clean`, or the names of the faults."""
        return case_name(self.experiment.faults)


def _unpickled(parts: bytes) -> Task:
    plugins.load()
    return Task(*pickle.loads(parts))  # noqa: S301 - pickled by our own process


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed task; `bad_input`: whether the task's specs are the cause."""

    reason: str
    bad_input: bool = False


def make_task(experiment: Experiment, target: str, *, label: str, out: Path, name: str = "") -> Task:
    """The task of an experiment on a target (bmv2, native or virtual); `name` defaults to the label.

    Raises:
        SpecError: the specs cannot be used.
        ControllerError: the scheme's compiled P4 program does not exist.
    """
    experiment = structs.replace(experiment, target=target)
    return Task(experiment, label, out, key_of(experiment), name or label)


def key_of(experiment: Experiment) -> str:
    """The hash of everything that determines the result: 64 hexadecimal digits.

    Raises:
        SpecError: a file named in the specs cannot be read, or the scheme cannot run on the network.
        ControllerError: the scheme's compiled P4 program does not exist.
    """
    return hashlib.sha256((run_id_of(experiment) + code_of(experiment)).encode()).hexdigest()


def code_of(experiment: Experiment) -> str:
    """A hash of the code of an experiment: the code hash of stored runs (code_hash.py), the compiled program
    of its switches, and the plug-ins. It has 16 hexadecimal digits.

    Raises:
        SpecError: the scheme cannot run on the network.
        ControllerError: the scheme's compiled P4 program does not exist.
    """
    program = _program_sha256(experiment.parsed.scheme, experiment.parsed.topology)
    return short_hash(msgspec.json.encode((_FORMAT, code_sha256(), program, plugins.digest())))


@lru_cache(maxsize=_CACHE_ENTRIES)
def _program_sha256(scheme: SchemeConfig, topology: Topology) -> str:
    """The hash of the compiled program that a scheme's switches run in a topology."""
    return programs.load(resolve(scheme, topology).program).sha256


def run(
    planned: Plan, backend: Backend, report: Report, *, label: str, pcap_dir: Path | None = None
) -> Result:
    """Run a plan to its end.

    Args:
        planned: the network, traffic and faults to run.
        backend: the simulator or the Mininet network that runs it.
        report: called with the progress.
        label: short name of the scheme.
        pcap_dir: folder for captures of every link; None: no captures.

    Raises:
        SpecError: the target does not support the experiment, or code of a plug-in (a metric, a NIC) failed.
        RunError: the run failed, or did not report the flows of the plan.
    """
    usage = Usage()
    # errors that a plug-in causes get its file and line
    with plugins.blamed(label, *_parts(planned)):
        outcome = backend.run(structs.replace(planned.job, pcap_dir=pcap_dir), report)
        if outcome.pfc is not None and outcome.pfc.storms:
            report(Progress("traffic", note=outcome.pfc.storm_note))
        return result_of(planned, outcome, label, usage.taken() if planned.target == "virtual" else {})


def _parts(planned: Plan) -> tuple[object, ...]:
    """The parts of a run that a plug-in may have defined."""
    parsed = planned.experiment.parsed
    traffic = () if parsed.workload is None else (parsed.workload.pattern,)
    return planned.job.scheme, *(fault.kind for fault in parsed.faults), *traffic


def run_task(task: Task, report: Report = lambda _progress: None, pcap_dir: Path | None = None) -> Result:
    """Run a task to its end in this process. Writes no files except captures in `pcap_dir`, if given.

    Raises:
        SpecError: specs contradict each other, or the target does not support them.
        RunError: the run failed, or the code or a file has changed since the task was made.
    """
    if key_of(task.experiment) != task.key:
        raise RunError(
            "Tailrace, a P4 program or a file has another version here than where the task was made"
        )
    planned = plan(task.experiment, task.experiment.target)
    backend = backend_of(task.experiment.target)
    result = run(planned, backend, report, label=task.label, pcap_dir=pcap_dir)
    return replace(result, summary=msgspec.structs.replace(result.summary, task=task.key))


def attempt(run: Callable[[], Result]) -> Result | Failed:
    """The result of a run, or the reason of its failure: a failed run does not stop other runs."""
    try:
        return run()
    except SpecError as error:
        return Failed(str(error), bad_input=True)
    except (Error, OSError, MemoryError) as error:
        return Failed(str(error) or type(error).__name__)


def backend_of(target: str) -> Backend:
    """The backend that runs jobs on a target."""
    if target == "virtual":
        return VirtualBackend()
    from tailrace.emulation.mininet import (
        MininetBackend,  # imported late: runs in virtual time do not need it
    )

    return MininetBackend()


def finished(task: Task, root: Path, damaged: list[FileError] | None = None) -> Result | None:
    """The result of a task from an earlier run; None if the task's folder below `root` does not contain it.

    The error of an unreadable result is appended to `damaged`.
    """
    folder = root / task.out
    if not (folder / SUMMARY).exists():
        return None
    try:
        if read_summary(folder / SUMMARY).task != task.key:
            return None
        return read_result(folder, case=task.case, label=task.label)
    except FileError as error:
        if damaged is not None:
            damaged.append(error)
        return None


def write_task_result(task: Task, result: Result, root: Path) -> None:
    """Write a result to its task's folder below `root` atomically.

    Raises:
        SpecError: the result cannot be written.
    """
    with atomic_folder(root / task.out) as folder:
        write_result(result, folder)
