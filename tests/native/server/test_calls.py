# SPDX-License-Identifier: Apache-2.0
"""What clients leave behind in gRPC's core when they go: nothing (native/server/calls.py)."""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tailrace.native.server.calls import new_event_loop, received, undisturbed
from tests.eventually import LONG_S

BEFORE, STREAMS = 1000, 4000
"""Streams that come first, and those that may leave nothing."""

MOST_BYTES = 16 * STREAMS
"""Otherwise it is 100 and more for each."""

LARGE = bytes(1 << 20)
"""More than is under way to a client that does not read."""

CLIENT = """
import asyncio, sys
import grpc.aio

async def one(call, number):
    await call.write(b"hello")
    if number % 2:
        await call.read()
    call.cancel()

async def main():
    async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
        make = channel.stream_stream("/test/Stream")
        for first in range(0, int(sys.argv[2]), 50):
            await asyncio.gather(*(one(make(), number) for number in range(50)))

asyncio.run(main())
"""

Handler = Callable[[AsyncIterator[bytes], Any], Awaitable[None]]


class _MallInfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "used",
            "free",
            "top",
        )
    ]


def used_bytes() -> int:
    """What malloc has given away; 0 where it does not say."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        return 0
    tell.restype = _MallInfo2
    return int(tell().used)


async def echo(messages: AsyncIterator[bytes], context: Any) -> None:
    async for message in received(messages):
        await undisturbed(context.write(message))


async def flood(messages: AsyncIterator[bytes], context: Any) -> None:
    async for _ in received(messages):
        await undisturbed(context.write(LARGE))


async def _growth(handler: Handler, address: str) -> int:
    server = grpc.aio.server()
    methods = {"Stream": grpc.stream_stream_rpc_method_handler(handler)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
    server.add_insecure_port(address)
    await server.start()
    seen = []
    for streams in (BEFORE, STREAMS):
        client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, address, str(streams))
        assert await asyncio.wait_for(client.wait(), LONG_S) == 0
        seen.append(used_bytes())
    await server.stop(0)
    return seen[1] - seen[0]


@pytest.mark.parametrize("handler", [echo, flood])
def test_streams_that_clients_cancel_leave_no_memory(handler: Handler, tmp_path: Path) -> None:
    """4,000 of them, with a read or a write under way."""
    if not used_bytes():
        pytest.skip("this C library does not tell what is used")
    loop = new_event_loop()
    try:
        assert loop.run_until_complete(_growth(handler, f"unix:{tmp_path}/s")) < MOST_BYTES
    finally:
        loop.close()


def test_who_is_cancelled_leaves_the_call_alone() -> None:
    done = []

    async def call() -> None:
        await asyncio.sleep(0.01)
        done.append(True)

    async def run() -> None:
        task = asyncio.ensure_future(undisturbed(call()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not done
        while not done:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), LONG_S))


def test_errors_of_a_call_are_told() -> None:
    async def call() -> None:
        raise KeyError("mine")

    loop = new_event_loop()
    with pytest.raises(KeyError, match="mine"):
        loop.run_until_complete(undisturbed(call()))
    loop.close()
