# SPDX-License-Identifier: Apache-2.0
"""What waits for one client's stream, which may take it slowly or never."""

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
"""Packet-ins and notifications that wait for a slow client before new ones are dropped."""
MAX_QUEUED_RESPONSES = 256
"""Messages that must arrive and wait: beyond, the client is taken for dead."""
RESUME_RESPONSES = 32
"""So many of them, and nothing more is read from the client."""

Context = grpc.aio.ServicerContext[bytes, bytes | p4r.StreamMessageResponse]


class ClientStream:
    """One StreamChannel: a client and the messages that wait for it. Make it in the task that serves it."""

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
        """Queues a message that must arrive; a client for which too many wait is cut off."""
        if self._must_arrive >= MAX_QUEUED_RESPONSES:
            self.fail(exhausted(f"the client has not taken {self._must_arrive} messages of its stream"))
            return
        self._must_arrive += 1
        self._put(message)

    def offer(self, octets: bytes) -> bool:
        """Queues a message that may be lost when the client is slow; whether it was queued.

        Args:
            octets: of the message, the same object for all clients: many that are slow keep it once.
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
        """Ends the stream with an error."""
        if self.error is None and self._task is not None:
            self.error = error
            self._task.cancel()

    async def write_all(self, context: Context) -> None:
        """Writes messages until `close`, and then what has to arrive."""
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
        """Ends `write_all`, once it has written what has to arrive."""
        self._closing = True
        self._readable.set()

    async def room(self) -> None:
        """Waits until the client has taken most of what must arrive."""
        while self._must_arrive >= RESUME_RESPONSES:
            self._taken.clear()
            await self._taken.wait()
