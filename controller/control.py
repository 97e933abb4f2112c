# SPDX-License-Identifier: Apache-2.0
"""A local socket by which commands in another terminal see and change a running network. The process that
runs the network serves it, with the protocol of inband/relay.py.

    {"op": "state"}      {"status": "running"}, then {"link": "leaf1-spine2", "state": "up", "rate": "1Gbps"}
    {"op": "set", "link": "leaf1-spine2", "to": "down"}      {}; `to` is up, down or a rate
    {"op": "events", "follow": true}      the events so far and, with `follow`, the next ones
    {"op": "capture", "link": "leaf1-spine2"}      {}, then {"time_ns": 0, "frame": "00ff…", "length": 1082} …
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from tailrace.controller.inband.relay import LineClient, LineServer, RelayError, send
from tailrace.spec import Error, SpecError
from tailrace.spec.suggest import expected
from tailrace.spec.units import format_rate, parse_rate_bps
from tailrace.topology import Topology

UP, DOWN = "up", "down"
_POLL_S, _END_S = 0.05, 2.0
Messages = Sequence[dict[str, Any]]
Stream = Generator[Messages, None, None]
"""Yields the messages since the last time; closed when the client has gone."""


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    op: str
    link: str = ""
    to: str = ""
    follow: bool = False


class ControlServer(LineServer):
    """Serves the socket in a thread. Other threads call the abstract methods, which raise Error to refuse."""

    def __init__(self, path: Path, topology: Topology, time_scale: float) -> None:
        """`topology`: as the network runs, slower by the factor `time_scale` than specified."""
        super().__init__(path)
        self.topology, self._time_scale = topology, time_scale
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._listening: Future[None] = Future()
        self._operations: dict[str, Callable[[_Request], Stream]] = {
            "state": self._state,
            "set": self._set,
            "events": self._events,
            "capture": lambda request: self.capture(*self._ends(request.link)),
        }

    @abstractmethod
    def status(self) -> str:
        """Whether the network runs or is paused."""

    @abstractmethod
    def events(self, start: int) -> Messages:
        """The events from a number on, which counts from 0."""

    @abstractmethod
    def link(self, a: str, b: str) -> tuple[bool, float]:
        """Whether the links between two nodes are up, and their rate as a multiple of the topology's."""

    @abstractmethod
    def set_link(self, a: str, b: str, to: bool | float, text: str) -> None:
        """Takes links up (True) or down, or sets the multiple of their rate; `text`: of the event."""

    @abstractmethod
    def capture(self, a: str, b: str) -> Stream:
        """Yields [{}], then the frames that have arrived at either end of the links between two nodes."""

    def start_thread(self) -> None:
        """Listens. Raises RelayError if the path cannot be used."""
        self._thread.start()
        self._listening.result()

    def end(self) -> None:
        """Ends the streams, and removes the socket."""
        self._ended.set()
        self._thread.join(_END_S)

    async def _run(self) -> None:
        try:
            await self.start()
        except RelayError as error:
            self._listening.set_exception(error)
            return
        self._listening.set_result(None)
        while not self._ended.is_set():
            await asyncio.sleep(_POLL_S)
        await asyncio.sleep(2 * _POLL_S)  # streams send their last messages
        await self.stop()

    async def _serve_request(
        self, line: bytes, writer: asyncio.StreamWriter, reader: asyncio.StreamReader
    ) -> bool:
        try:
            request = msgspec.json.decode(line, type=_Request)
            with contextlib.closing(self._operations[request.op](request)) as stream:
                ended = False
                while not (ended or reader.at_eof()):
                    ended = self._ended.is_set()
                    messages = await asyncio.to_thread(next, stream, None)
                    for message in messages or ():
                        await send(writer, message)
                    ended = ended or messages is None
                    await asyncio.sleep(0 if messages else _POLL_S)
        except (Error, msgspec.DecodeError, KeyError) as error:
            await send(writer, {"error": str(error), "input": isinstance(error, SpecError)})
            return False
        await send(writer, {"done": True})
        return True

    def _links(self) -> dict[tuple[str, str], int]:
        """The ends of all links, those of hosts first, and their rates as specified, in bit/s."""
        hosts = {(host.name, host.switch): host.rate_bps for host in self.topology.hosts}
        links = hosts | {(link.a, link.b): link.rate_bps for link in self.topology.links}
        return {ends: round(rate_bps * self._time_scale) for ends, rate_bps in links.items()}

    def _ends(self, name: str) -> tuple[str, str]:
        """The ends of the link A-B, also written B-A. Raises SpecError if there is none."""
        links = {f"{a}-{b}": (a, b) for a, b in self._links()}
        turned = {f"{b}-{a}": (a, b) for a, b in links.values()}
        if name not in links | turned:
            raise SpecError(f"no link {name!r}; {expected(name, links)}")
        return (links | turned)[name]

    def _state(self, _request: _Request) -> Stream:
        yield [{"status": self.status()}]
        for (a, b), rate_bps in self._links().items():
            up, factor = self.link(a, b)
            rate = format_rate(round(rate_bps * factor))
            yield [{"link": f"{a}-{b}", "state": UP if up else DOWN, "rate": rate}]

    def _set(self, request: _Request) -> Stream:
        a, b = self._ends(request.link)
        to: bool | float = request.to == UP
        text = f"is {request.to}"
        if request.to not in (UP, DOWN):
            rate_bps = parse_rate_bps(request.to)
            to, text = rate_bps / self._links()[a, b], f"has {format_rate(rate_bps)}"
            if any(host.name == a for host in self.topology.hosts):
                raise SpecError(f"{a}-{b}: the rate of a NIC is fixed; name a link between switches")
        self.set_link(a, b, to, f"{a}-{b} {text}, by command")
        yield [{}]

    def _events(self, request: _Request) -> Stream:
        count, follow = 0, True
        while follow:
            new = self.events(count)
            yield new
            count, follow = count + len(new), request.follow


class ControlClient(LineClient):
    """A client of a running network."""

    def call(self, op: str, **fields: object) -> Iterator[dict[str, Any]]:
        """Sends a request; returns its messages.

        Raises:
            SpecError: the request is invalid.
            RelayError: the network refuses, or has gone.
        """
        if op == "capture" or fields.get("follow"):
            self._socket.settimeout(None)
        for message in self._responses({"op": op, **fields}):
            if "error" in message:
                raise (SpecError if message["input"] else RelayError)(message["error"])
            yield message
