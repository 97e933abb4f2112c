# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime gRPC service: streams, limits and errors; `device` implements the requests themselves.

Everything runs on one asyncio event loop, so the work of a request between two yields to the scheduler needs
no lock. Writes, Reads and pushes (SetForwardingPipelineConfig) take longer, and hold the device's lock
(scheduler.py). Only programs, which take long to compile, are compiled in another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from itertools import groupby
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.requests import election_of
from tailrace.p4rt.status import BatchStatus, Code, P4RtError, exhausted
from tailrace.switch.core.types import PortError
from tailrace.switch.p4runtime.arbitration import DEFAULT_ROLE, MAX_ROLE_STREAMS, ArbitrationClient, Notices
from tailrace.switch.p4runtime.calls import Behaviour, shielded, with_status
from tailrace.switch.p4runtime.context import in_quanta
from tailrace.switch.p4runtime.device import API_VERSION, Device
from tailrace.switch.p4runtime.pipeline import ForwardingPipeline, Prepared
from tailrace.switch.p4runtime.program_compiler import cancellable
from tailrace.switch.p4runtime.requests import (
    MAX_FIRST,
    MAX_SMALL,
    Admission,
    parsed,
    parsed_batch,
    parsed_config,
)
from tailrace.switch.p4runtime.scheduler import Scheduler, StateLock
from tailrace.switch.p4runtime.streams import ClientStream

_log = logging.getLogger(__name__)

MAX_STREAMS = 256
"""Streams of one device that have sent an arbitration update. At the limit a new primary evicts a backup."""
MAX_SILENT = 64
"""Streams that have sent no arbitration update yet; a further stream closes the oldest."""
ANNOUNCED_S = 60.0
ANNOUNCED_WHEN_FULL_S = 2.0
"""Time until a stream must send its first arbitration update; the second value applies at MAX_STREAMS."""
MAX_READS = 256
"""Most concurrent Reads."""
MAX_PUSHES = 16
"""Most concurrent pushes; their programs are compiled one at a time."""
MAX_RESPONSE_BYTES = 512 << 20
"""Most bytes of responses, to Reads and to GetForwardingPipelineConfig, that clients have not read yet."""
READ_S = 5.0
"""How long a Read may delay other requests; then it is aborted."""
STALLED_S = 60.0
"""Timeout of a Read whose client reads no responses."""
TAKEOVER_S = 10.0
"""How long a Write whose client has disconnected continues; also how long a new primary waits for Writes."""
FLUSH_S = 5.0
"""How long a stream that ends with an error waits for its client to read earlier messages."""
PACKETS_AT_ONCE = 256
"""Most packet-ins handled in one iteration of the event loop."""
MANY_UPDATES = 64
"""A Write of more updates than this causes freed memory to be returned to the system soon."""
MAX_DETAILS = 512 << 10
"""Most bytes of error details of a batch; clients reject metadata above their limit."""
_AnyContext = grpc.aio.ServicerContext[Any, Any]


class DataPlane(Protocol):
    """The data plane as the service uses it; switch.daemon.ports.IoLoop implements it."""

    def now_ns(self) -> int:
        """The time on the switch's clock, in ns."""
        ...

    def send_packet_out(self, data: bytes) -> None:
        """Injects a frame on the CPU port. Raises PortError if that is not possible."""
        ...

    def packet_ins(self) -> list[bytes]:
        """Returns, and removes, the frames that the switch has sent to the CPU port."""
        ...


class P4RuntimeService:
    """The service for one device. Its methods raise P4RtError, which `rpc_handler` turns into a status."""

    def __init__(
        self,
        device: Device,
        data_plane: DataPlane,
        executor: Executor | None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Args:
        executor: runs the compilation of programs; None: the event loop's default executor.
        clock: ns since the epoch, for the timestamps of digests and idle timeouts.
        """
        self.device = device
        self._clock = clock
        self._data_plane = data_plane
        self._executor = executor
        self.streams: dict[ArbitrationClient, ClientStream] = {}
        self._scheduler = Scheduler()
        self._lock = StateLock()
        self._reads = 0
        self._writes: Counter[str] = Counter()  # Writes under way, by role
        self._response_bytes = 0
        self._dropped = 0  # notifications lost on streams that have ended
        self._frames: deque[bytes] = deque()
        self._free_tasks: set[asyncio.Task[None]] = set()
        self._pushes: dict[threading.Event, p4r.SetForwardingPipelineConfigRequest] = {}
        self.on_freed: Callable[[], None] = lambda: None
        """Called after much memory may have been freed, to return it to the system."""
        self.on_change: Callable[[Message], None] = lambda _request: None
        """Called with each Write of which any update succeeded, and with each push but for VERIFY."""

    def service_of(self, _device_id: int, _changes: bool = False, /) -> P4RuntimeService:
        """The service itself, which rejects the ids of other devices."""
        return self

    # ---- unary calls ----

    async def write(self, request: p4r.WriteRequest, _context: _AnyContext) -> p4r.WriteResponse:
        """Write (specification 12)."""
        # the term shows later whether the role has a new primary
        results, term = self._results(), self.device.write_term(request)
        if len(request.updates) > MANY_UPDATES:
            self.on_freed()
        self._writes[request.role] += 1
        try:
            async with self._lock.hold():
                steps = self.device.write_steps(request, results, term)
                await self._scheduler.run_shielded(steps, TAKEOVER_S)
        finally:
            self._writes -= Counter([request.role])  # also removes a count of 0
            if results.failures < len(request.updates):
                self.on_change(request)
        if results.failures:
            raise results.error("write failed", len(request.updates))
        return p4r.WriteResponse()

    def _results(self) -> BatchStatus:
        """An empty status of a batch; with --strict it reports all errors, else up to MAX_DETAILS bytes."""
        return BatchStatus(None if self.device.settings.strict else MAX_DETAILS)

    async def read(self, request: p4r.ReadRequest, _context: _AnyContext) -> AsyncGenerator[bytes, None]:
        """Read (specification 13): the entities; then the status of each entity that was requested.

        All responses are made before the first is sent, so a slow client delays no Write.
        """
        if self._reads >= MAX_READS:
            raise exhausted(f"{self._reads} Reads are under way; the limit is {MAX_READS}")
        self._reads += 1
        responses: deque[bytes] = deque()
        results, count = self._results(), len(request.entities)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        try:
            self.device.check_device(request.device_id)
            async with self._lock.hold(shared=True):
                await self._make_responses(self.device.read_steps(request, results), responses)
            del request
            if len(responses) > 1:
                self.on_freed()
            while responses:
                # a stalled client must not count among MAX_READS for ever
                timer = loop.call_later(STALLED_S, task.cancel)
                try:
                    yield responses[0]
                finally:
                    timer.cancel()
                self._response_bytes -= len(responses.popleft())
        finally:
            self._reads -= 1
            self._response_bytes -= sum(map(len, responses))
        if results.failures:
            raise results.error("read failed", count)

    async def _make_responses(
        self, steps: Iterator[p4r.ReadResponse | None], responses: deque[bytes]
    ) -> None:
        """Appends the responses of a Read; pauses after each quantum of work but the first."""
        loop, ends_s = asyncio.get_running_loop(), None
        for quantum, response in enumerate(steps):
            if response is not None:
                octets = response.SerializeToString()
                self._reserve_response(len(octets))
                responses.append(octets)
            if quantum:
                await self._scheduler.pause()
            if ends_s is None and self._lock.has_waiters():
                ends_s = loop.time() + READ_S
            if ends_s is not None and loop.time() > ends_s:
                raise P4RtError(
                    Code.ABORTED, f"other requests waited {READ_S:g} s for this Read: read less at a time"
                )

    def _reserve_response(self, size: int) -> None:
        """Counts the bytes of a response as not yet read by its client.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: too many such bytes.
        """
        if self._response_bytes and self._response_bytes + size > MAX_RESPONSE_BYTES:
            raise exhausted(
                f"{self._response_bytes} bytes of responses are unread; the limit is {MAX_RESPONSE_BYTES}"
            )
        self._response_bytes += size

    async def set_config(
        self, request: p4r.SetForwardingPipelineConfigRequest, _context: _AnyContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """SetForwardingPipelineConfig (specification 14)."""
        self.device.authorize(request)
        prepared = await self._prepare(request)
        async with self._lock.hold():
            # the client may have lost its role while the program was compiled
            self.device.authorize(request)
            await self._scheduler.run(in_quanta(self.device.configure_steps(request.action, prepared)))
        if request.action != request.VERIFY:
            self.on_change(request)
        for pipeline in self.device.dropped():
            free = asyncio.create_task(self._free(pipeline))
            self._free_tasks.add(free)
            free.add_done_callback(self._free_tasks.discard)
        return p4r.SetForwardingPipelineConfigResponse()

    async def _prepare(self, request: p4r.SetForwardingPipelineConfigRequest) -> Prepared | None:
        """Verifies a configuration; cancelled if its client disconnects or is no longer primary."""
        if len(self._pushes) >= MAX_PUSHES:
            raise exhausted(f"{len(self._pushes)} pushes are under way; the limit is {MAX_PUSHES}")
        cancelled, loop = threading.Event(), asyncio.get_running_loop()
        self._pushes[cancelled] = request
        try:
            return await loop.run_in_executor(
                self._executor, cancellable, cancelled, self.device.prepare, request
            )
        except P4RtError:
            self.device.authorize(request)  # its error takes precedence
            raise
        finally:
            cancelled.set()
            del self._pushes[cancelled]

    async def _free(self, pipeline: ForwardingPipeline) -> None:
        """Frees a pipeline in the background: it may contain a million entries."""
        # the switch in another thread, then the Python objects in steps
        await asyncio.get_running_loop().run_in_executor(None, pipeline.free)
        await self._scheduler.run(pipeline.forget())
        self.on_freed()

    async def get_config(self, request: p4r.GetForwardingPipelineConfigRequest, context: _AnyContext) -> None:
        """GetForwardingPipelineConfig (specification 15); its response counts towards MAX_RESPONSE_BYTES."""
        self.device.check_device(request.device_id)
        response = self.device.config_response(request.response_type)
        self._reserve_response(len(response))
        try:
            await shielded(context.write(response))
        finally:
            self._response_bytes -= len(response)

    async def capabilities(
        self, request: p4r.CapabilitiesRequest, _context: _AnyContext
    ) -> p4r.CapabilitiesResponse:
        """Capabilities (specification 17); without a device id, of the server."""
        if request.device_id:
            self.device.check_device(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # ---- the stream ----

    async def stream_channel(
        self, request_iterator: AsyncIterator[p4r.StreamMessageRequest], context: _AnyContext
    ) -> None:
        """StreamChannel (specification 5 and 16): the session of one client."""
        stream = ClientStream()
        deadline = self._begin(stream)
        writer = asyncio.create_task(stream.write_all(context))
        try:
            async for message in request_iterator:
                if stream.client.role is None and message.WhichOneof("update") == "arbitration":
                    deadline.cancel()
                    self._evict_backup(message.arbitration)
                if self._takes_over(stream, message) and self._writes[message.arbitration.role.name]:
                    async with self._lock.hold(most_s=TAKEOVER_S):
                        self._handle(stream, message)
                else:
                    self._handle(stream, message)
                await stream.drain()
            await self._finish(stream, writer)
        except P4RtError:
            await self._finish(stream, writer)
            raise
        except asyncio.CancelledError:
            if stream.error is None:
                raise
            await self._finish(stream, writer)
            raise stream.error from None
        finally:
            deadline.cancel()
            if stream.error is not None:
                _log.warning("a client's stream was terminated: %s", stream.error)
            writer.cancel()
            self._dropped += stream.dropped
            if stream.dropped:
                _log.warning("%d packet-ins and notifications were lost to a slow primary", stream.dropped)
            del self.streams[stream.client]
            self._notify(self.device.arbiter.disconnect(stream.client))
            await asyncio.gather(writer, return_exceptions=True)
            self.on_freed()

    def _begin(self, stream: ClientStream) -> asyncio.TimerHandle:
        """Adds a stream; returns the timer that terminates it unless an arbitration update arrives."""
        silent = [other for other in self._open() if other.client.role is None]
        if len(silent) >= MAX_SILENT:
            silent[0].fail(
                exhausted(f"{len(silent)} streams have sent no arbitration update; the limit is {MAX_SILENT}")
            )
        announced = len(self._open()) - len(silent)
        self.streams[stream.client] = stream
        loop = asyncio.get_running_loop()
        if announced >= MAX_STREAMS:
            return loop.call_later(ANNOUNCED_WHEN_FULL_S, stream.fail, _full(announced))
        message = f"the stream has sent no arbitration update for {ANNOUNCED_S:g} s"
        return loop.call_later(ANNOUNCED_S, stream.fail, P4RtError(Code.DEADLINE_EXCEEDED, message))

    def _open(self) -> list[ClientStream]:
        return [stream for stream in self.streams.values() if stream.error is None]

    def _evict_backup(self, message: p4r.MasterArbitrationUpdate) -> None:
        """At the limit of streams: evicts a backup if the update makes a new primary, else rejects it.

        Of the backups of the new primary's role, the one with the lowest election id is evicted. If only the
        device's limit is reached, a new primary of the default role evicts among the backups of all roles.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: the client does not become primary.
        """
        arbiter, role = self.device.arbiter, message.role.name
        announced = [stream for stream in self._open() if stream.client.role is not None]
        of_role = [stream for stream in announced if stream.client.role == role]
        full = len(announced) >= MAX_STREAMS
        if not full and len(of_role) < MAX_ROLE_STREAMS:
            return
        role_known = bool(of_role) or role == DEFAULT_ROLE
        used = {stream.client.election_id for stream in of_role}
        if (
            not role_known
            or election_of(message.election_id) in used
            or not arbiter.takes_over(ArbitrationClient(), message)
        ):
            if full:
                raise _full(len(announced))
            return  # the arbiter rejects it: too many streams of the role
        evictable = announced if role == DEFAULT_ROLE and len(of_role) < MAX_ROLE_STREAMS else of_role
        victim = min(  # False sorts before True: a backup before a primary
            evictable, key=lambda each: (arbiter.is_primary(each.client), each.client.election_id or 0)
        )
        victim.fail(exhausted("too many streams are open; this one was evicted for a new primary"))
        self._notify(arbiter.disconnect(victim.client))

    @staticmethod
    async def _finish(stream: ClientStream, writer: asyncio.Task[None]) -> None:
        """Flushes the stream: the status can only be sent after the message that is being written."""
        stream.close()
        done, _ = await asyncio.wait({writer}, timeout=FLUSH_S)
        if not done:
            raise asyncio.CancelledError  # the client reads no messages, so it would not read a status

    def _takes_over(self, stream: ClientStream, message: p4r.StreamMessageRequest) -> bool:
        """Whether a message makes a client primary instead of another one."""
        arbitration = message.WhichOneof("update") == "arbitration"
        return arbitration and self.device.arbiter.takes_over(stream.client, message.arbitration)

    def _handle(self, stream: ClientStream, message: p4r.StreamMessageRequest) -> None:
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            self._notify(self.device.arbiter.update(stream.client, message.arbitration))
            # cancels the pushes of clients that are no longer primary
            for cancelled, request in self._pushes.items():
                with contextlib.suppress(P4RtError):
                    self.device.authorize(request)
                    continue
                cancelled.set()
            return
        try:
            self._handle_other(stream, kind, message)
        except P4RtError as error:
            response = p4r.StreamMessageResponse()
            response.error.canonical_code = error.code
            response.error.message = error.message
            if kind == "packet":
                response.error.packet_out.packet_out.CopyFrom(message.packet)
            elif kind == "digest_ack":
                response.error.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
            else:
                response.error.other.other.CopyFrom(message.other)
            stream.offer(response.SerializeToString())

    def _handle_other(
        self, stream: ClientStream, kind: str | None, message: p4r.StreamMessageRequest
    ) -> None:
        if kind in ("packet", "digest_ack") and not self.device.arbiter.is_primary(stream.client):
            raise P4RtError(Code.PERMISSION_DENIED, "the client is not the primary of its role")
        roles, role = self.device.roles, stream.client.role or DEFAULT_ROLE
        if kind == "packet":
            if roles is not None:
                roles.check(role, roles.packet_out)
            frame = self.device.packet_out(message.packet)
            try:
                self._data_plane.send_packet_out(frame)
            except PortError as error:
                raise P4RtError(Code.INVALID_ARGUMENT, str(error)) from error
        elif kind == "digest_ack":
            if roles is not None:
                roles.check(role, message.digest_ack.digest_id)
            self.device.acknowledge(message.digest_ack)
        elif kind == "other":
            raise P4RtError(Code.UNIMPLEMENTED, "other stream messages are not supported")
        else:
            raise P4RtError(Code.INVALID_ARGUMENT, "the stream message is empty")

    def _notify(self, notices: Notices) -> None:
        for client, update in notices:
            stream = self.streams.get(client)
            if stream is not None:
                stream.send(p4r.StreamMessageResponse(arbitration=update))

    def _offer(self, message: p4r.StreamMessageResponse, object_id: int = 0) -> None:
        """Sends a notification to the primaries of all roles that have access to an object of P4Info.

        `object_id`: the id of the object that the notification is about; 0: every role gets it.
        """
        octets, roles = message.SerializeToString(), self.device.roles
        for client in self.device.arbiter.primaries():
            if roles is None or roles.allows(client.role or DEFAULT_ROLE, object_id):
                self.streams[client].offer(octets)

    # ---- events ----

    def deliver_events(self) -> None:
        """Sends the data plane's packet-ins and digest lists; later iterations send excess packet-ins."""
        roles = self.device.roles
        if not self._frames:
            self._frames.extend(self._data_plane.packet_ins())
        for _ in range(min(len(self._frames), PACKETS_AT_ONCE)):
            packet = self.device.packet_in(self._frames.popleft())
            if packet is not None:
                self._offer(p4r.StreamMessageResponse(packet=packet), 0 if roles is None else roles.packet_in)
        for digest in self.device.digest_lists(self._data_plane.now_ns()):
            digest.timestamp = self._clock()
            self._offer(p4r.StreamMessageResponse(digest=digest), digest.digest_id)
        if self._frames:
            asyncio.get_running_loop().call_soon(self.deliver_events)

    def statistics(self) -> dict[str, int]:
        """Counts of lost notifications: dropped for slow clients, and digests evicted unacknowledged."""
        dropped = self._dropped + sum(stream.dropped for stream in self.streams.values())
        return {"notifications_dropped": dropped, "digests_forgotten": self.device.digests_forgotten()}

    def deliver_idle(self) -> None:
        """Sends idle timeout notifications."""
        entries = self.device.idle_entries(self._data_plane.now_ns())
        for table_id, group in groupby(entries, key=lambda entry: entry.table_id if self.device.roles else 0):
            response = p4r.StreamMessageResponse()
            response.idle_timeout_notification.timestamp = self._clock()
            response.idle_timeout_notification.table_entry.extend(group)
            self._offer(response, table_id)


class Services(Protocol):
    """The service of one device, or of several at one address (sim.network.serve)."""

    def service_of(self, device_id: int, changes: bool = False, /) -> P4RuntimeService:
        """The service for a call with this device id (0: none is given); `changes`: a Write or push."""
        ...

    def stream_channel(self, requests: Any, context: Any, /) -> Any: ...


def rpc_handler(services: Services) -> grpc.GenericRpcHandler[Any, Any]:
    """The gRPC handler of the service: limits the size and number of requests, and sets canonical codes."""
    scheduler, admission = Scheduler(), Admission()

    async def write(octets: bytes, context: _AnyContext) -> Any:
        async with admission.admit(octets):
            request = await parsed_batch(p4r.WriteRequest, scheduler.pause, octets)
            del octets  # may be as large as the parsed request
            return await services.service_of(request.device_id, True).write(request, context)

    async def read(octets: bytes, context: _AnyContext) -> None:
        async with admission.admit(octets) as leave:
            request = await parsed_batch(p4r.ReadRequest, scheduler.pause, octets)
            del octets
            responses = services.service_of(request.device_id).read(request, context)
            del request
            async with contextlib.aclosing(responses):
                async for response in responses:
                    leave()  # all responses are made; the client may read them slowly
                    await shielded(context.write(response))

    async def stream_channel(octets: AsyncIterator[bytes], context: _AnyContext) -> None:
        await services.stream_channel(_messages(octets), context)

    async def set_config(octets: bytes, context: _AnyContext) -> Any:
        async with admission.admit(octets):
            request = parsed_config(octets)
        del octets
        return await services.service_of(request.device_id, True).set_config(request, context)

    async def get_config(octets: bytes, context: _AnyContext) -> None:
        request = parsed(p4r.GetForwardingPipelineConfigRequest, octets)
        await services.service_of(request.device_id).get_config(request, context)

    async def capabilities(octets: bytes, context: _AnyContext) -> Any:
        request = parsed(p4r.CapabilitiesRequest, octets)
        return await services.service_of(request.device_id).capabilities(request, context)

    unary, to_stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    methods: dict[str, tuple[Callable[..., grpc.RpcMethodHandler[Any, Any]], Behaviour]] = {
        "Write": (unary, write),
        "Read": (to_stream, read),
        "SetForwardingPipelineConfig": (unary, set_config),
        # as a stream, so that get_config itself writes the response and can wait until it is sent; a callback
        # of gRPC at the end of the call would leak memory
        "GetForwardingPipelineConfig": (to_stream, get_config),
        "StreamChannel": (grpc.stream_stream_rpc_method_handler, stream_channel),
        "Capabilities": (unary, capabilities),
    }
    handlers = {
        name: handler(with_status(method), response_serializer=_serialize)
        for name, (handler, method) in methods.items()
    }
    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", handlers)


def _full(streams: int) -> P4RtError:
    return exhausted(f"{streams} streams are open; the limit is {MAX_STREAMS}")


async def _messages(stream: AsyncIterator[bytes]) -> AsyncIterator[p4r.StreamMessageRequest]:
    limit = MAX_FIRST  # the largest first message; later ones may have MAX_SMALL bytes
    async for octets in stream:
        message = parsed(p4r.StreamMessageRequest, octets, limit)
        del octets
        yield message
        limit = MAX_SMALL


def _serialize(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()
