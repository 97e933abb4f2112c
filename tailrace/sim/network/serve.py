# SPDX-License-Identifier: Apache-2.0
"""Serves P4Runtime of every switch of a paused network at one address; the device id selects the switch.

    async with serving(network, "127.0.0.1:0") as port:
        ...                                     # any P4Runtime client: the CLI, p4runtime-shell, finsy

Clients see the switches as they are at the current virtual time, and may change them. Packet-outs are sent
at once, at this time; packets in queues stay there. While clients are served, the switches' endpoints
(endpoint.py) are not primary, so clients may use any election id; afterwards they become primary again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, not_found
from tailrace.sim.network.endpoint import SwitchEndpoint
from tailrace.sim.network.network import Network
from tailrace.spec import heap
from tailrace.switch.p4runtime.calls import DeadlineHandler, PendingRequests
from tailrace.switch.p4runtime.server import ServerTls, listen, new_server
from tailrace.switch.p4runtime.service import P4RuntimeService, rpc_handler
from tailrace.switch.p4runtime.statistics_service import statistics_handler
from tailrace.switch.p4runtime.trace_service import TraceService

_Context = grpc.aio.ServicerContext[Any, Any]

OnChange = Callable[[str, Message | None], None]
"""Called with the name of a switch, and the Write or push that has changed it; None: a packet-out."""


class FabricService:
    """The P4Runtime service for many devices: forwards each call to the device that it names. `on_freed` is
    called after much memory was freed. Without `on_change` Writes and pushes are refused.
    """

    def __init__(
        self,
        endpoints: list[SwitchEndpoint],
        executor: ThreadPoolExecutor,
        on_freed: Callable[[], None],
        on_change: OnChange | None,
    ) -> None:
        self._on_change = on_change
        self._services: dict[int, P4RuntimeService] = {}
        self._pending = PendingRequests()
        for endpoint in endpoints:
            service = P4RuntimeService(endpoint.device, endpoint.cpu, executor)
            service.on_freed = on_freed
            if on_change is not None:
                service.on_change = partial(on_change, endpoint.name)
            endpoint.cpu.on_packet_out = partial(self._packet_out, endpoint.name, service)
            self._services[endpoint.device_id] = service

    def _packet_out(self, switch: str, service: P4RuntimeService) -> None:
        # packet-ins that the packet-out causes are delivered after the call
        asyncio.get_running_loop().call_soon(service.deliver_events)
        if self._on_change is not None:
            self._on_change(switch, None)

    def service_of(self, device_id: int, changes: bool = False, /) -> P4RuntimeService:
        """The service of a device; with id 0, which only Capabilities may omit, that of any device.

        Raises:
            P4RtError: FAILED_PRECONDITION: the run cannot be changed; NOT_FOUND: there is no such device.
        """
        if changes and self._on_change is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "this run cannot be changed")
        ids = sorted(self._services)
        if device_id and device_id not in self._services:
            raise not_found(f"device {device_id} is not known; expected {ids[0]}..{ids[-1]}")
        return self._services[device_id or ids[0]]

    async def stream_channel(
        self, request_iterator: AsyncIterator[p4r.StreamMessageRequest], context: _Context
    ) -> None:
        """A session with the device that its first message names (P4Runtime §5)."""
        try:
            first = await self._pending.first(anext(request_iterator))
        except StopAsyncIteration:
            return
        if first.WhichOneof("update") != "arbitration":
            message = "the first message of a stream must be an arbitration"
            raise P4RtError(Code.FAILED_PRECONDITION, message)
        service = self.service_of(first.arbitration.device_id)
        await service.stream_channel(_prepended(first, request_iterator), context)


async def _prepended(
    first: p4r.StreamMessageRequest, rest: AsyncIterator[p4r.StreamMessageRequest]
) -> AsyncIterator[p4r.StreamMessageRequest]:
    yield first
    async for message in rest:
        yield message


@contextlib.asynccontextmanager
async def serving(
    network: Network,
    address: str,
    tls: ServerTls | None = None,
    on_change: OnChange | None = lambda _switch, _request: None,
) -> AsyncIterator[int]:
    """Serves the switches that this process simulates on `address` (HOST:PORT); `on_change` None: read only.

    Yields the port; for port 0 the system chooses a free one.

    Raises:
        ServerError: the address cannot be used, or the TLS key or certificate is invalid.
    """
    endpoints = [network.p4rt(switch.name) for switch in network.switches]
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile")
    server = new_server(len(endpoints))
    counts = statistics_handler({endpoint.device_id: endpoint.device.statistics for endpoint in endpoints})
    on_freed = heap.Trimmer().trim_soon  # returns freed memory to the operating system
    traces = TraceService({endpoint.device_id: endpoint.device for endpoint in endpoints}, executor, on_freed)
    fabric = FabricService(endpoints, executor, on_freed, on_change)
    handlers = (rpc_handler(fabric), counts, traces.handler())
    # all calls have a deadline, also if the client sets none
    server.add_generic_rpc_handlers((DeadlineHandler(handlers, on_freed),))
    port = listen(server, address, tls)
    try:
        with contextlib.ExitStack() as stack:
            for endpoint in endpoints:
                stack.enter_context(endpoint.stepped_aside())
            try:
                await server.start()
                yield port
            finally:
                await server.stop(None)
    finally:
        traces.stop()
        executor.shutdown(wait=False, cancel_futures=True)
