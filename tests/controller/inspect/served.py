# SPDX-License-Identifier: Apache-2.0
"""Native switches behind real P4Runtime servers on loopback ports, in this process; frames are put in by the test."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from finsy.proto import p4i
from google.protobuf import text_format

from tailrace.controller.reconcile import reconcile
from tailrace.p4rt import programs
from tailrace.p4rt.client import Client
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.server import Server
from tailrace.topology import Topology
from tests.schemes.planned import intent
from tests.switch.p4runtime.conftest import CPU_PORT, TIMEOUT_S, ManualPlane

PRIORITIES = 8
ELECTION_IDS = itertools.count(1 << 80)
"""Ever higher ones: a server never makes a client primary with a lower id than it has seen."""
_T = TypeVar("_T")


class AnsweringPlane(ManualPlane):
    """Packet-ins go to the primary as soon as the packet-out that caused them has been dealt with."""

    deliver: Callable[[], None]
    loses_packet_outs = 0
    """So many packet-outs from now on are lost."""

    def send_packet_out(self, data: bytes) -> None:
        if self.loses_packet_outs:
            self.loses_packet_outs -= 1
            return
        super().send_packet_out(data)
        asyncio.get_running_loop().call_soon(self.deliver)


class ServedSwitch:
    """A switch and its server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, device_id: int) -> None:
        self.device_id = device_id
        self.switch = V1ModelSwitch(
            None, SwitchConfig(device_id=device_id, cpu_port=CPU_PORT, priority_queues=PRIORITIES)
        )
        self.plane = AnsweringPlane(self.switch)
        self.device = Device(
            self.switch, DeviceSettings(device_id=device_id), self.plane.now_ns, load_program, DevicePorts()
        )
        self._loop = loop
        self.server = self._call(self._start())
        self.plane.deliver = self.server.service.deliver_events
        self.address = f"127.0.0.1:{self.port}"

    async def _start(self) -> Server:
        server = Server(self.device, self.plane)
        server.enable_injection(lambda port, data: self.in_server(lambda: self.plane.receive(port, data)))
        self.port = await server.start("127.0.0.1:0")
        return server

    def _call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_S)

    def in_server(self, action: Callable[[], _T]) -> _T:
        done: Future[_T] = Future()
        self._loop.call_soon_threadsafe(lambda: done.set_result(action()))
        return done.result(TIMEOUT_S)

    def receive(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """A frame arrives; what leaves because of it."""

        def run() -> list[tuple[int, bytes]]:
            self.plane.receive(port, frame)
            self.server.service.deliver_events()
            return self.plane.take()

        return self.in_server(run)

    def advance(self, delay_ns: int) -> None:
        """Time passes."""

        def run() -> None:
            self.plane.clock_ns += delay_ns

        self.in_server(run)

    def install(self, program: P4Program, entities) -> None:
        """A controller pushes the program, which empties everything, writes the entities and goes."""

        with Primary(self) as primary:
            run_at_once(primary.push(program))
            run_at_once(reconcile(primary, program, entities))

    def close(self) -> None:
        self._call(self.server.stop())
        self.device.close()
        self.switch.close()


@contextmanager
def served(count: int = 1) -> Iterator[list[ServedSwitch]]:
    """Switches with the device ids 1, 2, …"""
    # one loop for all, for gRPC serves several loops of a process badly
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    switches: list[ServedSwitch] = []
    try:
        switches += (ServedSwitch(loop, number) for number in range(1, count + 1))
        yield switches
    finally:
        for switch in switches:
            switch.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def install_scheme(topology: Topology, scheme: str, switches: Mapping[str, ServedSwitch]) -> None:
    """Makes switches hold what a scheme intends."""
    intents = intent(topology, parse_scheme(scheme), target("native"))
    for name, switch in switches.items():
        switch.install(programs.load(intents[name].program), intents[name].entities)


def read_program(build: Path, name: str) -> P4Program:
    """A compiled test program."""
    info = p4i.P4Info()
    text_format.Parse((build / f"{name}.p4info.txtpb").read_text(), info)
    path = build / f"{name}.json"
    return P4Program(name, path, info, path.read_bytes(), "", 1)


class Primary:
    """A controller that is primary while it is open: an endpoint whose calls do not wait for an event loop."""

    def __init__(self, switch: ServedSwitch) -> None:
        self._connection = GrpcConnection(f"device {switch.device_id}", switch.address, switch.device_id)

    def __enter__(self) -> Client:
        run_at_once(self._connection.client.become_primary(next(ELECTION_IDS)))
        return self._connection.client

    def __exit__(self, *_: object) -> None:
        self._connection.close()
