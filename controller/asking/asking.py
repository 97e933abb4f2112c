# SPDX-License-Identifier: Apache-2.0
"""Questions that a program of ours answers by packets: packet-out with an operation, packet-in with the
answer.

This way works on every target, also on BMv2, whose P4Runtime server refuses registers. The packets may be
sent by the primary controller only, so where a controller runs, it is asked to pass them on
(`controller.asking.relay`). Where none runs, this client becomes primary for as long as the questions
take, with the lowest election id that can: first 1; and where the server remembers a higher one of a
controller that has gone (P4Runtime §5.3), that one. A controller that comes back meanwhile is refused once
and tries again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import grpc
from finsy.proto import p4i, p4r, rpc_code

from tailrace.controller.asking.answers import REASON_OF
from tailrace.p4rt.connection import TIMEOUT_S, GrpcConnection
from tailrace.p4rt.read_errors import NoAnswerError, NotOfferedError, NotPrimaryError, SwitchRefusedError
from tailrace.p4rt.view import ProgramView

OPS = "PacketOutOp_t"
REASONS = "PacketInReason_t"

FIRST_ELECTION_ID = 1
_WINDOW = 32
"""Questions on their way together."""
_ROUND_S = 2.0
"""After so long without an answer what is missing is asked again."""
_ROUNDS = 3


class Asker(Protocol):
    """Who can put questions to a switch: RelayClient, or Primary."""

    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """(index, payload) of every answer, in any order. Raises InspectError."""
        ...


def require_op(program: ProgramView, switch: str, title: str, op: str) -> int:
    """The number of an operation. Raises NotOfferedError where the program has no such questions."""
    number = program.enum_value(OPS, op)
    if number is None or program.enum_value(REASONS, REASON_OF[op]) is None:
        raise NotOfferedError(f"{switch}: {title} does not answer {op} packets")
    return number


class Primary:
    """The stream of a client that is primary while it is open."""

    def __init__(self, connection: GrpcConnection, program: ProgramView) -> None:
        """Opens the stream and waits until this client is primary.

        Raises:
            NotPrimaryError: another controller is.
            SwitchUnreachableError: no server answers.
        """
        self._connection, self._program = connection, program
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._received: queue.Queue[p4r.StreamMessageResponse | grpc.RpcError | None] = queue.Queue()
        self._call: Any = connection.stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._become_primary()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Primary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream, and with it the role."""
        self._requests.put(None)
        self._call.cancel()
        self._reader.join(TIMEOUT_S)

    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """See Asker. What is not answered is asked again, for packets may be lost on the way to the CPU."""
        out, answer = _headers(self._program)
        number = require_op(self._program, switch, switch, op)
        reason = self._program.enum_value(REASONS, REASON_OF[op])
        waiting = list(dict.fromkeys(indices))
        for _ in range(_ROUNDS):
            for start in range(0, len(waiting), _WINDOW):
                part = set(waiting[start : start + _WINDOW])
                for index in sorted(part):
                    self._send(out, {"op": number, "index": index})
                for found in self._collect(answer, reason, part):
                    waiting[waiting.index(found[0])] = -1
                    yield found
            waiting = [index for index in waiting if index >= 0]
            if not waiting:
                return
        raise NoAnswerError(f"{switch}: no answer to {op} {waiting[0]}")

    def _send(self, header: p4i.ControllerPacketMetadata, values: Mapping[str, int]) -> None:
        message = p4r.StreamMessageRequest()
        for field in header.metadata:
            number = values.get(field.name, 0)
            size = max(1, (number.bit_length() + 7) // 8)
            message.packet.metadata.add(metadata_id=field.id, value=number.to_bytes(size, "big"))
        self._requests.put(message)

    def _collect(
        self, header: p4i.ControllerPacketMetadata, reason: int | None, missing: set[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Answers to the questions `missing`, until all are there or none comes for a while."""
        names = {field.id: field.name for field in header.metadata}
        deadline = time.monotonic() + _ROUND_S
        while missing:
            message = self._next(deadline - time.monotonic())
            if message is None:
                return
            values = {
                names.get(item.metadata_id, ""): int.from_bytes(item.value, "big")
                for item in message.packet.metadata
            }
            index = values.get("index", -1)
            if message.HasField("packet") and values.get("reason") == reason and index in missing:
                missing.discard(index)
                deadline = time.monotonic() + _ROUND_S
                yield index, message.packet.payload

    def _become_primary(self) -> None:
        election_id = FIRST_ELECTION_ID
        while True:
            arbitration = self._arbitrate(election_id)
            if arbitration.status.code == rpc_code.OK:
                return
            highest = arbitration.election_id.high << 64 | arbitration.election_id.low
            if arbitration.status.code == rpc_code.NOT_FOUND and highest > election_id:
                election_id = highest  # of a controller that has gone
                continue
            raise NotPrimaryError(
                f"{self._connection.name}: another controller is primary (election id {highest}); only it may"
                " send the packets by which flows and queues are read, and no relay of it answers"
            )

    def _arbitrate(self, election_id: int) -> p4r.MasterArbitrationUpdate:
        """Asks to be primary; the server's answer."""
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = self._connection.device_id
        message.arbitration.election_id.high = election_id >> 64
        message.arbitration.election_id.low = election_id & (1 << 64) - 1
        self._requests.put(message)
        try:
            answer = self._next(TIMEOUT_S)
            while answer is not None and not answer.HasField("arbitration"):
                answer = self._next(TIMEOUT_S)
        except SwitchRefusedError as error:
            if error.code != "INVALID_ARGUMENT":  # how it says that somebody has the id
                raise
            raise NotPrimaryError(
                f"{self._connection.name}: another client has the election id {election_id}; try again"
            ) from error
        if answer is None:
            raise NoAnswerError(f"{self._connection.name}: no answer to the arbitration")
        return answer.arbitration

    def _next(self, timeout_s: float) -> p4r.StreamMessageResponse | None:
        """The next message, None after the time. Raises InspectError when the stream has ended."""
        try:
            found = self._received.get(timeout=max(timeout_s, 0.0))
        except queue.Empty:
            return None
        if isinstance(found, grpc.RpcError):
            raise self._connection.failure(found)
        if found is None:
            raise NoAnswerError(f"{self._connection.name}: the switch closed the stream")
        return found

    def _read(self) -> None:
        try:
            for message in self._call:
                self._received.put(message)
            self._received.put(None)
        except grpc.RpcError as error:
            self._received.put(error)


def _headers(program: ProgramView) -> tuple[p4i.ControllerPacketMetadata, p4i.ControllerPacketMetadata]:
    by_name = {header.preamble.name: header for header in program.info.controller_packet_metadata}
    return by_name["packet_out"], by_name["packet_in"]


def answers(asker: Asker, switch: str, op: str, indices: Iterable[int]) -> dict[int, bytes]:
    """All answers by index, in order."""
    return dict(sorted(asker.ask(switch, op, list(indices))))
