# SPDX-License-Identifier: Apache-2.0
"""Runs a simple_switch_grpc process on free loopback ports, without interfaces and privileges."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from types import TracebackType
from typing import IO

from tailrace.bmv2.thrift import ThriftClient, ThriftError
from tailrace.spec.errors import Error

EXECUTABLE = "simple_switch_grpc"
MISSING = f"{EXECUTABLE} is not on PATH; `make vm` makes a machine that has it (docs/programs/vm.md)"
DEVICE_ID = 1
_START_S = 30.0
_POLL_S = 0.05
_STOP_S = 10.0

NO_THRIFT = f"{EXECUTABLE} is built without Thrift, over which registers, value sets and rates are set"


class ProcessError(Error, OSError):
    """The switch is not installed, or has ended. The message is one line."""


def available() -> bool:
    """Whether simple_switch_grpc is on PATH."""
    return shutil.which(EXECUTABLE) is not None


def has_thrift(executable: str = EXECUTABLE) -> bool:
    """Whether the program accepts --thrift-port, which a build without Thrift rejects.

    Raises:
        ProcessError: the program does not exist.
    """
    command = [executable, "--thrift-port", "9090", "--version"]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=_START_S).returncode == 0
    except FileNotFoundError:
        raise ProcessError(f"{executable} (BMv2) is not on PATH") from None
    except subprocess.TimeoutExpired:
        return False


def free_ports(count: int) -> list[int]:
    """Free TCP ports on loopback."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Terminates a process and waits for its exit."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Bmv2Process:
    """A simple_switch_grpc process; a context manager. `bmv2.dataplane` exchanges packets with it.

    address: of its P4Runtime server, HOST:PORT
    dataplane: of its gRPC data plane, HOST:PORT
    command: command line of the process
    """

    def __init__(self, log: IO[bytes], **options: int) -> None:
        """Starts the switch without a P4 program.

        Args:
            log: file for its output.
            options: numeric options of simple_switch_grpc, such as priority_queues.

        Raises:
            ProcessError: simple_switch_grpc is not on PATH.
        """
        p4rt, dataplane, thrift = free_ports(3)
        self._thrift_port = thrift if has_thrift() else None
        self.address, self.dataplane = f"127.0.0.1:{p4rt}", f"127.0.0.1:{dataplane}"
        self._port = p4rt
        command = [EXECUTABLE, "--device-id", str(DEVICE_ID)]
        if self._thrift_port is not None:
            command += ["--thrift-port", str(self._thrift_port)]
        command += ["--no-p4", "--", "--grpc-server-addr", self.address]
        command += ["--dp-grpc-server-addr", self.dataplane]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        self.command = tuple(command)
        try:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise ProcessError(MISSING) from None

    def __enter__(self) -> Bmv2Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_ready(self) -> None:
        """Waits until the P4Runtime server listens.

        Raises:
            ProcessError: the process has ended, or does not listen in time.
        """
        deadline_s = time.monotonic() + _START_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(_POLL_S)
        raise ProcessError(f"{EXECUTABLE} does not start")

    def thrift(self) -> ThriftClient:
        """A connection to the Thrift server.

        Raises:
            ThriftError: the switch has no Thrift server.
        """
        try:
            if self._thrift_port is not None:
                return ThriftClient(self._thrift_port)
        except ConnectionRefusedError:
            # simple_switch_grpc without Thrift accepts the option, too, if BMv2's libraries have Thrift
            pass
        raise ThriftError(NO_THRIFT)

    def stop(self) -> None:
        """Terminates the process."""
        stop(self._process)
