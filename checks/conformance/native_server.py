# SPDX-License-Identifier: Apache-2.0
"""The native switch behind its P4Runtime server; packets enter one at a time."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from checks.conformance.bmv2 import PRIORITY_QUEUES
from checks.conformance.native_switch import PACKET_SPACING_NS
from checks.conformance.p4rt import TIMEOUT_S, PrimaryClient
from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, ConformanceError
from checks.conformance.served import Served
from tailrace.bmv2.dataplane import Outputs
from tailrace.bmv2.process import DEVICE_ID
from tailrace.switch.compiler import load_program
from tailrace.switch.core import StateError, SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.server import Server

_T = TypeVar("_T")


class _PortlessPlane:
    """A data plane without ports, whose clock stands still between packets."""

    def __init__(self, switch: V1ModelSwitch) -> None:
        self.switch = switch
        self.clock_ns = 0

    def now_ns(self) -> int:
        return self.clock_ns

    def send_packet_out(self, data: bytes) -> None:
        """There is no CPU port."""

    def packet_ins(self) -> list[bytes]:
        return []

    def receive(self, packet: Packet) -> Outputs:
        """All that leaves because of a packet."""
        self.switch.inject(packet.port, packet.data, self.clock_ns)
        self.clock_ns += PACKET_SPACING_NS
        self.switch.run(self.clock_ns - 1)
        return [(output.port, bytes(output.data)) for output in self.switch.outputs()]


class NativeServer(Served):
    """A context with a server in a thread of its own, and `client` as its primary. As BMv2's server does, it
    takes what the specification forbids (`--bmv2-compat`).
    """

    def __init__(self, program: CompiledProgram) -> None:
        # The same program comes with every push.
        compiled = functools.cache(functools.partial(load_program, source=program.name))
        self.switch = V1ModelSwitch(None, SwitchConfig(device_id=DEVICE_ID, priority_queues=PRIORITY_QUEUES))
        self.plane = _PortlessPlane(self.switch)
        settings = DeviceSettings(device_id=DEVICE_ID, bmv2_compat=True)
        self.device = Device(self.switch, settings, self.plane.now_ns, compiled)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server, port = asyncio.run_coroutine_threadsafe(self._start(), self.loop).result(TIMEOUT_S)
        self.client = PrimaryClient(f"127.0.0.1:{port}", program, DEVICE_ID)

    async def _start(self) -> tuple[Server, int]:
        server = Server(self.device, self.plane)
        return server, await server.start("127.0.0.1:0")

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(TIMEOUT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(TIMEOUT_S)
        self.loop.close()
        self.device.close()
        self.switch.close()

    def send(self, packet: Packet) -> Outputs:
        try:
            return self._in_server(lambda: self.plane.receive(packet))
        except StateError as error:
            raise ConformanceError(f"native switch: {error}") from error

    def _in_server(self, action: Callable[[], _T]) -> _T:
        """Run `action` in the thread of the server, between two requests."""
        done: Future[_T] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                done.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return done.result(TIMEOUT_S)
