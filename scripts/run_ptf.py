#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the PTF packet tests against BMv2 or the native switch, inside a network namespace made for the run.

    run_ptf.py --target native|bmv2 [--plugin DIR] [--parts N] [TEST ...]

Needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN). Enters a new namespace with one veth pair per port, and runs
the switch and ptf in it; with the last process the kernel removes the namespace. The last port
is slow, so that tests can fill a queue. With --parts the tests are divided among N concurrent runs, each in a
separate namespace, as most tests only wait for real time to pass. Exit codes: that of ptf; 2 if something
needed is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from tailrace.bmv2.process import EXECUTABLE, MISSING, NO_THRIFT, has_thrift, stop
from tailrace.cbuild.artifacts import P4_BUILD, ROOT
from tailrace.p4rt import programs
from tailrace.p4rt.errors import P4ProgramError

PORTS = 8
SLOW_PORT = PORTS - 1
SLOW_RATE_PPS = 20
RECIRCULATION_RATE = "50Mbps"
THRIFT_PORT = 9090
"""The default of simple_switch_grpc; --thrift-port is not given, as builds without Thrift refuse it."""
DEVICE_ID = 1
ADDRESS = "127.0.0.1:9559"
_CLONE_NEWNET = 0x40000000
WATCH_S = 0.5
COVERAGE = "COVERAGE"
"""Environment variable: folder for the program coverage of the tests (tailrace coverage); native only."""
SWITCHES = {"bmv2": EXECUTABLE, "native": "tailrace_switch_grpc"}


class PtfError(Exception):
    """The tests cannot be run; the message is one line for the user."""


def program(venv: str, name: str) -> str:
    """Path of a program: the one in our environment, else the one on PATH."""
    ours = ROOT / venv / "bin" / name
    program = str(ours) if ours.is_file() else shutil.which(name)
    if not program:
        raise PtfError(MISSING if name == EXECUTABLE else f"{name} is neither in {venv} nor on PATH")
    return program


def run(*command: str) -> None:
    """Run a command. Raises PtfError with its message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PtfError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


def enter_namespace() -> None:
    """Moves this process into a new network namespace with `PORTS` veth pairs: swN for the switch, ptfN for
    PTF. The namespace disappears with its last process.

    Raises:
        PtfError: not permitted, or an interface cannot be made.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise PtfError(f"needs root and network namespaces: {os.strerror(ctypes.get_errno())}")
    run("ip", "link", "set", "lo", "up")
    for port in range(PORTS):
        run("ip", "link", "add", f"sw{port}", "type", "veth", "peer", "name", f"ptf{port}")
        for interface in (f"sw{port}", f"ptf{port}"):
            run("sysctl", "-q", "-w", f"net.ipv6.conf.{interface}.disable_ipv6=1")
            run("ip", "link", "set", interface, "up")


def switch_command(target: str, executable: str) -> list[str]:
    """The command line: options of simple_switch_grpc, which both switches accept, and rates for ours only.

    Without a rate, packets that wait by recirculation would use all CPU time.
    """
    ecmp = programs.load("ecmp")  # all programs expect the same switch
    interfaces = [argument for port in range(PORTS) for argument in ("-i", f"{port}@sw{port}")]
    options = ["--device-id", str(DEVICE_ID), *interfaces, "--no-p4"]
    command = [executable, *options, "--", "--grpc-server-addr", ADDRESS]
    for option in ("cpu_port", "drop_port", "priority_queues"):
        command += [f"--{option.replace('_', '-')}", str(ecmp.constant(option))]
    if target == "native":
        command += ["--port-rate", f"{SLOW_PORT}:{SLOW_RATE_PPS}pps", "--recirc-rate", RECIRCULATION_RATE]
        if folder := os.environ.get(COVERAGE):
            command += ["--coverage", str(Path(folder).resolve())]
    return command


def tests_folder(plugin: Path | None) -> Path:
    """The folder of our tests, or of a plug-in's."""
    folder = (plugin or ROOT).resolve() / "ptf_tests"
    if not folder.is_dir():
        raise PtfError(f"{folder}: no such folder; expected packet tests in it")
    return folder


def ptf_command(
    target: str,
    executable: str,
    scratch: Path,
    tests: list[str],
    plugin: Path | None = None,
    thrift_port: int = THRIFT_PORT,
) -> list[str]:
    """Ptf's command line, with one interface per port; thrift_port 0: the switch has no Thrift server."""
    folder = tests_folder(plugin)
    interfaces = [argument for port in range(PORTS) for argument in ("--interface", f"{port}@ptf{port}")]
    values: dict[str, str | int] = {
        "grpcaddr": ADDRESS,
        "device_id": DEVICE_ID,
        "build": str(ROOT / "tests" / "programs" / "build"),
        "schemes": str(P4_BUILD),
        "plugin": str(folder.parent / "build"),
        "target": target,
        "thrift_port": thrift_port,
        "slow_port": SLOW_PORT,
        "slow_rate_pps": SLOW_RATE_PPS,
    }
    parameters = ";".join(f"{key}={value!r}" for key, value in values.items())
    folders = ["--test-dir", str(folder), "--pypath", str(ROOT)]
    logs = ["--log-file", str(scratch / "ptf.log")]
    return [executable, *folders, *interfaces, *logs, "--test-params", parameters, *tests]


def run_beside(switch: subprocess.Popen[bytes], command: list[str], folder: Path) -> int:
    """Run a command until it or the switch ends; returns its exit code, or 1 if the switch ended first."""
    tests = subprocess.Popen(command, cwd=folder)
    try:
        while switch.poll() is None:
            try:
                return tests.wait(WATCH_S)
            except subprocess.TimeoutExpired:
                continue
        return 1
    finally:
        stop(tests)


def run_tests(options: argparse.Namespace) -> int:
    """Runs the tests in one namespace; returns the exit code."""
    switch = program(".venv", SWITCHES[options.target])
    ptf = program(".venv-ptf", "ptf")
    if not shutil.which("ip"):
        raise PtfError("the ip command is missing (package iproute2)")
    thrift_port = THRIFT_PORT if options.target == "native" or has_thrift(switch) else 0
    if not thrift_port:
        print(f"run_ptf: {NO_THRIFT}: tests with a slow port are not run", file=sys.stderr)
    enter_namespace()
    with tempfile.TemporaryDirectory(prefix="tailrace-ptf-") as folder:
        scratch = Path(folder)
        with (scratch / "switch.log").open("wb") as log:
            command = switch_command(options.target, switch)
            process = subprocess.Popen(command, cwd=scratch, stdout=log, stderr=subprocess.STDOUT)
            try:
                command = ptf_command(
                    options.target, ptf, scratch, options.tests, options.plugin, thrift_port
                )
                code = run_beside(process, command, scratch)
                died = process.poll()
            finally:
                stop(process)
        if code:
            tail = (scratch / "switch.log").read_text("utf-8", errors="replace").splitlines()[-20:]
            print(*tail, sep="\n", file=sys.stderr)
        if died is not None:
            print(f"run_ptf: the switch ended during the tests with {died}", file=sys.stderr)
            return code or 1
        return code


def deal(weights: Mapping[str, int], number: int) -> list[list[str]]:
    """Divides names into at most `number` parts of about the same weight."""
    parts: list[list[str]] = [[] for _ in range(number)]
    for name in sorted(sorted(weights), key=weights.__getitem__, reverse=True):
        min(parts, key=lambda part: sum(map(weights.__getitem__, part))).append(name)
    return [sorted(part) for part in parts if part]


def run_parts(options: argparse.Namespace) -> int:
    """Divides the tests among concurrent runs of this program; prints their outputs one after the other.

    The time of a file's tests is estimated by the file's size.
    """
    files = {path.stem: path.stat().st_size for path in tests_folder(options.plugin).glob("test_*.py")}
    parts = deal(dict.fromkeys(options.tests, 1) if options.tests else files, options.parts)
    arguments = [f"--target={options.target}", *([f"--plugin={options.plugin}"] if options.plugin else [])]
    with contextlib.ExitStack() as stack:
        running = []
        for part in parts:
            output = stack.enter_context(tempfile.TemporaryFile())
            command = [sys.executable, __file__, *arguments, *part]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            stack.callback(stop, process)
            running.append((process, output))
        codes = []
        for process, output in running:
            codes.append(process.wait())
            output.seek(0)
            print(output.read().decode("utf-8", "replace"), end="", file=sys.stderr, flush=True)
        return next((code for code in codes if code), 0)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Turn SIGTERM into an exception, so that everything is cleaned up."""
    raise KeyboardInterrupt


def main() -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the PTF packet tests against one switch.")
    parser.add_argument("--target", choices=sorted(SWITCHES), required=True, help="the switch to test")
    parser.add_argument("--plugin", type=Path, metavar="DIR", help="run the tests in DIR/ptf_tests, not ours")
    parser.add_argument("--parts", type=int, default=1, help="how many runs share the tests")
    parser.add_argument("tests", nargs="*", help="names of tests or groups (default: all)")
    options = parser.parse_args()
    if options.parts < 1:
        parser.error("--parts must be at least 1")
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run_parts(options) if options.parts > 1 else run_tests(options)
    except (PtfError, P4ProgramError, OSError) as error:
        print(f"run_ptf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
