# SPDX-License-Identifier: Apache-2.0
"""Runs compilers confined: without network, with write access to a scratch folder only, with resource limits
and a minimal environment.

Mechanisms that the kernel of this machine lacks are skipped: see `cbuild.supervisor`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tailrace.cbuild.errors import BuildError

VARIABLE = "TAILRACE_SANDBOX"
"""Environment variable; `off` lets compilers use the network and all files, for unusual toolchains."""

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
# folders of compilers, headers and libraries; no folder of users' files or of the machine's secrets
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_ETC = ("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/alternatives", "/etc/ccache.conf", "/etc/localtime")
_SYSTEM_FILES = ("/dev/urandom", "/dev/random", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_OUTPUT_BYTES = 65536


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of one run: elapsed time; CPU time and memory of each process; size of each file."""

    time_s: float = 600.0
    cpu_s: int = 300
    memory_mib: int = 8192
    file_mib: int = 512


LIMITS = ResourceLimits()


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How a run ended.

    status: exit code, or minus the signal number
    output: beginning of stdout and stderr together, at most 64 KiB
    timed_out: the run was killed because it took longer than `ResourceLimits.time_s`
    active: the mechanisms that confined the run
    """

    status: int
    output: str
    timed_out: bool
    active: tuple[str, ...]


def search_path() -> str:
    """PATH for compilers: the absolute folders in this process's PATH."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    return os.pathsep.join(folders) or _DEFAULT_PATH


def environment(scratch: Path) -> dict[str, str]:
    """The environment of a compiler; only PATH is copied from this process's environment."""
    home = str(scratch)
    return {"PATH": search_path(), "LC_ALL": "C", "TMPDIR": home, "HOME": home, "CCACHE_DISABLE": "1"}


def is_enabled() -> bool:
    """Whether compilers are confined, as the environment variable says.

    Raises:
        BuildError: the value of the variable is invalid.
    """
    value = os.environ.get(VARIABLE) or "on"
    if value not in ("on", "off"):
        raise BuildError(f"{VARIABLE} is {value!r}, expected on or off")
    return value == "on"


def _prefixes(folders: Iterable[str]) -> list[str]:
    """These folders of programs, and the installation prefix of each: PREFIX for PREFIX/bin."""
    prefixes = []
    home = Path(os.environ.get("HOME") or "/")
    for name in folders:
        folder = Path(name)
        prefixes.append(name)
        parent = folder.parent
        if folder.name in ("bin", "sbin", "libexec") and parent not in (home, *home.parents):
            prefixes.append(str(parent))
    return prefixes


def readable(program: Path, more: Iterable[Path | str] = ()) -> list[str]:
    """Paths that a command may read: the system's programs and libraries, its toolchain, and `more`."""
    programs = [str(program.parent), str(program.resolve().parent), *search_path().split(os.pathsep)]
    python = [sys.prefix, sys.base_prefix]
    paths = [*_SYSTEM, *_ETC, *_SYSTEM_FILES, *_prefixes(programs), *python, *map(str, more)]
    return [path for path in dict.fromkeys(paths) if path != "/"]


def run(
    command: Sequence[str],
    scratch: Path,
    read: Sequence[str],
    *,
    cwd: Path | None = None,
    more_environment: dict[str, str] | None = None,
) -> CommandOutcome:
    """Runs a command and waits for its end. However this call ends, no process of the command is left.

    Args:
        command: the program's absolute path and its arguments.
        scratch: the only folder that the command may write; removed if the command takes too long.
        read: paths that the command may read, from `readable`.
        cwd: its working directory; None: the scratch folder.
        more_environment: variables in addition to those of `environment`.

    Raises:
        BuildError: the command could not be run, or its supervisor was killed.
    """
    job = {
        "argv": list(command),
        "cwd": str(cwd or scratch),
        "scratch": str(scratch),
        "env": {**environment(scratch), **(more_environment or {})},
        "read": list(read),
        "devices": list(_DEVICES),
        "confine": is_enabled(),
        **asdict(LIMITS),
    }
    # a file in memory: its size is limited like that of every file of the command
    with os.fdopen(os.memfd_create("output"), "r+b") as output:
        report = _supervise(json.dumps(job), LIMITS.time_s, output)
        output.seek(0)
        text = output.read(_OUTPUT_BYTES).decode(errors="replace")
    if report is None:
        return CommandOutcome(-signal.SIGKILL, text, True, ())
    try:
        outcome = json.loads(report)
    except ValueError:
        raise BuildError(f"{Path(command[0]).name} was stopped") from None
    if outcome["failed"] is not None:
        raise BuildError(f"{command[0]} cannot be run: {outcome['failed']}")
    return CommandOutcome(outcome["status"], text, False, tuple(outcome["active"]))


def _supervise(job: str, time_s: float, output: IO[bytes]) -> bytes | None:
    """The supervisor's report; None: the job took too long, and closing stdin lets the supervisor kill it."""
    # -I: the supervisor ignores PYTHON* variables and this process's working directory
    command = [sys.executable or "python3", "-I", "-S", "-B", str(_SUPERVISOR), job]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
            env={"PATH": search_path()},
            cwd="/",
        )
    except OSError as error:
        raise BuildError(f"cannot start {command[0]}: {error.strerror}") from None
    with process:
        assert process.stdin is not None and process.stdout is not None
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        try:
            return process.stdout.read() if poll.poll(time_s * 1000) else None
        finally:
            process.stdin.close()
