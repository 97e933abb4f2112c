# SPDX-License-Identifier: Apache-2.0
"""How a command ends that is interrupted, killed, or finds its output closed or the disk full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.results.atomic_folder import atomic_folder
from tailrace.sim.errors import RunError
from tailrace.spec.atomic import write_file
from tests.long import more
from tests.processes import NOT_IGNORED, catches

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240
RUN = ("run", "--scheme", "ecmp", "--target", "virtual", "--workload", "permutation:size=1KiB")
LONG = ("run", "--scheme", "ecmp", "--target", "virtual", "--workload", "permutation:size=2GiB")
SWEEP = (
    *("sweep", "--set", "scheme=ecmp", "--set", "seed=1..4", "--workers", "2", "--target", "virtual"),
    *("--workload", "permutation:size=64MiB"),
)


def start(*words: str, **options: object) -> subprocess.Popen[str]:
    """The command in a process group of its own, as a terminal has it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
        [*NOT_IGNORED, sys.executable, "-m", "tailrace.cli.main", *words],
        text=True,
        start_new_session=True,
        **{"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options},
    )
    return started


def ending(process: subprocess.Popen[str]) -> str:
    """What it said on standard error by its end."""
    return process.communicate(timeout=TIMEOUT_S)[1]


@pytest.mark.parametrize(
    ("number", "after_s"),
    [
        *((signal.SIGINT, 0.5), (signal.SIGINT, 2.0), (signal.SIGTERM, 0), (signal.SIGTERM, 0.5)),
        (signal.SIGHUP, 2.0),
        *more((signal.SIGINT, 0), (signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGTERM, 5.0)),
    ],
)
@pytest.mark.parametrize("words", [LONG, SWEEP], ids=["run", "sweep"])
def test_signals(words: tuple[str, ...], after_s: float, number: signal.Signals, tmp_path: Path) -> None:
    """One line whenever it comes once the interpreter has started, also from workers that still import, and nothing
    half-written is left.
    """
    process = start(*words, "--out", str(tmp_path / "out"))
    while not catches(process.pid, signal.SIGTERM):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(after_s)
    assert process.poll() is None
    os.killpg(process.pid, number)
    text = ending(process)
    assert "Traceback" not in text
    # Python ends itself by SIGINT, which a shell tells as 130, where that came while a text was executed
    assert process.returncode in (128 + number, *([-number] if number == signal.SIGINT else []))
    assert sum("interrupted" in line for line in text.splitlines()) == 1
    assert not [path for path in tmp_path.rglob("*") if ".partial-" in path.name]


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_is_not_lost(name: str, status: int) -> None:
    """Python swallows exceptions of callbacks, of import locks among them: the command ends a moment later."""
    script = f"""
import signal, sys, time, weakref
from tailrace.cli import app, main

# tests may run in the background of a shell, where SIGINT is ignored, or below nohup
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

class Something:
    pass

def run(words):
    # however slow the machine is, the moment lasts until all is said
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    it = Something()
    seen = weakref.ref(it, lambda _: signal.raise_signal(signal.{name}))
    del it
    print("went on", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    time.sleep({TIMEOUT_S})

app.run = run
sys.exit(main.main(["topology", "leaf-spine"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("went on\n", "tailrace: interrupted\n", status)


def test_closed_streams(tmp_path: Path) -> None:
    """Without standard output or error a command does what it should, and says nothing."""
    words = "-m tailrace.cli.main topology leaf-spine"
    for closing, status, said in ((">&-", 0, ""), (">&- 2>&-", 0, ""), (">&- <&-", 0, "")):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} {words} {closing}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, said)
    command = ["sh", "-c", f"{sys.executable} -m tailrace.cli.main topology nonsense 2>&-"]
    assert subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_full_standard_output(form: str, unbuffered: str) -> None:
    """What cannot be written is told in a line, at the end or, where it is much, at once."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = start("topology", "leaf-spine", "-o", form, stdout=full, cwd=ROOT, env=environment)
    assert ending(process) == "tailrace: standard output: No space left on device\n"
    assert process.returncode == 1


@pytest.mark.parametrize(
    "change",
    [
        *more({"COLUMNS": "1"}),
        {"COLUMNS": "x", "LINES": "-1", "HOME": ""},
        {"TERM": "dumb", "LANG": "", "LC_ALL": ""},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    ],
)
def test_environments(change: dict[str, str]) -> None:
    """A terminal of any kind or of none, and no home, change nothing but looks."""
    environment = {**os.environ, **change}
    if not change.get("HOME", "x"):
        del environment["HOME"]
    for words in (("schemes",), ("topology", "leaf-spine"), ("--help",)):
        process = start(*words, env=environment, cwd=ROOT)
        assert (ending(process), process.returncode) == ("", 0)


def test_full_disk(tmp_path: Path) -> None:
    """A disk that is full is a run that failed, and leaves nothing half-written; other errors pass."""
    out = tmp_path / "out"
    with (
        pytest.raises(RunError, match="No space left on device; no results were written"),
        atomic_folder(out),
    ):
        raise OSError(28, os.strerror(28))
    with pytest.raises(FileNotFoundError, match="simple_switch_grpc"), atomic_folder(out):
        raise FileNotFoundError(2, os.strerror(2), "simple_switch_grpc")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_swept_up(tmp_path: Path) -> None:
    """The next one takes it away, but for what a living one writes to, and what is not ours."""
    out = tmp_path / "out"
    stale, foreign = tmp_path / ".out.partial-0123abcd", tmp_path / ".out.partial-x"
    for folder in (stale, foreign):
        folder.mkdir()
        (folder / "summary.json").write_text("{")
        os.utime(folder, (1, 1))
    with atomic_folder(out) as folder:
        os.utime(folder, (1, 1))
        assert not stale.exists()
        with atomic_folder(out):
            assert folder.exists()
    assert foreign.exists()


def test_files_appear_whole(tmp_path: Path) -> None:
    """A file is replaced or stays; a device is written to, and no folder is replaced."""
    path = tmp_path / "page.html"
    write_file(path, "one")
    link = tmp_path / "link"
    link.symlink_to(path)
    write_file(link, "two")
    assert link.is_symlink()
    assert path.read_text() == "two"
    write_file(Path(os.devnull), "nothing")
    assert not Path(os.devnull).is_file()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, "three")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        write_file(tmp_path / "pipe", "nobody reads")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["link", "page.html", "pipe"]


def test_what_nobody_foresaw(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Any exception becomes a line that says how to see more, and --debug does."""
    import tailrace.cli.explain.topology_text

    def fail(*_: object) -> str:
        raise KeyError("x\x1b[31m\ny")

    monkeypatch.setattr(tailrace.cli.explain.topology_text, "show", fail)
    monkeypatch.delenv("TAILRACE_DEBUG", raising=False)
    assert main(["topology", "leaf-spine"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("tailrace: internal error: KeyError: ")
    assert "TAILRACE_DEBUG=1" in text
    assert text.count("\n") == 1
    assert "\x1b" not in text
    monkeypatch.setenv("TAILRACE_DEBUG", "")
    assert main(["--debug", "topology", "leaf-spine"]) == 1
    assert "Traceback" in capsys.readouterr().err
