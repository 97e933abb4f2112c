# SPDX-License-Identifier: Apache-2.0
"""Blocking connection to one switch. Reads need no stream and no election (P4Runtime §13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc

from tailrace.p4rt.channel import BlockingChannel, SwitchAddress
from tailrace.p4rt.client import Client
from tailrace.p4rt.endpoint import run_at_once, write_all
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.programs import parse_p4info
from tailrace.p4rt.requests import TraceRequest
from tailrace.p4rt.target import MOST_DEVICE_ID
from tailrace.p4rt.tls import Tls
from tailrace.spec import SpecError
from tailrace.spec.files import MOST_TEXT_BYTES, read_bytes
from tailrace.spec.spec_string import check_text

TIMEOUT_S = 10.0
"""Timeout of a call, in s."""


class Connection(Protocol):
    """A switch that can be inspected. Both methods raise SwitchError."""

    name: str

    def p4info(self) -> p4i.P4Info:
        """The program's P4Info."""
        ...

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """The entities of the switch that match `entities`, which are patterns as in a ReadRequest."""
        ...


class GrpcConnection:
    """A blocking connection to one switch. `client` has all calls; `run_at_once` runs its coroutines."""

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        *,
        tls: Tls | None = None,
        p4info: p4i.P4Info | None = None,
    ) -> None:
        """Prepares the channel; nothing is sent yet.

        Args:
            name: the switch's name, for messages.
            address: host:port.
            device_id: P4Runtime's device id.
            tls: TLS files; None: the channel is not encrypted.
            p4info: the program's P4Info; None: it is read from the switch.

        Raises:
            SpecError: the address or the device id is invalid.
            TlsError: TLS files are invalid.
        """
        check_text(address, f"{name}: address")
        if not 0 <= device_id <= MOST_DEVICE_ID:
            raise SpecError(f"{name}: device id {str(device_id)[:40]} is not between 0 and {MOST_DEVICE_ID}")
        self.name, self.address, self.device_id = name, address, device_id
        self._p4info = p4info
        self._channel = BlockingChannel(address, tls)
        self.client = Client(
            name,
            SwitchAddress(address, device_id),
            self._channel,
            call_s=TIMEOUT_S,
            encrypted=tls is not None,
        )

    def close(self) -> None:
        """Closes the channel, and the stream if there is one."""
        run_at_once(self.client.close())
        self._channel.raw.close()

    def wait(self, most_s: float) -> bool:
        """Waits at most `most_s` until a server listens at the address; returns whether a server listens."""
        try:
            grpc.channel_ready_future(self._channel.raw).result(most_s)
        except grpc.FutureTimeoutError:
            return False
        return True

    def p4info(self) -> p4i.P4Info:
        """The program's P4Info, from the switch if none was given."""
        if self._p4info is None:
            self._p4info = run_at_once(self.client.p4info())
        return self._p4info

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """The entities of the switch that match the patterns `entities`, in the switch's order."""
        return run_at_once(self.client.read(entities))

    def write(self, updates: Sequence[p4r.Update]) -> None:
        """Writes updates in order, as the primary (`client.become_primary`). Raises as `write_all`."""
        run_at_once(write_all(self.client, updates))

    def statistics(self) -> dict[str, Any] | None:
        """The traffic manager's counts of a native switch (switch.p4runtime.statistics)."""
        return run_at_once(self.client.statistics())

    def traces(self, request: TraceRequest) -> list[bytes] | None:
        """The traces of a packet on a native switch, as JSON (switch.trace.Trace)."""
        return run_at_once(self.client.traces(request))


def load_p4info(path: Path) -> p4i.P4Info:
    """P4Info from a file, as text (.txt, .txtpb) or binary. Raises SpecError, which names the file."""
    try:
        data = read_bytes(path, MOST_TEXT_BYTES)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from error
    try:
        return parse_p4info(data)
    except ValueError as error:
        raise SpecError(f"{path}: {error}") from error
