# SPDX-License-Identifier: Apache-2.0
"""One client's StreamChannel and its send queue, which is bounded as clients may be slow or dead."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import grpc

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import P4RtError, exhausted
from tailrace.switch.p4runtime.arbitration import ArbitrationClient
from tailrace.switch.p4runtime.calls import shielded

_log = logging.getLogger(__name__)

QUEUED_MESSAGES = 4096
QUEUED_BYTES = 8 << 20
"""Most packet-ins and notifications in the queue, and most bytes of them; further ones are dropped."""
MAX_QUEUED_RESPONSES = 256
"""Most queued responses, which are messages that must not be dropped; a further one ends the stream."""
RESUME_RESPONSES = 32
"""While this many responses or more are queued, no message is read from the client."""

Context = grpc.aio.ServicerContext[bytes, bytes | p4r.StreamMessageResponse]


class ClientStream:
    """One StreamChannel: a client and its send queue. Create it in the task that serves the stream."""

    def __init__(self) -> None:
        self.client = ArbitrationClient()
        self.dropped = 0
        self.error: P4RtError | None = None
        self._task = asyncio.current_task()
        self._queue: deque[bytes | p4r.StreamMessageResponse] = deque()
        self._bytes = 0
        self._queued_responses = 0
        self._closing = False
        self._readable = asyncio.Event()
        self._taken = asyncio.Event()

    def send(self, message: p4r.StreamMessageResponse) -> None:
        """Queues a response, which is never dropped; if the queue is full, the stream ends with an error."""
        if self._queued_responses >= MAX_QUEUED_RESPONSES:
            self.fail(exhausted(f"the client has not read {self._queued_responses} responses on its stream"))
            return
        self._queued_responses += 1
        self._put(message)

    def offer(self, octets: bytes) -> bool:
        """Queues a packet-in or notification, or drops it if the queue is full. Returns whether it is queued.

        Args:
            octets: the serialized message; the queues of all clients share it.
        """
        if len(self._queue) < QUEUED_MESSAGES and self._bytes + len(octets) <= QUEUED_BYTES:
            self._bytes += len(octets)
            self._put(octets)
            return True
        if not self.dropped:
            _log.warning("a primary client reads slowly: packet-ins and notifications to it are dropped")
        self.dropped += 1
        return False

    def _put(self, message: bytes | p4r.StreamMessageResponse) -> None:
        self._queue.append(message)
        self._readable.set()

    def fail(self, error: P4RtError) -> None:
        """Terminates the stream with an error."""
        if self.error is None and self._task is not None:
            self.error = error
            self._task.cancel()

    async def write_all(self, context: Context) -> None:
        """Writes queued messages until `close` is called; then it writes the remaining responses only."""
        while True:
            while self._queue:
                message = self._queue.popleft()
                if not isinstance(message, bytes):
                    await shielded(context.write(message))
                    self._queued_responses -= 1
                elif not self._closing:
                    await shielded(context.write(message))
                    self._bytes -= len(message)
                self._taken.set()
            if self._closing:
                return
            self._readable.clear()
            await self._readable.wait()

    def close(self) -> None:
        """Makes `write_all` return after it has written all queued responses."""
        self._closing = True
        self._readable.set()

    async def drain(self) -> None:
        """Waits until fewer than RESUME_RESPONSES responses are queued."""
        while self._queued_responses >= RESUME_RESPONSES:
            self._taken.clear()
            await self._taken.wait()
