# SPDX-License-Identifier: Apache-2.0
"""A broken input, the command that gets it, and what must come of that: one line that names the place, exit status 2,
nothing left behind.

Commands run within this process, with folders of their own for everything they may write to; `in_a_process` does the
same in a process. A case that needs more memory or time than it may fails.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import io
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parents[2]

SMALLEST = (
    *("--topology", "leaf-spine:leaves=2,spines=2,hosts=1", "--workload", "permutation:size=1KiB"),
    *("--target", "virtual"),
)
"""Options of the smallest run; the first four say nothing of a target."""

MOST_CPU_S = 20.0
"""Of the processor, so that a loaded machine fails nobody."""

MOST_WALL_S = 120.0
"""What would wait does so for ever: then the test ends with the place."""

MORE_MEMORY = 2 << 30
"""Address space that a command may take beside what is there before it."""

MOST_LINE = 1100

File = bytes | str | Callable[[Path], object]
"""What is in a file, or what makes it."""

_PLACES = {"TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"}
_SAID_BEFORE = re.compile(
    r"target \w+: |tailrace (run|compare) |usage: | +\S|warning: NICs run interpreted|ecmp \.\.\.$|6 runs: "
)
"""Lines beside the one that tells: which target is taken, what `make run` calls, how a script is used."""


@dataclass(frozen=True, slots=True)
class Case:
    """One of the corpus.

    words: the program, and its arguments
    says: what the line must hold, all of it: the place
    files: what lies in the folder in which it is started
    environment: beside ours; an empty text takes a variable away
    status: 1 where the input is good and what it asks for is not there
    """

    name: str
    words: tuple[str, ...]
    says: tuple[str, ...] = ()
    files: Mapping[str, File] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    status: int = 2


def _script(path: str) -> Callable[[Sequence[str]], int]:
    """The `main` of a script, which takes its words from `sys.argv`."""

    def main(words: Sequence[str]) -> int:
        spec = importlib.util.spec_from_file_location(f"_{Path(path).stem}", ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        before, sys.argv = sys.argv, [path, *words]
        try:
            status: int = module.main()
        finally:
            sys.argv = before
        return status

    return main


def _module(name: str) -> Callable[[Sequence[str]], int]:
    """The `main` of a module, which takes words."""

    def main(words: Sequence[str]) -> int:
        status: int = importlib.import_module(name).main(list(words))
        return status

    return main


PROGRAMS: dict[str, tuple[Callable[[Sequence[str]], int], tuple[str, ...]]] = {
    "tailrace": (_module("tailrace.cli.main"), ("-m", "tailrace.cli.main")),
    "make run": (lambda _: _make_run(), ("-m", "tailrace.cli.make_run")),
    "switch": (_module("tailrace.switch.daemon.cli"), ("-m", "tailrace.switch.daemon.cli")),
    "hosts": (_module("tailrace.hosts.driver.__main__"), ("-m", "tailrace.hosts.driver")),
    "hosts build": (_module("tailrace.hosts.build"), ("-m", "tailrace.hosts.build")),
    "bench": (_module("checks.bench.__main__"), ("-m", "checks.bench")),
    "soak": (_module("checks.soak.__main__"), ("-m", "checks.soak")),
    "conformance": (_module("checks.conformance.__main__"), ("-m", "checks.conformance")),
    "compile_p4": (_script("scripts/compile_p4.py"), ("scripts/compile_p4.py",)),
    "run_ptf": (_script("scripts/run_ptf.py"), ("scripts/run_ptf.py",)),
    "run_fabric": (_module("run_fabric"), ("mininet/run_fabric.py",)),
}
"""Each program that takes words: what runs it here, and Python's arguments that start it."""


def _make_run() -> int:
    from tailrace.cli.make_run import main

    return main()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


def in_this_process(case: Case, folder: Path) -> Ended:
    """Runs a case's command here; its folders are below `folder`."""
    work = _laid_out(case, folder)
    out, err = _Stream(), _Stream()
    began_s = time.process_time()
    with (
        mock.patch.dict(os.environ),  # commands set variables for what they start
        pytest.MonkeyPatch.context() as patch,
        _limited_memory(),
        _handlers_kept(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for name, value in _environment(case, folder).items():
            patch.setenv(name, value) if value else patch.delenv(name, raising=False)
        patch.setattr(tempfile, "tempdir", None)
        patch.chdir(work)
        faulthandler.dump_traceback_later(MOST_WALL_S, exit=True, file=2)
        try:
            status = PROGRAMS[case.words[0]][0](case.words[1:])
        except SystemExit as error:  # argparse ends so
            status = error.code if isinstance(error.code, int) else 1
        finally:
            faulthandler.cancel_dump_traceback_later()
    assert time.process_time() - began_s < MOST_CPU_S
    return Ended(status, out.getvalue(), err.getvalue())


def in_a_process(case: Case, folder: Path) -> Ended:
    """Runs a case's command as a user does, in a process with limits."""
    work = _laid_out(case, folder)
    arguments = PROGRAMS[case.words[0]][1]
    if arguments[0] != "-m":
        arguments = (str(ROOT / arguments[0]),)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **_environment(case, folder)}
    done = subprocess.run(
        ["prlimit", f"--cpu={int(MOST_CPU_S)}", sys.executable, *arguments, *case.words[1:]],
        cwd=work,
        env={name: value for name, value in environment.items() if value},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=MOST_WALL_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def check(case: Case, ended: Ended, folder: Path) -> str:
    """Whether a command ended as it must; its line."""
    text = ended.err
    assert "Traceback" not in text, text
    assert "internal error" not in text, text
    lines = [line for line in text.splitlines() if not _SAID_BEFORE.match(line)]
    assert len(lines) == 1, text or "nothing was said"
    assert len(lines[0]) < MOST_LINE
    assert lines[0].isprintable(), ascii(lines[0])
    for part in case.says:
        assert part in lines[0], f"{part!r} is not in: {lines[0]}"
    assert ended.status == case.status, f"{ended.status}: {lines[0]}"
    assert "Traceback" not in ended.out, ended.out
    behind = left(case, folder)
    assert not behind, f"left behind: {behind}"
    return lines[0]


def left(case: Case, folder: Path) -> list[str]:
    """What lies below a case's folders that it did not bring."""
    there = {f"work/{name}" for name in case.files}
    above = {parent.as_posix() for name in there for parent in Path(name).parents}
    made = {"work", *_PLACES.values()}
    paths = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    below = {name for name in paths if any(name.startswith(f"{given}/") for given in there)}
    return sorted(paths - there - above - made - below)


def _laid_out(case: Case, folder: Path) -> Path:
    """Makes the folders and files of a case; the folder in which it is started."""
    for name in ("work", *_PLACES.values()):
        (folder / name).mkdir(mode=0o700)
    work = folder / "work"
    for name, content in case.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(
                content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
            )
    return work


def _environment(case: Case, folder: Path) -> dict[str, str]:
    places = {name: str(folder / place) for name, place in _PLACES.items()}
    # which `--plugin` sets, and processes that are started get
    return {"TAILRACE_PLUGINS": "", **places, **dict(case.environment)}


class _Stream(io.TextIOWrapper):
    """A stream as standard output is one, with octets below, whose text is kept."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def getvalue(self) -> str:
        """What was written."""
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


@contextlib.contextmanager
def _limited_memory() -> Iterator[None]:
    """Within the block this process may not grow by more than MORE_MEMORY."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MORE_MEMORY
    resource.setrlimit(
        resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Handlers of signals are afterwards as before."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
