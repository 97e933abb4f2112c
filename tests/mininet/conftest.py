"""Runs of the harness as a user starts them: a process of its own, whose traces can be told from everybody else's."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tailrace.emulation.target import add_mininet_path
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.spec.scale import scaled
from tailrace.topology import parse_topology
from tests.eventually import LONG_S

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "mininet" / "run_fabric.py"


def why_not() -> str | None:
    """Why this machine cannot run Mininet; None: it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not add_mininet_path() or shutil.which("mnexec") is None:
        return "Mininet is not installed"
    probe = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "no right to make namespaces"


@pytest.fixture(scope="session")
def machine() -> None:
    """Skips, with one line, where Mininet cannot run."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


class Harness:
    """A place in which runs are started. Its folder for temporary files is in the environment of whatever they start."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.out = folder / "out"
        self.temporary = temporary
        self.runtime = folder / "runtime"
        self.runtime.mkdir()
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def job(self, **changes: Any) -> Path:
        """A job file: a 2x2 leaf-spine with ECMP on the native switch, and no flows."""
        job: dict[str, Any] = {
            "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
            "scheme": "ecmp",
            "target": "native",
            "time_scale": 1000,
            **changes,
        }
        scale = job["time_scale"] or 1
        if isinstance(job["topology"], str):
            topology = scaled(parse_topology(job["topology"]), scale)
            job["topology"] = msgspec.to_builtins(topology)
            if isinstance(job["scheme"], str):
                scheme = resolve(scaled(parse_scheme(job["scheme"]), scale), topology)
                job["scheme"] = msgspec.to_builtins(scheme)
        self.out.mkdir(exist_ok=True)
        path = self.out / "JOB.json"
        path.write_text(json.dumps(job))
        return path

    def start(self, job: Path, **options: Any) -> subprocess.Popen[str]:
        """Starts a run with pipes; `args` replaces the command, `before` and `more` add to it, `env` to the environment."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            **options.pop("env", {}),
        }
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            [
                *options.pop("before", ()),
                *options.pop("args", [sys.executable, str(SCRIPT), str(job), *options.pop("more", ())]),
            ],
            text=True,
            env=environment,
            **{**pipes, **options},
        )
        self._started.append(process)
        return process

    def make_run(self, **variables: str) -> str:
        """What `make run` shows with these variables, its results being in `out`; it must end well."""
        process = self.start(
            self.job(),
            args=[sys.executable, "-m", "tailrace.cli.make_run"],
            env={**variables, "OUT": str(self.out)},
            cwd=ROOT,
        )
        out, err = process.communicate(timeout=2 * LONG_S)
        assert process.returncode == 0, err
        return out

    def run(self, job: Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """A run from beginning to end."""
        process = self.start(job, **options)
        out, err = process.communicate(timeout=LONG_S)
        return subprocess.CompletedProcess([], process.returncode, out, err)

    def processes(self) -> dict[int, str]:
        """Everything that our runs have started and that still lives, with its command line."""
        mark = f"TMPDIR={self.temporary}".encode()
        command_lines = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    if mark in (folder / "environ").read_bytes().split(b"\0"):
                        line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                        command_lines[int(folder.name)] = line.decode(errors="replace")
                except OSError:
                    continue
        return command_lines

    def kill(self, *words: str) -> None:
        """Kills the one process of ours whose command line holds all of the words."""
        (pid,) = [pid for pid, line in self.processes().items() if all(word in line for word in words)]
        os.kill(pid, signal.SIGKILL)

    def left_behind(self) -> list[str]:
        """Processes, files, and interfaces of fabrics outside their namespaces."""
        links = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
        ours = ("h1-", "h2-", "h3-", "h4-", "leaf", "spine")
        interfaces = [link["ifname"] for link in json.loads(links) if link["ifname"].startswith(ours)]
        files = [str(path) for place in (self.temporary, self.runtime) for path in place.rglob("*")]
        return [*self.processes().values(), *interfaces, *files]

    def end(self) -> None:
        """Ends what a failed test has left."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()
                process.wait(LONG_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def harness(machine: None, tmp_path: Path) -> Iterator[Harness]:
    """A place for runs; paths of sockets are short, so its temporary files are not below pytest's folder."""
    temporary = Path(tempfile.mkdtemp(prefix="tr-test-"))
    place = Harness(tmp_path, temporary)
    try:
        yield place
    finally:
        place.end()
        shutil.rmtree(temporary)
