# SPDX-License-Identifier: Apache-2.0
"""The command: reads a job, runs the NICs of its hosts, and writes their results."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tailrace.cbuild.errors import BuildError
from tailrace.hosts.driver.job import HostsJob, make_nics, read_job
from tailrace.hosts.driver.loop import EventLoop, StopSignals
from tailrace.hosts.driver.packet_socket import PacketSocket
from tailrace.hosts.driver.port import Lag, SocketPort
from tailrace.hosts.driver.report import flows_done, make_result
from tailrace.hosts.errors import ConfigError, DeviceError, HostError, JobError
from tailrace.hosts.frames.host import frame_host
from tailrace.spec import SpecError, plugins
from tailrace.spec.arguments import ArgumentParser
from tailrace.spec.atomic import write_file

PROGRAM = "hosts.driver"
_DESCRIPTION = """\
Emulates RDMA NICs on the network interfaces of one machine, in real time.

JOB.json names hosts (interface, namespace, addresses, rate, delay), flows, and NIC settings; the keys are
those of HostsJob, HostJob, FlowSpec and NicConfig in hosts/. Sockets are opened in the hosts' namespaces;
only the interfaces of the job are touched. Needs the right to open packet sockets (root).

Standard output has one JSON object per line:
  {"event": "ready"}                           all sockets are open; the line `start` on standard input
                                               begins the run
  {"event": "started"}
  {"event": "progress", "done": 3, "flows": 8, "now_ns": ..., "lag_ns": ...}
  {"event": "done", "unfinished": 0}           the result file has been written
  {"event": "failed", "text": "one line"}
"""
_EPILOG = "Exit: 0 done, 1 the run failed or flows are unfinished, 2 bad input, 128+N ended by signal N."


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one job; returns the exit status."""
    parser = ArgumentParser(
        prog=f"python -m {PROGRAM}",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB.json", type=Path, help="file with the job to run")
    given = parser.parse_args(argv)
    try:
        job = read_job(given.job)
        with plugins.blamed("NICs"):
            return _run(job)
    except BrokenPipeError:
        # standard output is closed: redirect it, so that Python's flush at exit does not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (HostError, SpecError) as error:
        text = " ".join(str(error).split())
        _print_event(event="failed", text=text)
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        return 2 if isinstance(error, (ConfigError, JobError, SpecError)) else 1


def _print_event(**event: Any) -> None:
    sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
    sys.stdout.flush()


def _run(job: HostsJob) -> int:
    signals = StopSignals()
    with ExitStack() as stack:
        stack.enter_context(signals.installed())
        lag = Lag()
        ports = _ports(job, lag, stack)
        loop = EventLoop(ports, signals, job.linger_ns)
        stack.callback(loop.close)

        def report(now_ns: int) -> None:
            for port in ports:
                port.socket.count_dropped()
            done = {"done": flows_done(ports), "flows": len(job.flows)}
            _print_event(event="progress", **done, now_ns=now_ns, lag_ns=lag.quantile_ns(0.99))

        _print_event(event="ready")
        if job.wait_for_start:
            _await_start(signals)
        if signals.number is None:
            _print_event(event="started")
            loop.run(job.timeout_ns, job.progress_ns, report)
        result = make_result(job, ports, loop, lag, signals.number)
        if job.result is not None:
            _write(Path(job.result), msgspec.json.encode(result))
        unfinished = len(job.flows) - flows_done(ports)
        if signals.number is not None:
            _print_event(event="failed", text=f"ended by {signal.Signals(signals.number).name}")
            return 128 + signals.number
        _print_event(event="done", unfinished=unfinished)
    return 1 if unfinished else 0


def _ports(job: HostsJob, lag: Lag, stack: ExitStack) -> list[SocketPort]:
    """Opens the sockets of all hosts; `stack` closes them.

    Raises:
        ConfigError: a flow cannot be run.
        DeviceError: an interface cannot be used, or the codec in C cannot be compiled.
    """
    ports = []
    for host, nic in zip(job.hosts, make_nics(job), strict=True):
        socket = PacketSocket(host.interface, host.netns)
        stack.callback(socket.close)
        try:
            ports.append(SocketPort(host, frame_host(nic, job.sources, len(job.hosts)), socket, lag))
        except BuildError as error:
            raise DeviceError(f"the codec of NICs: {error}") from error
    return ports


def _await_start(signals: StopSignals) -> None:
    """Waits for the line `start`.

    Raises:
        JobError: standard input ended, or its first line is not `start`.
    """
    text = b""
    while signals.number is None and not text.endswith(b"\n"):
        readable, _, _ = select.select([sys.stdin, signals], [], [])
        # a signal takes precedence over an end of input at the same time
        if sys.stdin in readable and not signals.received():
            chunk = os.read(sys.stdin.fileno(), 64)
            if not chunk:
                raise JobError("standard input ended before the line `start`")
            text += chunk
    if signals.number is None and text.strip() != b"start":
        raise JobError(f"standard input: expected the line `start`, not {text.strip()!r}")


def _write(path: Path, text: bytes) -> None:
    try:
        write_file(path, text)
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
