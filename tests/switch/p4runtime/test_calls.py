# SPDX-License-Identifier: Apache-2.0
"""What clients leave behind in gRPC's core when they go: nothing (switch/p4runtime/calls.py)."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tailrace.spec import heap
from tailrace.switch.p4runtime.calls import Messages, new_event_loop, shielded
from tests.eventually import LONG_S
from tests.long import long

ROOT = Path(__file__).resolve().parents[3]

BEFORE, STREAMS = 4000, 16000
"""Streams that come first, and those that may leave nothing."""

MOST_BYTES = 16 * STREAMS
"""Otherwise it is 30 and more for each; some 100 KB come and go."""

SETTLES = 30
"""Looks at what is used, each a tenth of a second after the last."""

LARGE = bytes(1 << 20)

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


async def echo(_messages: AsyncIterator[bytes], context: Any) -> None:
    """Answers each message."""
    async for message in Messages(context):
        await shielded(context.write(message))


async def flood(_messages: AsyncIterator[bytes], context: Any) -> None:
    """Answers with more than is under way to a client that does not read."""
    async for _ in Messages(context):
        await shielded(context.write(LARGE))


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


async def _serve(kind: str, address: str) -> tuple[int, int]:
    """What is used after the first streams, and after the others."""
    server = grpc.aio.server()
    methods = {"Stream": grpc.stream_stream_rpc_method_handler({"echo": echo, "flood": flood}[kind])}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
    server.add_insecure_port(address)
    await server.start()
    seen = []
    for streams in (BEFORE, STREAMS):
        client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, address, str(streams))
        assert await asyncio.wait_for(client.wait(), LONG_S) == 0
        seen.append(await _settled(seen[0] + MOST_BYTES if seen else 0))
    await server.stop(0)
    return seen[0], seen[1]


async def _settled(enough: int) -> int:
    """The least that is used in some seconds: a connection goes a while after its client."""
    least = sys.maxsize
    for _ in range(SETTLES):
        await asyncio.sleep(0.1)
        gc.collect()
        least = min(least, used_bytes())
        if least < enough:
            break
    return least


@pytest.mark.parametrize("kind", ["echo", pytest.param("flood", marks=long)])
def test_streams_that_clients_cancel_leave_no_memory(kind: str, tmp_path: Path) -> None:
    """16,000 of them, with a read or a write under way, at a server in a process of its own: nothing else that
    has run before changes what it uses.
    """
    command = [sys.executable, "-m", "tests.switch.p4runtime.test_calls", kind, f"unix:{tmp_path}/s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=3 * LONG_S)
    before, after = map(int, done.stdout.split())
    if not before:
        pytest.skip("this C library does not tell what is used")
    assert after - before < MOST_BYTES


def test_who_is_cancelled_leaves_the_call_alone() -> None:
    done = []

    async def call() -> None:
        await asyncio.sleep(0.01)
        done.append(True)

    async def run() -> None:
        task = asyncio.ensure_future(shielded(call()))
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
        loop.run_until_complete(shielded(call()))
    loop.close()


if __name__ == "__main__":
    heap.share_one_heap()
    print(*new_event_loop().run_until_complete(_serve(*sys.argv[1:])))  # noqa: T201 - to who has started it
