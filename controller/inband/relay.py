# SPDX-License-Identifier: Apache-2.0
"""A local socket through which the running controller relays in-band queries of inspection commands.

P4Runtime lets only the primary controller send packet-outs and receive packet-ins (P4Runtime §16.1). Flow
tables and queues are read by such packets (see `controller.inband.query`), so a second client cannot read
them. The controller therefore offers this socket, which accepts only requests that *read*. The file mode of
the socket lets only its owner connect.

Protocol: lines of JSON. The client sends one request

    {"switch": "leaf1", "op": "READ_FLOWS", "indices": [0, 1]}

and gets one line per index, in any order, each with a payload or an error, and a last line:

    {"index": 0, "payload": "00ff…"}    {"index": 1, "error": "no answer"}    {"done": true}

{"op": "DOWN"} is answered with the ends of the links that are down, {"down": [["leaf1", 3]]}, {"done": true};
{"op": "SUPPRESSED"} with the paths that are not used because their switch reported them as faulty, and the
least time in ns until they are used again: {"suppressed": [["leaf1", 3, 1500000]]}, {"done": true}.
{"switch": "leaf1", "op": "REGISTER", "register": "untracked_bytes"} is answered with all cells of a register,
{"cells": [0, 0]}, {"done": true}; with no cells if the controller cannot read registers.

A request that cannot be served as a whole gets {"error": "…"} and the connection ends. Several requests may
follow one another on a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from tailrace.controller.inband.responses import REASON_OF
from tailrace.p4rt.errors import ControllerError, NoResponseError
from tailrace.spec.schema import KeyProblemError, convert

if TYPE_CHECKING:
    from typing_extensions import Self


class RelayError(ControllerError):
    """The socket of the running controller does not work."""


READ_OPS = frozenset(REASON_OF)
"""Members of PacketOutOp_t that change nothing in a switch."""

Ask = Callable[[str, str, int], Awaitable[bytes]]
"""(switch, op, index) -> payload of the answering packet-in. Raises TimeoutError, or an error with a message
of one line."""

Registers = Callable[[str, str], list[int]]
"""(switch, register) -> its cells; called in a thread. Raises LookupError or OSError."""

SuppressedLeft = tuple[str, int, int]
"""A suppressed path: the switch that does not use it, its port, and the least remaining time in ns."""

MAX_INDEX = 0xFFFF
DOWN, SUPPRESSED, REGISTER = "DOWN", "SUPPRESSED", "REGISTER"
"""Operations that send no packet: they read the links that are down, the suppressed paths, a register."""
_WITHOUT_PACKET = frozenset({DOWN, SUPPRESSED, REGISTER})

_MAX_LINE_BYTES = 1 << 20
_AT_ONCE = 2
"""Queries of one request in flight at once: enough to hide the round trip. More would delay the queries that
accompany link probes, in the switch and in this process: with 32 in flight for each of six BMv2 switches,
some of these waited for more than half a second.
"""
_SOCKET_MODE = 0o600
_CLIENT_TIMEOUT_S = 10.0


_ACCEPT_ITERATIONS = 8
"""Iterations of the event loop after which every accepted connection has its handler, with a margin."""


class LineServer:
    """Serves a local socket of mode 0600 in an event loop; requests and responses are lines of JSON."""

    def __init__(self, path: Path) -> None:
        """`path`: where the socket will be; its folder must exist."""
        self.path = path
        self._server: asyncio.Server | None = None
        self._inode = 0
        self._clients: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listens. Raises RelayError when the path cannot be used or another process serves it."""
        _remove_stale(self.path)
        try:
            listening = _bound_socket(self.path)
        except OSError as error:
            raise RelayError(f"{self.path}: cannot listen: {error.strerror or error}") from error
        self._inode = self.path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_MAX_LINE_BYTES)

    async def stop(self) -> None:
        """Closes the socket and removes its file, unless another server has replaced it."""
        if self._server is None:
            return
        # a connection that was just accepted becomes a client only after a few iterations of the loop; if the
        # server closed before, the connection and its descriptor would be lost
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_ACCEPT_ITERATIONS):
            await asyncio.sleep(0)
        self._server.close()
        for writer in tuple(self._clients):
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await self._server.wait_closed()
        self._server = None
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while line := await reader.readline():
                if not await self._serve_request(line, writer, reader):
                    break
        except (ConnectionError, ValueError):
            return  # the client went away, or its line is longer than any request
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _serve_request(
        self, line: bytes, writer: asyncio.StreamWriter, reader: asyncio.StreamReader
    ) -> bool:
        """Serves one request. Returns whether the connection stays open."""
        raise NotImplementedError


class RelayServer(LineServer):
    """Serves the socket in the event loop of the controller."""

    def __init__(
        self,
        path: Path,
        ask: Ask,
        down: Callable[[], Iterable[tuple[str, int]]] = frozenset,
        suppressed: Callable[[], Iterable[SuppressedLeft]] = tuple,
        registers: Registers | None = None,
    ) -> None:
        """Prepares a server.

        Args:
            path: as of LineServer.
            ask: sends one in-band query to a switch.
            down: returns both ends of every link that is down, as (switch, port).
            suppressed: returns the paths that RLB has suppressed.
            registers: reads a register of a switch whose P4Runtime server refuses to; None: not possible.
        """
        super().__init__(path)
        self._ask = ask
        self._down = down
        self._suppressed = suppressed
        self._registers = registers

    async def _serve_request(
        self, line: bytes, writer: asyncio.StreamWriter, _reader: asyncio.StreamReader
    ) -> bool:
        try:
            request = _parse_request(line)
            if request.op == REGISTER:
                await send(writer, {"cells": await self._cells(request)})
        except RelayError as error:
            await send(writer, {"error": str(error)})
            return False
        if request.op == DOWN:
            await send(writer, {"down": sorted(self._down())})
        if request.op == SUPPRESSED:
            await send(writer, {"suppressed": sorted(self._suppressed())})
        slots = asyncio.Semaphore(_AT_ONCE)

        async def respond(index: int) -> None:
            async with slots:
                response = await self._ask_one(request.switch, request.op, index)
            await send(writer, response)

        tasks = [asyncio.create_task(respond(index)) for index in request.indices]
        try:
            await asyncio.gather(*tasks)
        finally:
            # if the client has gone, no more queries are sent
            for task in tasks:
                task.cancel()
        await send(writer, {"done": True})
        return True

    async def _cells(self, request: _Request) -> list[int]:
        if self._registers is None:
            return []
        try:
            return await asyncio.to_thread(self._registers, request.switch, request.register)
        except LookupError:
            raise RelayError(f"{request.switch}: the topology has no such switch") from None
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            raise RelayError(f"{request.switch}: {reason}") from error

    async def _ask_one(self, switch: str, op: str, index: int) -> dict[str, Any]:
        try:
            payload = await self._ask(switch, op, index)
        except (TimeoutError, asyncio.TimeoutError):
            return {"index": index, "error": "no answer"}
        except (ControllerError, OSError, LookupError, ValueError) as error:
            return {"index": index, "error": _one_line(error)}
        return {"index": index, "payload": payload.hex()}


class LineClient:
    """A blocking client of a LineServer, for a command that runs once."""

    def __init__(self, path: Path) -> None:
        """Connects. Raises RelayError when nothing listens there."""
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_CLIENT_TIMEOUT_S)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise RelayError(
                f"{path}: the network's socket does not answer: {error.strerror or error}"
            ) from error
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._lines.close()
        self._socket.close()

    def _responses(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while not (response := self._receive()).get("done"):
                yield response
        except OSError as error:
            raise RelayError(f"{self.path}: the controller went away: {error.strerror or error}") from error

    def _receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        try:
            response = json.loads(line)
        except ValueError as error:
            raise RelayError(f"{self.path}: the controller went away") from error
        if not isinstance(response, dict):
            raise RelayError(f"{self.path}: this is not a controller's socket")
        return response


class RelayClient(LineClient):
    """A client of the running controller."""

    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Sends queries to a switch.

        Args:
            switch: its name in the topology.
            op: one of READ_OPS.
            indices: the buckets or ports to query.

        Yields:
            (index, payload) in the order in which the responses arrive.

        Raises:
            NoResponseError: the switch did not answer for an index.
            RelayError: the request was refused or the connection broke.
        """
        for response in self._responses({"switch": switch, "op": op, "indices": list(indices)}):
            yield _payload_of(response, switch)

    def down(self) -> frozenset[tuple[str, int]]:
        """Both ends of every link that is down, as (switch, port). Raises RelayError."""
        ends = [end for response in self._responses({"op": DOWN}) for end in response.get("down", ())]
        return frozenset((str(switch), int(port)) for switch, port in ends)

    def suppressed(self) -> tuple[SuppressedLeft, ...]:
        """The suppressed paths. Raises RelayError."""
        responses = self._responses({"op": SUPPRESSED})
        paths = [path for response in responses for path in response.get("suppressed", ())]
        return tuple((str(switch), int(port), int(remaining_ns)) for switch, port, remaining_ns in paths)

    def cells(self, switch: str, register: str) -> list[int]:
        """All cells of a register; empty if the controller cannot read registers.

        Raises:
            RelayError: the cells cannot be read.
        """
        request = {"switch": switch, "op": REGISTER, "register": register}
        cells: list[int] = []
        for response in self._responses(request):
            if "error" in response:
                raise RelayError(str(response["error"]))
            cells += response.get("cells", ())
        return cells


def _payload_of(response: dict[str, Any], switch: str) -> tuple[int, bytes]:
    error, index = response.get("error"), response.get("index")
    if error is not None and index is None:
        raise RelayError(str(error))
    if error is not None:
        text, prefix = str(error), f"{switch}: "
        raise NoResponseError(
            switch, text[len(prefix) :] if text.startswith(prefix) else f"{text} (index {index})"
        )
    return int(str(index)), bytes.fromhex(str(response.get("payload", "")))


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client's request; switch, register and indices are empty if `op` does not use them."""

    op: str
    switch: str = ""
    register: str = ""
    indices: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=MAX_INDEX, description=f"a number up to {MAX_INDEX}")], ...],
        Meta(description="a list of numbers"),
    ] = ()

    def __post_init__(self) -> None:
        if self.op not in READ_OPS | _WITHOUT_PACKET:
            known = ", ".join(sorted(READ_OPS | _WITHOUT_PACKET))
            raise ValueError(f"op {self.op!r} is not for reading; expected one of {known}")
        if self.op in READ_OPS | {REGISTER} and not self.switch:
            raise ValueError(f"op {self.op!r} needs a switch")


def _parse_request(line: bytes) -> _Request:
    try:
        return convert(json.loads(line), _Request)
    except KeyProblemError as error:
        raise RelayError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise RelayError("a request is a JSON object with switch, op and indices") from error


async def send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _bound_socket(path: Path) -> socket.socket:
    """A listening socket. The mode of its file is set before any client can connect."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(_SOCKET_MODE)
        listening.listen()
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def listens(path: Path) -> bool:
    """Whether a process listens at a local socket, as far as this user can see."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _remove_stale(path: Path) -> None:
    """Removes the socket of a controller that was killed."""
    if not path.is_socket():
        return
    if listens(path):
        raise RelayError(f"{path}: another controller is serving this socket")
    path.unlink(missing_ok=True)
