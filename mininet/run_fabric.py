# SPDX-License-Identifier: Apache-2.0
"""Runs a job (sim.job.Job) under Mininet.

    run_fabric.py JOB.json [--prompt [FD]]

Needs root and Debian's package mininet. Progress goes to standard output as lines of JSON, messages to
standard error, RESULT.json and logs/ into the folder of the job. With --prompt, Mininet's prompt is shown
instead of progress. After each command `traffic`, the prompt sends a byte over the socket FD to the process
that started this script (tailrace.emulation.mininet), which then reads RESULT.json, prints it and sends a
byte back. Exit codes: 0 done, 1 the run failed, 2 bad job or something is missing on this machine,
130 interrupted. No process or interface remains after the end (see fabric_sandbox.py).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from fabric_plan import check_target
from fabric_report import FabricError, FabricReport, InputError
from fabric_sandbox import make_run_dir, remove_stale, run_sandboxed

from tailrace.emulation.mininet import PROMPT
from tailrace.p4rt.errors import ControllerError
from tailrace.sim.job import Job, check_real_time, read_job
from tailrace.spec import SpecError

_TOOLS = {"mnexec": "mininet", "ifconfig": "net-tools", "ip": "iproute2", "ethtool": "ethtool"}
_SYSTEM_PATHS = ("/usr/sbin", "/sbin")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    prompt, socket_arguments = argv[1:2] == [PROMPT], argv[2:]
    wrong = len(socket_arguments) > 1 or not all(argument.isdecimal() for argument in socket_arguments)
    if not argv or argv[0].startswith("-") or (argv[1:] and not prompt) or wrong:
        print(f"usage: run_fabric.py JOB.json [{PROMPT} [FD]]", file=sys.stderr)
        return 2
    results = _socket(int(socket_arguments[0])) if socket_arguments else None
    try:
        return _main(Path(argv[0]), results, prompt=prompt)
    except FabricError as error:
        return _fail(str(error), error.exit_code)
    except SpecError as error:
        return _fail(str(error), InputError.exit_code)
    except ControllerError as error:
        return _fail(str(error), FabricError.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)


def _socket(number: int) -> socket.socket:
    """The socket of a file descriptor, which child processes do not inherit."""
    os.set_inheritable(number, False)
    return socket.socket(fileno=number)


def _fail(message: str, code: int) -> int:
    print(f"run_fabric: {' '.join(message.split())}", file=sys.stderr)
    return code


def _main(path: Path, results: socket.socket | None, *, prompt: bool) -> int:
    job = read_job(path)
    check_real_time(job)  # SpecError: the job runs only in virtual time
    check_machine(job)
    remove_stale()
    folder = make_run_dir()
    return run_sandboxed(lambda: _run(path, job, folder, results, prompt=prompt), folder)


def check_machine(job: Job) -> None:
    """Checks that this machine and this user can run the job.

    Raises:
        InputError: they cannot.
    """
    if os.geteuid() != 0:
        raise InputError("Mininet needs root: run it with sudo, or use the target virtual")
    # for the prompt: `sh tailrace` works, and python3 is the user's, which has the modules of controllers
    bin_dir = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), bin_dir, *_SYSTEM_PATHS])
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            raise InputError(f"{tool} is not on PATH: install Debian's package {package}")
    check_target(job.target)


def _run(path: Path, job: Job, folder: Path, results: socket.socket | None, *, prompt: bool) -> int:
    """Runs the job in the sandbox."""
    from fabric_run import FabricRun

    report = FabricReport(as_text=prompt)
    run = FabricRun(path, job, folder, report)
    try:
        net = run.up()
        if not prompt:
            run.traffic(net)
            return 0
        from fabric_prompt import Prompt

        # an interrupt ends a command, not the prompt
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return FabricError.exit_code if Prompt(run, net, results).failures else 0
    finally:
        run.down()


if __name__ == "__main__":
    sys.exit(main())
