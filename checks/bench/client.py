# SPDX-License-Identifier: Apache-2.0
"""Starts tailrace_switch_grpc without ports, and a minimal P4Runtime client that writes its tables."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType

import grpc
from finsy.proto import p4i, p4r

from checks.bench import routes
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.programs import P4Program

DEVICE_ID = 1
ELECTION_ID = 1
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0

NATIVE = (sys.executable, "-m", "tailrace.switch.daemon.cli")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_listening(process: subprocess.Popen[bytes], address: str) -> None:
    """Return when gRPC answers at `address`. Raises RuntimeError when the process ends or takes too long."""
    give_up = time.monotonic() + START_TIMEOUT_S
    with grpc.insecure_channel(address) as channel:
        ready = grpc.channel_ready_future(channel)
        while time.monotonic() < give_up:
            if process.poll() is not None:
                raise RuntimeError(f"the switch ended at once with code {process.returncode}")
            with suppress(grpc.FutureTimeoutError):
                ready.result(0.1)
                return
    raise RuntimeError(f"the switch did not listen on {address} in {START_TIMEOUT_S:.0f} s")


@contextmanager
def running_switch(command: Sequence[str] = NATIVE) -> Iterator[str]:
    """A switch without a program or ports, for a `with` block; the value is the address it listens on."""
    address = f"127.0.0.1:{_free_port()}"
    arguments = ["--no-p4", "--device-id", str(DEVICE_ID), "--", "--grpc-server-addr", address]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
    try:
        _wait_until_listening(process, address)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def route_updates(p4info: p4i.P4Info, numbers: Iterable[int]) -> list[p4r.Update]:
    """What inserts the routes of `numbers` (routes.network) into the router."""
    table = next(t.preamble.id for t in p4info.tables if t.preamble.name == routes.ROUTE)
    action = next(a.preamble.id for a in p4info.actions if a.preamble.name == routes.FORWARD)
    updates = []
    for number in numbers:
        entry = p4r.TableEntry(table_id=table)
        match = entry.match.add(field_id=1)
        match.lpm.value = routes.network(number).to_bytes(4, "big")
        match.lpm.prefix_len = 24
        entry.action.action.action_id = action
        entry.action.action.params.add(param_id=1, value=routes.NEXT_HOP.to_bytes(6, "big"))
        entry.action.action.params.add(param_id=2, value=routes.EGRESS_PORT.to_bytes(2, "big"))
        updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)))
    return updates


class BenchClient:
    """The primary controller of the switch at `address`, for a `with` block."""

    def __init__(self, address: str) -> None:
        self._connection = GrpcConnection("bench", address, DEVICE_ID)
        self._client = self._connection.client
        self._p4info = p4i.P4Info()

    def __enter__(self) -> BenchClient:
        run_at_once(self._client.become_primary(ELECTION_ID))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def push(self, program: P4Program) -> None:
        run_at_once(self._client.push(program))
        self._p4info = program.p4info

    def route_request(self, numbers: Iterable[int]) -> p4r.WriteRequest:
        """One write that inserts the routes of `numbers` (routes.network)."""
        return self._client.write_request(route_updates(self._p4info, numbers))

    def write(self, request: p4r.WriteRequest) -> None:
        """Send one write. Raises WriteError when any of its updates fails."""
        run_at_once(self._client.carry_out(request))
