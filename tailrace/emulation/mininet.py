# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in real time by the harness mininet/run_fabric.py: it gets a job file and reports JSON lines."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from tailrace.cbuild.artifacts import MININET
from tailrace.emulation.applied import not_applied
from tailrace.hosts.flows.flow import FlowRecord
from tailrace.hosts.frames.host import HostFrames
from tailrace.hosts.measured import Gaps, Learned
from tailrace.p4rt.counters import dropped
from tailrace.p4rt.events import event_of
from tailrace.sim.child import environment
from tailrace.sim.errors import RunError
from tailrace.sim.job import Job, check_real_time, write_job
from tailrace.sim.outcome import Outcome, Progress, Report
from tailrace.sim.pfc import pfc_seen
from tailrace.spec import SpecError

SCRIPT = MININET / "run_fabric.py"
PROMPT = "--prompt"
"""The option with which the harness shows Mininet's prompt. Its optional value is the descriptor of a socket,
over which the harness sends a byte after each run of flows, and then waits for a byte in return.
"""

RESULT = "RESULT.json"

_BAD_INPUT = 2
_MESSAGES = "harness.log"
_MOST_MESSAGE_BYTES = 1 << 16
_STOP_SIGNALS = ((signal.SIGINT, 20.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
"""The signals that end the harness, in order, and how long to wait after each, in s."""


class HarnessError(RunError):
    """The harness failed, and left logs."""


class _Overload(msgspec.Struct):
    reasons: tuple[str, ...] = ()


class _Applied(msgspec.Struct):
    """Whether links had their delays; `changed`: how the user had changed links."""

    delays: bool = True
    changed: tuple[str, ...] = ()


class _Pfc(msgspec.Struct):
    """The PFC counts of each switch, and the duration of the traffic.

    `in_program`: the P4 program implements PFC, so its drops include the packets lost despite PFC.
    """

    switches: dict[str, dict[str, Any]]
    traffic_ns: int
    in_program: bool = False


class _Report(msgspec.Struct):
    """The keys of the harness's RESULT.json that are used here."""

    flows: tuple[FlowRecord, ...]
    wall_s: float
    switches: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    overloaded: _Overload = msgspec.field(default_factory=_Overload)
    applied: _Applied = msgspec.field(default_factory=_Applied)
    p4_sha256: str | None = None
    pfc: _Pfc | None = None
    events: tuple[dict[str, Any], ...] = ()
    gaps: tuple[tuple[int, int], ...] | None = None
    learned: tuple[Learned, ...] = ()
    frames: dict[str, HostFrames] = msgspec.field(default_factory=dict)


class _Line(msgspec.Struct):
    """A line of the harness's output: progress, or an event, of which only the text is used here."""

    phase: str = ""
    event: str = ""
    text: str = ""
    done: int = 0
    flows: int = 0


class MininetBackend:
    """Runs jobs in Mininet, one at a time."""

    def __init__(self, script: Path = SCRIPT) -> None:
        """`script`: the harness; tests use other scripts."""
        self._script = script

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end. The harness has ended when this returns or raises.

        Raises:
            SpecError: the harness rejects the job, as it cannot run it.
            RunError: the run failed.
        """
        check_real_time(job)
        with _folder() as folder:
            # in a separate session, so that the terminal's Ctrl-C reaches this process only, which then stops
            # the harness; its messages go to a log, as the terminal shows a progress bar
            with (folder / _MESSAGES).open("wb") as messages:
                process = subprocess.Popen(
                    self._command(job, folder),
                    env=environment(),
                    stdout=subprocess.PIPE,
                    stderr=messages,
                    text=True,
                    start_new_session=True,
                )
            try:
                _follow(process, report)
                status = process.wait()
            finally:
                _stop(process)
            _check(status, folder)
            outcome = _outcome(folder / RESULT, job)
            done = sum(record.end_ns is not None for record in outcome.records)
            report(Progress("done", done, len(job.flows)))
            return outcome

    def prompt(self, job: Job, show: Callable[[Outcome], object] = lambda _outcome: None) -> None:
        """Bring the fabric up with Mininet's prompt on this terminal, until the user leaves the prompt.

        Args:
            job: the network, and the flows that the prompt's command `traffic` runs.
            show: called after each run of the flows, while the prompt waits.

        Raises:
            SpecError: the harness rejects the job, as it cannot run it.
            RunError: the fabric could not be brought up.
        """
        check_real_time(job)
        with _folder() as folder:
            # the harness shares the terminal and gets the user's Ctrl-C itself; this process ignores it, by a
            # handler, as the harness would inherit SIG_IGN
            before = signal.signal(signal.SIGINT, _ignore_signal)
            results, harness_end = socket.socketpair()
            try:
                with results:
                    with harness_end:
                        descriptor = harness_end.fileno()
                        process = subprocess.Popen(
                            [*self._command(job, folder), PROMPT, str(descriptor)],
                            env=environment(),
                            text=True,
                            pass_fds=(descriptor,),
                        )
                    try:
                        # a byte after each run of flows, acknowledged by another; recv returns b"" when the
                        # harness ends
                        while results.recv(1):
                            show(_outcome(folder / RESULT, job))
                            results.sendall(b".")
                        status = process.wait()
                    finally:
                        _stop(process)
            finally:
                signal.signal(signal.SIGINT, before)
            _check(status, folder)

    def _command(self, job: Job, folder: Path) -> list[str]:
        """The harness's command line; writes the job to `folder`, where the harness puts the result, too."""
        path = folder / "JOB.json"
        write_job(job, path)
        return [sys.executable, str(self._script), str(path)]


@contextmanager
def _folder() -> Iterator[Path]:
    """A new folder for a run's job, result and logs; it is kept only if the harness failed and left logs."""
    folder = Path(tempfile.mkdtemp(prefix="tailrace-"))
    try:
        yield folder
    except HarnessError:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _ignore_signal(_signum: int, _frame: FrameType | None) -> None:
    """A signal handler that does nothing."""


def _follow(process: subprocess.Popen[str], report: Report) -> None:
    """Reports the harness's progress until it closes its output; ignores lines that are not JSON."""
    assert process.stdout is not None
    for text in process.stdout:
        try:
            line = msgspec.json.decode(text, type=_Line)
        except msgspec.DecodeError:
            continue
        if line.phase:
            report(Progress(line.phase, line.done, line.flows))
        elif line.event:
            report(Progress("traffic", note=line.text))


def _stop(process: subprocess.Popen[str]) -> None:
    """Stops the harness; SIGKILL is last, so that the harness can remove switches and namespaces."""
    for signal_number, seconds in _STOP_SIGNALS:
        if process.poll() is not None:
            break
        process.send_signal(signal_number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    if process.stdout is not None:
        process.stdout.close()


def _check(status: int, folder: Path) -> None:
    """Raises an error if the harness failed, with the last line of its messages as the reason."""
    if status == 0:
        return
    messages = folder / _MESSAGES
    text = last_line(messages).removeprefix(f"{SCRIPT.stem}: ")
    why = f": {text}" if text else ""
    if status == _BAD_INPUT:
        raise SpecError(f"the Mininet harness refused the experiment{why}")
    how = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
    text = f"the Mininet harness {how}{why}"
    logs = folder / "logs"
    if logs.is_dir() and any(logs.iterdir()):
        if messages.exists():
            messages.replace(logs / _MESSAGES)
        raise HarnessError(f"{text}; its logs are in {logs}")
    raise RunError(text)


def last_line(log: Path) -> str:
    """The last line with text in a log file; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _MOST_MESSAGE_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "")


def _outcome(path: Path, job: Job) -> Outcome:
    """What the harness measured.

    Raises:
        RunError: it has left no valid RESULT.json.
    """
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"the Mininet harness left no result: {error}") from error
    pfc = None
    if report.pfc is not None and job.pfc is not None:
        lossless_priorities = job.pfc.lossless(job.nic.data_priority)
        pfc = pfc_seen(list(report.pfc.switches.values()), lossless_priorities, report.pfc.traffic_ns)
    lost = 0 if pfc is None or report.pfc is None or report.pfc.in_program else pfc.lost
    return Outcome(
        records=report.flows,
        wall_s=report.wall_s,
        counters=report.switches,
        dropped=dropped(report.switches.values()) + lost if report.switches else None,
        overload_reasons=report.overloaded.reasons,
        p4_sha256=report.p4_sha256,
        delays=report.applied.delays,
        not_applied=(
            *job.scheme.notes,
            *not_applied(job, delays=report.applied.delays),
            *(f"link {text}" for text in report.applied.changed),
        ),
        events=tuple(map(event_of, report.events)),
        pfc=pfc,
        gaps=None if report.gaps is None else Gaps.merged([report.gaps]),
        learned=report.learned,
        frames=report.frames,
    )
