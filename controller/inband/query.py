# SPDX-License-Identifier: Apache-2.0
"""In-band queries of our programs: a packet-out with an operation, a packet-in with the response.

They work on every target, also on BMv2, whose P4Runtime server refuses registers. Only the primary controller
may send packet-outs, so a running controller relays the queries (`controller.inband.relay`). If no controller
runs, this client becomes primary during the queries. It announces election id 1. If the server has seen a
higher id, only that id or a higher one can become primary (P4Runtime §5.3), so this client announces that id.
If a controller with this id reconnects meanwhile, the server rejects that controller once; it then retries.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from tailrace.controller.inband.responses import REASON_OF
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends
from tailrace.p4rt.errors import ElectionError, NoResponseError, UnsupportedError
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.packet_io import packet_in_fields, packet_out_metadata

OPS = "PacketOutOp_t"
REASONS = "PacketInReason_t"

FIRST_ELECTION_ID = 1
_WINDOW = 32
"""Queries in flight at once."""
_ROUND_S = 2.0
"""Time without a response after which unanswered queries are repeated."""
_ROUNDS = 3
_ONLY_PRIMARY = (
    "only the primary controller may send the packets that read flows and queues, and it has no relay that"
    " answers"
)


class QueryClient(Protocol):
    """Sends in-band queries to switches: RelayClient or PrimaryQueryClient."""

    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """(index, payload) of every response, in any order. Raises ControllerError."""
        ...

    def cells(self, switch: str, register: str, /) -> list[int]:
        """All cells of a register that P4Runtime does not show; empty if they cannot be read. Raises
        ControllerError.
        """
        ...


def require_op(program: ProgramNames, switch: str, title: str, op: str) -> int:
    """The enum value of an operation. Raises UnsupportedError if the program does not support it."""
    value = program.enum_value(OPS, op)
    if value is None or program.enum_value(REASONS, REASON_OF[op]) is None:
        raise UnsupportedError(switch, f"{title} does not answer {op} packets")
    return value


class PrimaryQueryClient:
    """Sends queries as the primary controller, from construction to close."""

    def __init__(self, connection: GrpcConnection, program: ProgramNames) -> None:
        """Waits until the connection's client is primary.

        Raises:
            ElectionError: another controller is primary.
            SwitchError: no server answers.
        """
        self._client, self._program = connection.client, program
        try:
            run_at_once(self._client.become_primary(FIRST_ELECTION_ID))
        except BaseException as error:
            self.close()
            if isinstance(error, ElectionError):
                raise ElectionError(error.switch, f"{error.problem}; {_ONLY_PRIMARY}") from error
            raise

    def __enter__(self) -> PrimaryQueryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream, which ends the primary role."""
        run_at_once(self._client.close())

    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """See QueryClient. Repeats unanswered queries: packets to and from the CPU port may be lost."""
        info, op_value = self._program.info, require_op(self._program, switch, switch, op)
        reason = self._program.enum_value(REASONS, REASON_OF[op])
        waiting = list(dict.fromkeys(indices))
        for _ in range(_ROUNDS):
            for start in range(0, len(waiting), _WINDOW):
                part = set(waiting[start : start + _WINDOW])
                for index in sorted(part):
                    message = p4r.StreamMessageRequest()
                    message.packet.metadata.extend(
                        packet_out_metadata(info, {"op": op_value, "index": index})
                    )
                    self._client.send(message)
                for response in self._collect(reason, part):
                    waiting[waiting.index(response[0])] = -1  # answered; removed after this round
                    yield response
            waiting = [index for index in waiting if index >= 0]
            if not waiting:
                return
        raise NoResponseError(switch, f"no answer to {op} {waiting[0]}")

    def cells(self, _switch: str, _register: str, /) -> list[int]:
        """See QueryClient: always empty, as this client has only P4Runtime."""
        return []

    def _collect(self, reason: int | None, missing: set[int]) -> Iterator[tuple[int, bytes]]:
        """Responses to the queries `missing`, until all have arrived or none arrives for _ROUND_S."""
        deadline = time.monotonic() + _ROUND_S
        while missing:
            try:
                message = run_at_once(self._client.receive(max(deadline - time.monotonic(), 0.0)))
            except NoResponseError:
                return
            values = packet_in_fields(self._program.info, message.packet)
            index = values.get("index", -1)
            if message.HasField("packet") and values.get("reason") == reason and index in missing:
                missing.discard(index)
                deadline = time.monotonic() + _ROUND_S
                yield index, message.packet.payload


def query_all(queries: QueryClient, switch: str, op: str, indices: Iterable[int]) -> dict[int, bytes]:
    """All responses by index, in order."""
    return dict(sorted(queries.ask(switch, op, list(indices))))
