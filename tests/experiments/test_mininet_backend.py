# SPDX-License-Identifier: Apache-2.0
"""How the Mininet harness is spoken to, with scripts in its place."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import msgspec
import pytest

from tailrace.cli import experiment_command
from tailrace.cli.main import main
from tailrace.emulation.mininet import MininetBackend
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import open_result
from tailrace.schemes.registry import resolved_of
from tailrace.sim.errors import RunError
from tailrace.sim.job import Job
from tailrace.sim.outcome import PfcSeen, Progress
from tailrace.spec import SpecError
from tailrace.spec.scale import scaled
from tailrace.study.signals import Interrupted, stoppable
from tailrace.topology import Topology, parse_topology

HEAD = """
import json, os, pathlib, signal, sys, time
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
out = pathlib.Path(sys.argv[1]).parent
def say(**line):
    print(json.dumps(line), flush=True)
"""
DONE = """
records = [
    {"id": f["id"], "src": f["src"], "dst": f["dst"], "bytes": f["bytes"], "start_ns": f["start_ns"],
     "end_ns": f["start_ns"] + 5, "packets": 9, "retransmitted": 0, "out_of_order": 0, "ood_max": 0, "path_changes": 0,
     "drains": 0, "drained_ns": 0}
    for f in job["flows"]
]
result = {"flows": records, "wall_s": 1.5, "switches": {"leaf1": {"port_tx": 7, "drops.NO_ROUTE": 2}},
          "overloaded": {"flag": True, "reasons": ["slow"]}, "something": "else"}
(out / "RESULT.json").write_text(json.dumps(result))
"""


def job_with(**values) -> Job:
    words = {
        "scheme": "ecmp",
        "topology": "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Mbps",
        "target": "native",
    }
    return plan(make({**words, **values}), "native").job


def harness(folder: Path, script: str) -> MininetBackend:
    """The backend, with a script for the harness."""
    path = folder / "harness.py"
    path.write_text(HEAD + script)
    return MininetBackend(path)


def run_script(folder: Path, script: str, report=lambda _progress: None, **values):
    return harness(folder, script).run(job_with(**values), report)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the backend leaves behind can be seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_result_and_progress(tmp_path: Path, temporary_folder: Path) -> None:
    """Progress and events arrive line by line, the result as an outcome, and no file is left."""
    seen: list[Progress] = []
    script = "say(phase='start')\nprint('not json')\nsay(event='x', text='y')\nsay(phase='traffic', done=1, flows=2)\n"
    outcome = run_script(tmp_path, script + DONE, seen.append)
    event = Progress("traffic", note="y")
    assert seen == [Progress("start"), event, Progress("traffic", 1, 2), Progress("done", 2, 2)]
    assert [record.end_ns for record in outcome.records] == [5, 5]
    assert (outcome.wall_s, outcome.dropped, outcome.overload_reasons) == (1.5, 2, ("slow",))
    assert outcome.virtual_ns is None
    assert list(temporary_folder.iterdir()) == []


def test_what_the_harness_could_not_apply(tmp_path: Path) -> None:
    """It says whether links had their delays, and which the user had taken down; the backend says it in words."""
    applied = '"applied": {"delays": False, "changed": ["leaf1-spine1 is down, by command"], "other": 1}, "something"'
    outcome = run_script(tmp_path, DONE.replace('"something"', applied))
    assert not outcome.delays
    assert outcome.not_applied == (
        "delay: links between switches have no delay, since this kernel has no netem",
        "link leaf1-spine1 is down, by command",
    )


PORT = {
    "pfc_sent": 4,
    "pfc_received": 2,
    "pfc_ignored": 1,
    "pfc": {
        "0": {
            "xoff_sent": 5,
            "paused_ns": 250,
            "times_paused": 2,
            "headroom_most_bytes": 70,
            "storms": 1,
            "storm_dropped": 6,
        }
    },
}
SWITCH = {
    "ports": {"1": PORT, "2": {**PORT, "pfc": {}}},
    "buffer": {"shared_most_bytes": 900, "headroom_most_bytes": 90},
    "drops": {"pfc_headroom": 3, "buffer_full": 2, "ingress_drop": 50},
}


def test_pfc_of_the_switches(tmp_path: Path) -> None:
    """The harness is given thresholds; what switches counted comes in few numbers, and what they lost is lost."""
    script = DONE.replace(
        '"something"', f'"pfc": {{"switches": {{"leaf1": {SWITCH}}}, "traffic_ns": 1000}}, "something"'
    )
    check = (
        "assert (job['pfc']['buffer_bytes'], job['pfc']['alpha']) == (99000, '1/8')\n"
        "assert [job['pfc'][name + '_bytes'] for name in ('xoff', 'xon', 'headroom')] == [9, 5, 7]"
    )
    words = "xoff=9,xon=5,headroom=7,buffer=99KB,alpha=0.125"
    outcome = run_script(tmp_path, f"{check}\n{script}", pfc=words)
    assert outcome.pfc == PfcSeen(
        frames=8,
        pauses=5,
        received=4,
        paused_ns=250,
        pause_share=0.125,
        lost=5,
        ignored=2,
        headroom_most_bytes=70,
        times_paused=2,
        storms=1,
        storm_dropped=6,
        buffer_most_bytes=990,
    )
    assert outcome.dropped == 2 + 5


def test_job_as_the_harness_reads_it(tmp_path: Path) -> None:
    """Everything at its time scale, and resolved; faults as objects of their own kind."""
    fault = ["link-slow:link=leaf1-spine1,factor=0.1", "link-down:link=leaf1-spine2,at=1us,until=3us"]
    copy = tmp_path / "copy.json"
    run_script(
        tmp_path,
        f"pathlib.Path({str(copy)!r}).write_text(json.dumps(job))\n" + DONE,
        fault=fault,
        time_scale=10,
    )
    written = json.loads(copy.read_text())
    topology = msgspec.convert(written["topology"], type=Topology)
    assert topology == scaled(parse_topology("leaf-spine:leaves=2,spines=2,hosts=1,rate=10Mbps"), 10)
    assert resolved_of(written["scheme"]).name == "ecmp"
    assert written["time_scale"] == 10
    assert written["nic"]["link_rate_bps"] == 1_000_000
    slow = {"kind": "link-slow", "a": "leaf1", "b": "spine1", "factor": 0.1, "at_ns": 0, "until_ns": None}
    down = {"kind": "link-down", "a": "leaf1", "b": "spine2", "at_ns": 10_000, "until_ns": 30_000}
    assert written["faults"] == [slow, down]
    assert written["pcap_dir"] is None


@pytest.mark.parametrize("fault", ["drop:rate=0.1", "ack-loss:rate=0.1"])
def test_faults_that_only_virtual_time_has(tmp_path: Path, fault: str, temporary_folder: Path) -> None:
    """Refused before anything starts, and no file is left."""
    with pytest.raises(SpecError, match="not supported by switches in Mininet; use --target virtual"):
        run_script(tmp_path, "raise SystemExit('started')", fault=fault)
    assert list(temporary_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("sys.exit(2)", SpecError, "the Mininet harness refused the experiment$"),
        (
            "sys.exit('run_fabric: leaf1: no such thing')",
            RunError,
            "the Mininet harness failed with exit status 1: leaf1: no such thing$",
        ),
        (
            "sys.stderr.write('one\\nrun_fabric: \\x1b[2J too many \\n\\n')\nsys.exit(2)",
            SpecError,
            r"the Mininet harness refused the experiment: \S*\[2J too many$",
        ),
        ("sys.exit(1)", RunError, "the Mininet harness failed with exit status 1$"),
        ("os.kill(os.getpid(), signal.SIGKILL)", RunError, "the Mininet harness was ended by signal 9"),
        ("", RunError, "the Mininet harness left no result"),
        ("(out / 'RESULT.json').write_text('{}')", RunError, "the Mininet harness left no result"),
    ],
)
def test_failures(
    tmp_path: Path,
    script: str,
    kind: type,
    message: str,
    temporary_folder: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each way to fail is one line, which does not land on a progress bar, and no file is left."""
    with pytest.raises(kind, match=message):
        run_script(tmp_path, script)
    assert list(temporary_folder.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_logs_of_a_failure_stay(tmp_path: Path, temporary_folder: Path) -> None:
    """If the harness left logs and failed, the message says where they are."""
    script = (
        "(out / 'logs').mkdir()\n(out / 'logs' / 'leaf1.log').write_text('why')\nsys.exit('leaf1 is gone')"
    )
    with pytest.raises(RunError, match="leaf1 is gone; its logs are in") as caught:
        run_script(tmp_path, script)
    logs = Path(str(caught.value).rpartition(" ")[2])
    assert (logs / "leaf1.log").read_text() == "why"
    assert (logs / "harness.log").read_text() == "leaf1 is gone\n"
    shutil.rmtree(logs.parent)


def test_interrupted_run_takes_the_harness_down(tmp_path: Path, temporary_folder: Path) -> None:
    """A signal to us becomes SIGINT to the harness, which is waited for while it cleans up; nothing is left."""
    cleaned = tmp_path / "cleaned"
    script = f"""
try:
    say(phase="ready")
    signal.pause()
except KeyboardInterrupt:
    pathlib.Path({str(cleaned)!r}).write_text(str(os.getpid()))
    sys.exit(130)
"""

    def stop(progress: Progress) -> None:
        assert progress.phase == "ready"
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted), stoppable():
        run_script(tmp_path, script, stop)
    with pytest.raises(ProcessLookupError):
        os.kill(int(cleaned.read_text()), 0)
    assert list(temporary_folder.iterdir()) == []


def test_prompt(tmp_path: Path, temporary_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The harness has the user's terminal, is told to show its prompt, and nothing is left when the user leaves."""
    script = "print('prompt', '--prompt' in sys.argv, os.getsid(0) == os.getsid(os.getppid()))\n"
    harness(tmp_path, script).prompt(job_with())
    assert capfd.readouterr().out == "prompt True True\n"
    assert list(temporary_folder.iterdir()) == []


TRAFFIC = """
import socket
channel = socket.socket(fileno=int(sys.argv[3]))
for _ in range(2):
    channel.sendall(b".")
    assert channel.recv(1) == b"."
    print("prompt", flush=True)
"""


PROMPTED = (
    "run",
    "--cli",
    "--scheme",
    "ecmp",
    "--topology",
    "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Mbps",
)


def prompted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """`tailrace run --cli`, with a script for the harness; its exit status."""
    monkeypatch.setattr(experiment_command, "choose_target", lambda _wanted, _display: "native")
    monkeypatch.setattr(
        "tailrace.emulation.mininet.MininetBackend", lambda: harness(tmp_path, DONE + TRAFFIC)
    )
    return main([*PROMPTED, *words])


def test_results_of_the_prompt_are_shown_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The table, each time before the prompt goes on; OUT holds what `tailrace run` would have left."""
    out = tmp_path / "kept"
    assert prompted(tmp_path, monkeypatch, "--out", str(out)) == 0
    said = capfd.readouterr()
    shown = said.out.split("prompt\n")
    assert [text.count("ecmp") for text in shown] == [1, 1, 0]
    assert said.err.count(f"results: {out}\n") == 2
    assert open_result(out).summary.completed == 2


def test_a_folder_that_the_prompt_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything starts."""
    (tmp_path / "kept").write_text("a file")
    assert prompted(tmp_path, monkeypatch, "--out", str(tmp_path / "kept")) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == f"tailrace: {tmp_path / 'kept'}: not a folder\n"


def test_what_cannot_be_kept_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The folder was there to be written when the fabric started."""
    monkeypatch.setattr(experiment_command, "check_place", lambda _folder: None)
    out = tmp_path / "kept"
    out.write_text("a file")
    assert prompted(tmp_path, monkeypatch, "--out", str(out)) == 0
    said = capfd.readouterr()
    assert [text.count("ecmp") for text in said.out.split("prompt\n")] == [1, 1, 0]
    assert said.err.count(f"warning: {out}") == 2
    assert "results: " not in said.err


def test_interrupt_at_the_prompt_is_the_harness_s_own(tmp_path: Path) -> None:
    """Ctrl-C reaches both; the harness acts on it as any program would, and we wait for it to end."""
    marker = tmp_path / "caught"
    script = f"""
os.kill(os.getppid(), signal.SIGINT)
try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    pathlib.Path({str(marker)!r}).write_text("")
"""
    harness(tmp_path, script).prompt(job_with())
    assert marker.exists()


def test_termination_at_the_prompt_takes_the_harness_down(tmp_path: Path, temporary_folder: Path) -> None:
    """SIGTERM to us ends the harness too."""
    marker = tmp_path / "pid"
    script = f"""
try:
    pathlib.Path({str(marker)!r}).write_text(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
except KeyboardInterrupt:
    sys.exit(130)
"""
    with pytest.raises(Interrupted), stoppable():
        harness(tmp_path, script).prompt(job_with())
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)
    assert list(temporary_folder.iterdir()) == []
