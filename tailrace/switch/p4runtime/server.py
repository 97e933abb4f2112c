# SPDX-License-Identifier: Apache-2.0
"""The gRPC server of the switch: its services, TLS, and the tasks that send the data plane's events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import grpc
import grpc.aio

from tailrace.p4rt.status import P4RtError
from tailrace.spec import heap
from tailrace.spec.errors import Error
from tailrace.switch.core import StateError
from tailrace.switch.p4runtime.calls import DeadlineHandler
from tailrace.switch.p4runtime.device import Device
from tailrace.switch.p4runtime.requests import MAX_P4INFO, MAX_PROGRAM
from tailrace.switch.p4runtime.service import DataPlane, P4RuntimeService, rpc_handler
from tailrace.switch.p4runtime.statistics_service import rate_handler, statistics_handler
from tailrace.switch.p4runtime.trace_service import TraceService
from tailrace.switch.trace.injection import InjectFrame

_log = logging.getLogger(__name__)

TICK_S = 0.05
"""Interval at which timeouts and port status are checked."""

STOP_S = 0.3
"""How long calls may take to end when the server stops."""

MAX_MESSAGE_BYTES = MAX_PROGRAM + 2 * MAX_P4INFO
"""gRPC buffers a request up to this limit. It is above the service's limits, whose errors explain more."""
MAX_METADATA_BYTES = 1 << 20
MAX_CALLS = 128
"""Concurrent calls of one connection to one device; further ones wait. HTTP/2 recommends 100 or more."""
MAX_CONNECTIONS = 1024
"""Connections for one device; further ones are closed at once. It is several times
arbitration.MAX_ROLE_STREAMS, so that a client beyond that limit can connect and gets an error on its
StreamChannel. Each connection takes a file descriptor; half of the process's descriptors are reserved for
other uses.
"""
IDLE_S = 5
"""A connection is closed after this time without a call, or without an HTTP/2 handshake."""
KEEPALIVE_S = 60
"""Interval and timeout of keepalive pings on idle connections."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_S * 1000),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_S * 1000),
    ("grpc.http2.ping_timeout_ms", KEEPALIVE_S * 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.max_connection_idle_ms", IDLE_S * 1000),
    ("grpc.server_handshake_timeout_ms", IDLE_S * 1000),
    # otherwise a second server could listen on the same address and get half of the clients
    ("grpc.so_reuseport", 0),
)


class ServerError(Error):
    """The server cannot start. The message is one line for the user."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The contents of PEM files; with `client_auth` clients need a certificate signed by `root`."""

    key: bytes
    certificate: bytes
    root: bytes | None = None
    client_auth: bool = False


class RealTimePlane(DataPlane, Protocol):
    """The data plane of a switch that runs in real time; switch.daemon.ports.IoLoop implements it."""

    @property
    def events_fd(self) -> int:
        """A file descriptor that is readable while packet-ins or digests wait."""
        ...

    def port_up(self, port: int) -> bool:
        """Whether a port's interface is up."""
        ...

    def inject(self, port: int, data: bytes) -> None:
        """Makes the switch receive a frame on a port now. Raises PortError if that is not possible."""
        ...


def new_server(devices: int = 1) -> grpc.aio.Server:
    """A gRPC server whose limits of connections and calls suffice for this number of devices.

    All clients in a process may share a connection. Create the server inside an event loop.
    """
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    connections = MAX_CONNECTIONS * devices
    if descriptors != resource.RLIM_INFINITY:
        connections = min(connections, descriptors // 2)
    bounds = {
        "grpc.max_concurrent_streams": MAX_CALLS * devices,
        "grpc.max_allowed_incoming_connections": connections,
    }
    return grpc.aio.server(options=(*_OPTIONS, *bounds.items()))


def listen(server: grpc.aio.Server, address: str, tls: ServerTls | None = None) -> int:
    """Binds a server that is not started yet to `address` (HOST:PORT); returns the port, also if it was 0.

    Raises:
        ServerError: the address cannot be used, or the TLS files are invalid.
    """
    # gRPC gives no reason
    problem = "the address is in use, or is not an address of this machine"
    problem += "" if tls is None else ", or the TLS files are invalid"
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials([(tls.key, tls.certificate)], tls.root, tls.client_auth)
            port = server.add_secure_port(address, credentials)
    except (RuntimeError, ValueError) as error:
        raise ServerError(f"cannot listen on {address}: {problem}") from error
    if port == 0 and not address.startswith("unix"):
        raise ServerError(f"cannot listen on {address}: {problem}")
    return port


class Server:
    """The gRPC server of one device. Create and use it inside an event loop."""

    def __init__(self, device: Device, data_plane: DataPlane) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile")
        self.service = P4RuntimeService(device, data_plane, self._executor)
        self._server = new_server()
        # returns freed memory to the system some seconds later
        on_freed = self.service.on_freed = heap.Trimmer().trim_soon
        counts = statistics_handler({device.settings.device_id: self.statistics})
        self._tracer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trace")
        self._traces = TraceService({device.settings.device_id: device}, self._tracer, on_freed)
        rates = rate_handler(device.settings.device_id, device.set_rate)
        handlers = (rpc_handler(self.service), counts, rates, self._traces.handler())
        self._server.add_generic_rpc_handlers((DeadlineHandler(handlers, on_freed),))
        self._tasks: list[asyncio.Task[None]] = []
        self._events_fd: int | None = None

    async def start(self, address: str, tls: ServerTls | None = None) -> int:
        """Listens on `address` (HOST:PORT); returns the port, also if it was 0.

        Raises:
            ServerError: the address cannot be used, or the TLS files are invalid.
        """
        port = listen(self._server, address, tls)
        await self._server.start()
        return port

    def statistics(self) -> dict[str, object]:
        """The counts of the device's ports and buffer, and of notifications that clients have lost."""
        return {**self.service.device.statistics(), "clients": self.service.statistics()}

    def enable_injection(self, inject: InjectFrame) -> None:
        """Enables traces of packets that are really sent; `inject` is called in another thread."""
        self._traces.injectors[self.service.device.settings.device_id] = inject

    def watch(self, plane: RealTimePlane, ports: Iterable[int]) -> None:
        """Handles events, timeouts and port status until `stop`; enables traces of sent packets."""
        self.enable_injection(plane.inject)
        self._events_fd = plane.events_fd
        asyncio.get_running_loop().add_reader(self._events_fd, self.service.deliver_events)
        self._tasks.append(asyncio.create_task(self._tick(plane, tuple(ports))))

    async def _tick(self, plane: RealTimePlane, ports: tuple[int, ...]) -> None:
        while True:
            try:
                for port in ports:
                    self.service.device.port_changed(port, up=plane.port_up(port))
                self.service.deliver_events()
                self.service.deliver_idle()
            except (P4RtError, StateError) as error:
                _log.error("ports and timeouts: %s", error)  # retried at the next tick
            await asyncio.sleep(TICK_S)

    async def stop(self) -> None:
        """Cancels all streams and calls."""
        if self._events_fd is not None:
            asyncio.get_running_loop().remove_reader(self._events_fd)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._server.stop(None), STOP_S)
        self._executor.shutdown(wait=False, cancel_futures=True)
        # traces must end before the switch is closed; until then they look up P4 names in this event loop
        await asyncio.to_thread(self._traces.stop)
        await asyncio.to_thread(self._tracer.shutdown, wait=True, cancel_futures=True)
