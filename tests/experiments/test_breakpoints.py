# SPDX-License-Identifier: Apache-2.0
"""Runs in virtual time that stop, are looked into by those who look into any fabric, and go on as if they had not."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.api.stops import parse_stops
from tailrace.cli.errors import FailedError
from tailrace.cli.inspect.shell import find_python
from tailrace.cli.main import main
from tailrace.controller import runfile
from tailrace.emulation.target import Machine, choose
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.flows.observation import SenderObservation
from tailrace.hosts.nic.nic import Nic
from tailrace.results.result import Result
from tailrace.results.summary import OF_THE_RUN_ITSELF
from tailrace.sim.pause import Lines, let_inspect
from tailrace.sim.run import Breakpoints, PausedRun, VirtualBackend
from tailrace.study.task import run

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
WORKLOAD = "permutation:size=64KiB,peers=remote"
WORDS = ("--target", "virtual", "--topology", TOPOLOGY, "--workload", WORKLOAD)
SWITCHES = {"leaf1", "leaf2", "spine1", "spine2"}
READY = "press Enter here to resume"
LONG_S = 60.0
Halt = Callable[[PausedRun], None]


@pytest.fixture(autouse=True)
def _separate_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the run file goes, for this process and its children."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def measure(stops: Breakpoints | None = None, **values: Any) -> Result:
    words = {"scheme": "flowcut:buckets=16", "topology": TOPOLOGY, "workload": WORKLOAD}
    planned = plan(make({**words, **values}), "virtual")
    return run(planned, VirtualBackend(breakpoints=stops), lambda _progress: None, label="it")


def same(result: Result, other: Result) -> bool:
    """Whether two runs came out the same, but for how long they took."""
    timeless = dict.fromkeys(OF_THE_RUN_ITSELF, 0.0)
    ours, theirs = (msgspec.structs.replace(side.summary, **timeless) for side in (result, other))
    return (result.rows, ours) == (other.rows, theirs) and isinstance(ours.trace_sha256, str)


# ---- stopping ----


@settings(max_examples=12)
@given(
    scheme=st.sampled_from(["ecmp", "spray", "flowcut:variant=full", "flowcut:variant=nic"]),
    times_ns=st.lists(st.integers(0, 120_000), min_size=1, max_size=4, unique=True),
    fault=st.sampled_from(
        [[], ["link-slow:link=leaf1-spine1,factor=0.1,at=20us"], ["link-down:link=leaf2-spine2,at=30us"]]
    ),
)
def test_a_stop_is_at_its_time_and_changes_nothing(
    scheme: str, times_ns: list[int], fault: list[str]
) -> None:
    """Every byte is accounted for at each of them."""
    stood_ps = []

    def halt(standing: PausedRun) -> None:
        stood_ps.append(standing.network.now_ps)
        assert standing.network.account().balanced

    stopped = measure(Breakpoints(tuple(times_ns), halt), scheme=scheme, fault=fault)
    assert same(stopped, measure(scheme=scheme, fault=fault))
    end_ns = stopped.summary.virtual_ns
    assert isinstance(end_ns, int)
    assert stood_ps == [time_ns * 1000 for time_ns in sorted(times_ns) if time_ns <= end_ns]


def queued(paused: PausedRun) -> int:
    """The most bytes that any port has in its queues, by the switches' own accounts."""
    topology, switches = paused.network.topology, paused.network.switches
    return max(
        sum(paused.network.switch(item.name).queue_depth(port, priority)[1] for priority in range(8))
        for item in switches
        for port in topology.ports_of(item.name)
    )


def drained(paused: PausedRun) -> int:
    """The most drains of a flow at its source."""
    nics = (paused.network.nic(host.name) for host in paused.network.hosts)
    seen = itertools.chain.from_iterable(nic.records() for nic in nics if isinstance(nic, Nic))
    return max((each.drains for each in seen if isinstance(each, SenderObservation)), default=0)


@settings(max_examples=12)
@given(
    scheme=st.sampled_from(["spray", "flowcut:variant=full", "flowcut:variant=nic"]),
    queue=st.integers(0, 40_000),
    drains=st.integers(1, 3),
)
def test_a_condition_stops_a_run_once_when_it_holds(scheme: str, queue: int, drains: int) -> None:
    """And changes nothing. What holds is seen at one of the checks, four in each base RTT."""
    quantities = {f"queue>{queue}": queued, f"drain>={drains}": drained}
    limits = {f"queue>{queue}": queue + 1, f"drain>={drains}": drains}
    stopped_by = []

    def halt(paused: PausedRun) -> None:
        text = paused.reason.partition(" (")[0]
        stopped_by.append(text)
        assert quantities[text](paused) >= limits[text]

    _, conditions = parse_stops([*quantities, *quantities])
    stopped = measure(Breakpoints((), halt, tuple(conditions)), scheme=scheme)
    assert same(stopped, measure(scheme=scheme))
    assert len(set(stopped_by)) == len(stopped_by)
    most_drains = max(row.drains for row in stopped.rows)
    assert (f"drain>={drains}" in stopped_by) == (most_drains >= drains)


# ---- looking ----

COMMANDS = ("tables", "flows", "queues", "registers", "counters", "paths", "groups", "diff")
ARGUMENTS = {"paths": ("h1", "h3"), "registers": ("leaf1",)}


@dataclass(frozen=True)
class Shown:
    """What a command said."""

    status: int
    rows: list[dict[str, Any]]
    stderr: str


def inspecting(
    capsys: pytest.CaptureFixture[str], commands: Sequence[str], shown: list[dict[str, Shown]]
) -> Halt:
    """A stop in which commands are called, as from another terminal; what they show."""

    def wait() -> None:
        by_command = {}
        for command in commands:
            capsys.readouterr()
            status = main([command, *ARGUMENTS.get(command, ()), "-o", "json"])
            captured = capsys.readouterr()
            by_command[command] = Shown(status, json.loads(captured.out or "[]"), captured.err)
        shown.append(by_command)

    return let_inspect(lambda _text: None, wait)


def test_commands_look_into_a_stopped_run(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, at two stops, one of which is before any traffic; the run comes out as without."""
    shown: list[dict[str, Shown]] = []
    stopped = measure(Breakpoints((0, 30_000), inspecting(capsys, COMMANDS, shown)))
    before, later = shown
    for by_command in shown:
        assert {name: (output.status, output.stderr) for name, output in by_command.items()} == dict.fromkeys(
            COMMANDS, (0, "")
        )
        assert {row["switch"] for row in by_command["tables"].rows} == SWITCHES
        assert {row["switch"] for row in by_command["paths"].rows} == SWITCHES
        assert by_command["diff"].rows == []
    assert before["flows"].rows == []
    assert {row["switch"] for row in later["flows"].rows} >= {"leaf1", "leaf2"}
    counted = {row["counter"] for row in later["counters"].rows} - {
        row["counter"] for row in before["counters"].rows
    }
    assert "flowcut_created" in counted and later["registers"].rows != []
    assert any(row["egress_queue_bytes"] for row in later["queues"].rows)
    assert same(stopped, measure())
    assert not list(runfile.folder().iterdir())


def test_links_that_are_dead_belong_to_what_is_intended(capsys: pytest.CaptureFixture[str]) -> None:
    """As soon as the controller has learnt of them, and as long."""
    shown: list[dict[str, Shown]] = []
    measure(
        Breakpoints((100_000, 300_000), inspecting(capsys, ["diff", "tables"], shown)),
        fault=["link-down:link=leaf1-spine1,at=20us,until=200us"],
        workload="permutation:size=1MiB,peers=remote",
    )
    dead, mended = shown
    assert [by_command["diff"].rows for by_command in shown] == [[], []]
    assert dead["tables"].rows != mended["tables"].rows


SHELL = """
import sys
import p4runtime_sh.shell as sh
for device_id in sys.argv[2:]:
    sh.setup(device_id=int(device_id), grpc_addr=sys.argv[1], election_id=(0, 1), verbose=False)
    print(device_id, len(list(sh.TableEntry("ipv4_routes").read())))
    sh.teardown()
"""


def test_p4runtime_shell_looks_into_a_stopped_run() -> None:
    """At every switch, as primary, as `tailrace shell` does it."""
    try:
        python = find_python()
    except FailedError as error:
        pytest.skip(str(error))
    ended: list[subprocess.CompletedProcess[str]] = []
    ids: list[str] = []

    def wait() -> None:
        switches = runfile.read().switches.values()
        (address,) = {switch.address for switch in switches}
        ids.extend(str(switch.device_id) for switch in switches)
        command = [str(python), "-c", SHELL, address, *ids]
        ended.append(subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG_S))

    stopped = measure(Breakpoints((20_000,), let_inspect(lambda _text: None, wait)))
    (process,) = ended
    lines = [line.split() for line in process.stdout.splitlines() if line[:1].isdigit()]
    assert [line[0] for line in lines] == ids, process.stderr
    assert all(int(count) > 0 for _, count in lines)
    assert same(stopped, measure())


# ---- going on ----


def test_lines_are_waited_for_one_by_one() -> None:
    """However they come; the end of the input ends all waiting, a closed file too."""
    reader, writer = os.pipe()
    lines = Lines(reader)
    os.write(writer, b"one\ntwo\nthr")
    lines.wait()
    lines.wait()
    waiting = threading.Thread(target=lines.wait)
    waiting.start()
    os.write(writer, b"ee\n")
    waiting.join(LONG_S)
    assert not waiting.is_alive()
    os.close(writer)
    lines.wait()
    os.close(reader)
    lines.wait()


@contextmanager
def started(folder: Path, *words: str, stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tailrace.cli.main",
        "run",
        "--scheme",
        "ecmp",
        *WORDS,
        "--out",
        str(folder / "out"),
        *words,
    ]
    with subprocess.Popen(
        command,
        text=True,
        cwd=Path(__file__).parents[2],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until_it_stands(process: subprocess.Popen[str]) -> str:
    """Reads what the command tells up to and with the line that says how to go on."""
    assert process.stderr is not None
    text = ""
    for line in process.stderr:
        text += line
        if READY in line:
            return text
    raise AssertionError(text)


def test_a_line_lets_the_run_go_on(tmp_path: Path) -> None:
    """One for each stop; the run file is there meanwhile. The result says nothing of stops."""
    with started(tmp_path, "--stop-at", "20us", "--stop-at", "10us", "--json") as process:
        for time in ("10us", "20us"):
            assert f"stopped at {time}; 4 switches" in until_it_stands(process)
            assert set(runfile.read().switches) == SWITCHES
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        out, _ = process.communicate(timeout=LONG_S)
    assert process.returncode == 0
    assert json.loads(out)["trace_sha256"] == measure(scheme="ecmp").summary.trace_sha256
    assert not list(runfile.folder().iterdir())


def test_without_input_the_run_goes_on_by_itself(tmp_path: Path) -> None:
    """Where nobody can say anything. A stop that would come after the end is told."""
    words = ("--stop-at", "10us", "--stop-at", "1s", "--stop-at", "queue>1GB")
    with started(tmp_path, *words, stdin=subprocess.DEVNULL) as process:
        _, stderr = process.communicate(timeout=LONG_S)
    assert process.returncode == 0
    assert "resuming the run" in stderr
    assert "warning: the run ended before it could stop at 1s" in stderr
    assert "warning: the run ended before it could stop at queue>1GB" in stderr


def test_control_c_ends_a_stopped_run(tmp_path: Path) -> None:
    """One line, exit status 130, no file left."""
    with started(tmp_path, "--stop-at", "10us") as process:
        until_it_stands(process)
        process.send_signal(signal.SIGINT)
        out, stderr = process.communicate(timeout=LONG_S)
    assert (process.returncode, out) == (130, "")
    assert stderr.splitlines()[-1] == "tailrace: interrupted; no results were written"
    assert "Traceback" not in stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stop-at", "5us", "--target", "bmv2"), "needs target virtual"),
        (("--stop-at", "drain", "--ranks", "2"), "a run with conditions must have one rank"),
        (("--ranks", "2", "--target", "native"), "ranks: target native does not support them"),
    ],
)
def test_what_only_virtual_time_has(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """One line, exit status 2. Words that mean nothing anywhere: tests/bad_input/lines.py."""
    machine = Machine(has_bmv2=True, no_mininet="")
    monkeypatch.setattr("tailrace.study.prepare.choose", lambda wanted: choose(wanted, lambda: machine))
    status = main(["run", "--scheme", "ecmp", *WORDS, *words, "--out", str(tmp_path / "out")])
    assert (status, message in capsys.readouterr().err) == (2, True)
