# SPDX-License-Identifier: Apache-2.0
"""The queue of one client's stream, bounded for slow and dead clients."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import grpc
from finsy.proto import p4r

from tailrace.p4rt.status import P4RtError, exhausted
from tailrace.switch.p4runtime.arbitration import ArbitrationClient
from tailrace.switch.p4runtime.calls import shielded

_log = logging.getLogger(__name__)

QUEUED_MESSAGES = 4096
QUEUED_BYTES = 8 << 20
"""Packet-ins and notifications in the queue; further ones are dropped."""
MAX_QUEUED_RESPONSES = 256
"""Queued messages that must arrive; one more ends the stream."""
RESUME_RESPONSES = 32
"""With so many queued, no message is read from the client."""

Context = grpc.aio.ServicerContext[bytes, bytes | p4r.StreamMessageResponse]


class ClientStream:
    """One StreamChannel: a client and its queue. Make it in the task that serves it."""

    def __init__(self) -> None:
        self.client = ArbitrationClient()
        self.dropped = 0
        self.error: P4RtError | None = None
        self._task = asyncio.current_task()
        self._queue: deque[bytes | p4r.StreamMessageResponse] = deque()
        self._bytes = 0
        self._must_arrive = 0
        self._closing = False
        self._readable = asyncio.Event()
        self._taken = asyncio.Event()

    def send(self, message: p4r.StreamMessageResponse) -> None:
        """Queues a message that must arrive; a full queue ends the stream."""
        if self._must_arrive >= MAX_QUEUED_RESPONSES:
            self.fail(exhausted(f"the client has not taken {self._must_arrive} messages of its stream"))
            return
        self._must_arrive += 1
        self._put(message)

    def offer(self, octets: bytes) -> bool:
        """Queues a message that may be dropped; whether it was queued.

        Args:
            octets: of the message, shared by the queues of all clients.
        """
        if len(self._queue) < QUEUED_MESSAGES and self._bytes + len(octets) <= QUEUED_BYTES:
            self._bytes += len(octets)
            self._put(octets)
            return True
        if not self.dropped:
            _log.warning("a primary is slow: packet-ins and notifications for it are dropped")
        self.dropped += 1
        return False

    def _put(self, message: bytes | p4r.StreamMessageResponse) -> None:
        self._queue.append(message)
        self._readable.set()

    def fail(self, error: P4RtError) -> None:
        """Fails the stream with an error."""
        if self.error is None and self._task is not None:
            self.error = error
            self._task.cancel()

    async def write_all(self, context: Context) -> None:
        """Writes messages until `close`, then those that must arrive."""
        while True:
            while self._queue:
                message = self._queue.popleft()
                if not isinstance(message, bytes):
                    await shielded(context.write(message))
                    self._must_arrive -= 1
                elif not self._closing:
                    await shielded(context.write(message))
                    self._bytes -= len(message)
                self._taken.set()
            if self._closing:
                return
            self._readable.clear()
            await self._readable.wait()

    def close(self) -> None:
        """Has `write_all` return, once it has written what must arrive."""
        self._closing = True
        self._readable.set()

    async def drain(self) -> None:
        """Waits until the client has taken most messages that must arrive."""
        while self._must_arrive >= RESUME_RESPONSES:
            self._taken.clear()
            await self._taken.wait()
