# SPDX-License-Identifier: Apache-2.0
"""A running tailrace_switch_grpc without ports, and the least P4Runtime client that can fill its tables."""

from __future__ import annotations

import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from bench import routes

DEVICE_ID = 1
ELECTION_ID = 1
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0

_SWITCH = "import sys; from tailrace.native.switchd.cli import main; sys.exit(main())"


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
                raise RuntimeError(f"tailrace_switch_grpc ended at once with code {process.returncode}")
            with suppress(grpc.FutureTimeoutError):
                ready.result(0.1)
                return
    raise RuntimeError(f"tailrace_switch_grpc did not listen on {address} in {START_TIMEOUT_S:.0f} s")


@dataclass(frozen=True, slots=True)
class RunningSwitch:
    """A switch in a process of its own, and where it listens."""

    address: str
    process: subprocess.Popen[bytes]


@contextmanager
def running_switch() -> Iterator[str]:
    """A switch without a program or ports, for a `with` block; the value is the address it listens on."""
    with running_process() as switch:
        yield switch.address


@contextmanager
def running_process() -> Iterator[RunningSwitch]:
    """The same, with its process, which may have ended at the end of the block."""
    address = f"127.0.0.1:{_free_port()}"
    arguments = ["--no-p4", "--device-id", str(DEVICE_ID), "--", "--grpc-server-addr", address]
    process = subprocess.Popen([sys.executable, "-c", _SWITCH, *arguments], stdout=subprocess.DEVNULL)
    try:
        _wait_until_listening(process, address)
        yield RunningSwitch(address, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Client:
    """The primary controller of the switch at `address`, for a `with` block."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._p4info = p4i.P4Info()

    def __enter__(self) -> Client:
        arbitration = p4r.StreamMessageRequest()
        arbitration.arbitration.device_id = DEVICE_ID
        arbitration.arbitration.election_id.low = ELECTION_ID
        self._requests.put(arbitration)
        # kept for as long as the client lives: a stream that is collected is a controller that has left
        self._stream = self._stub.StreamChannel(iter(self._requests.get, None))
        answer = next(iter(self._stream))
        if answer.arbitration.status.code:
            raise RuntimeError(f"not primary: {answer.arbitration.status.message}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.put(None)
        self._channel.close()

    def push(self, p4info: Path, program: Path) -> None:
        """Load the program: P4Info as text, BMv2 JSON as it is."""
        text_format.Parse(p4info.read_text("utf-8"), self._p4info)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        )
        request.election_id.low = ELECTION_ID
        request.config.p4info.CopyFrom(self._p4info)
        request.config.p4_device_config = program.read_bytes()
        self._stub.SetForwardingPipelineConfig(request)

    def route_request(self, numbers: Iterable[int]) -> p4r.WriteRequest:
        """One write that inserts the routes of `numbers` (routes.network)."""
        table = next(t.preamble.id for t in self._p4info.tables if t.preamble.name == routes.ROUTE)
        action = next(a.preamble.id for a in self._p4info.actions if a.preamble.name == routes.FORWARD)
        request = p4r.WriteRequest(device_id=DEVICE_ID)
        request.election_id.low = ELECTION_ID
        for number in numbers:
            update = request.updates.add(type=p4r.Update.INSERT)
            entry = update.entity.table_entry
            entry.table_id = table
            match = entry.match.add(field_id=1)
            match.lpm.value = routes.network(number).to_bytes(4, "big")
            match.lpm.prefix_len = 24
            entry.action.action.action_id = action
            entry.action.action.params.add(param_id=1, value=routes.NEXT_HOP.to_bytes(6, "big"))
            entry.action.action.params.add(param_id=2, value=routes.EGRESS_PORT.to_bytes(2, "big"))
        return request

    def write(self, request: p4r.WriteRequest) -> None:
        """Send one write. Raises grpc.RpcError when any of its updates fails."""
        self._stub.Write(request)
