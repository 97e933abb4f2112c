# SPDX-License-Identifier: Apache-2.0
"""gRPC over memory: delays, order and what goes wrong, as its clients and servers see it.

That a switch answers over it as it does over gRPC is in test_client.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from tailrace.p4rt.grpc_in_memory import WINDOW, ChannelModel, InMemoryGrpc, RpcFault
from tailrace.sim.network.loop import VirtualLoop
from tailrace.spec.constants import NS_PER_S
from tests.sim.network.test_loop import Clock

HOUR_NS = 3600 * NS_PER_S
PLACE = "s1"


class Echo:
    """A server with one call of each kind; `done` are the requests that it has carried out."""

    def __init__(self, memory: InMemoryGrpc) -> None:
        self.done: list[bytes] = []
        self.cancelled = 0
        handlers = {
            "Say": grpc.unary_unary_rpc_method_handler(self.say),
            "Count": grpc.unary_stream_rpc_method_handler(self.count),
            "Talk": grpc.stream_stream_rpc_method_handler(self.talk),
            "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "Hang": grpc.unary_unary_rpc_method_handler(self.hang),
        }
        memory.serve(PLACE, [grpc.method_handlers_generic_handler("echo", handlers)])

    async def say(self, request: bytes, context: Any) -> bytes:
        self.done.append(request)
        return request

    async def count(self, request: bytes, context: Any) -> None:
        for number in range(int(request)):
            await context.write(str(number).encode())

    async def talk(self, requests: AsyncIterator[bytes], context: Any) -> None:
        try:
            async for request in requests:
                self.done.append(request)
                await context.write(request)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def fail(self, request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("why-bin", b"\x00because"),))
        context.set_code(grpc.StatusCode.OUT_OF_RANGE)
        context.set_details("too much")
        return b""

    async def hang(self, request: bytes, context: Any) -> bytes:
        try:
            await asyncio.sleep(HOUR_NS)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError


class Bench:
    """A clock, a loop, the memory and a channel to the server, which is there."""

    def __init__(self, **ways: Any) -> None:
        self.clock = Clock()
        self.loop = VirtualLoop(self.clock)
        self.memory = InMemoryGrpc(ChannelModel(**ways))
        self.server = Echo(self.memory)
        self.channel = self.memory.insecure_channel(PLACE)

    def call(self, method: str, request: bytes = b"", timeout_s: float | None = None) -> Any:
        return self.channel.unary_unary(f"/echo/{method}")(request, timeout=timeout_s)

    def run(self, body: Callable[[Bench], Awaitable[None]]) -> None:
        """Runs it to its end."""
        tasks: list[asyncio.Task[None]] = []

        async def whole() -> None:
            await body(self)

        self.loop.run_ready(lambda: tasks.append(self.loop.create_task(whole())))
        self.clock.run(HOUR_NS)
        assert tasks[0].done(), "it still waits after an hour"
        tasks[0].result()
        self.loop.end()


async def code_of(call: Awaitable[Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    code: grpc.StatusCode = caught.value.code()
    return code


def test_delays_count_both_ways() -> None:
    """The call itself, its request beside it, and the answer."""

    async def body(bench: Bench) -> None:
        assert await bench.call("Say", b"hello") == b"hello"
        assert bench.clock.now_ns == 2 * 7_000

    Bench(delay_s=lambda _address: 7e-6).run(body)


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_keeps_its_order(seed: int) -> None:
    """Whatever delays its messages have, both ways."""
    rng = random.Random(seed)
    sent = [str(number).encode() for number in range(200)]

    async def body(bench: Bench) -> None:
        call = bench.channel.stream_stream("/echo/Talk")()
        for message in sent:
            await call.write(message)
        assert [await call.read() for _ in sent] == sent
        call.cancel()

    Bench(delay_s=lambda _address: rng.choice((0.0, rng.random()))).run(body)


def test_an_end_comes_last() -> None:
    async def body(bench: Bench) -> None:
        call = bench.channel.unary_stream("/echo/Count")(b"5")
        assert [answer async for answer in call] == [b"0", b"1", b"2", b"3", b"4"]

    Bench().run(body)


def test_who_sends_too_much_waits() -> None:
    """A server whose answers nobody takes stops after WINDOW of them, and takes no more requests then."""

    async def body(bench: Bench) -> None:
        call = bench.channel.stream_stream("/echo/Talk")()

        async def send() -> None:
            for number in range(4 * WINDOW):
                await call.write(str(number).encode())

        sender = asyncio.create_task(send())
        await asyncio.sleep(1)
        assert not sender.done()
        assert len(bench.server.done) <= WINDOW + 1
        for number in range(4 * WINDOW):
            assert await call.read() == str(number).encode()
        await sender
        call.cancel()

    Bench().run(body)


def test_errors_travel_with_their_details() -> None:
    async def body(bench: Bench) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await bench.call("Fail")
        error = caught.value
        assert (error.code(), error.details()) == (grpc.StatusCode.OUT_OF_RANGE, "too much")
        trailing: Any = error.trailing_metadata()
        assert list(trailing) == [("why-bin", b"\x00because")]
        assert await code_of(bench.call("Unheard")) is grpc.StatusCode.UNIMPLEMENTED

    Bench().run(body)


def test_deadline() -> None:
    """The client gives up at its time, and the server is told."""

    async def body(bench: Bench) -> None:
        assert await code_of(bench.call("Hang", timeout_s=0.25)) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert bench.clock.now_ns == NS_PER_S // 4
        await asyncio.sleep(1)
        assert bench.server.cancelled == 1

    Bench().run(body)


@pytest.mark.parametrize(
    ("fault", "carried_out", "code"),
    [
        (RpcFault.REQUEST_LOST, 0, grpc.StatusCode.UNAVAILABLE),
        (RpcFault.RESPONSE_LOST, 1, grpc.StatusCode.UNAVAILABLE),
        (RpcFault.NO_RESPONSE, 1, grpc.StatusCode.DEADLINE_EXCEEDED),
    ],
)
def test_faults(fault: RpcFault, carried_out: int, code: grpc.StatusCode) -> None:
    """What was done, and what the client learns of it."""

    async def body(bench: Bench) -> None:
        assert await code_of(bench.call("Say", b"x", 5)) is code
        await asyncio.sleep(1)
        assert len(bench.server.done) == carried_out

    Bench(fault=lambda _address, _method: fault).run(body)


@pytest.mark.parametrize("kind", ["end", "break_off"])
def test_what_breaks(kind: str) -> None:
    """Who waits learns of it at once, who asks again later; a server that is killed answers nobody, one whose
    connections broke does.
    """

    async def body(bench: Bench) -> None:
        stream = bench.channel.stream_stream("/echo/Talk")()
        waiting = asyncio.create_task(code_of(stream.read()))
        hanging = asyncio.create_task(code_of(bench.call("Hang")))
        await asyncio.sleep(1)
        getattr(bench.memory, kind)(PLACE)
        assert {await waiting, await hanging} == {grpc.StatusCode.UNAVAILABLE}
        with pytest.raises(asyncio.InvalidStateError):
            await stream.write(b"too late")
        await asyncio.sleep(1)
        assert bench.server.cancelled == 2
        again = bench.call("Say", b"again")
        if kind == "end":
            assert await code_of(again) is grpc.StatusCode.UNAVAILABLE
        else:
            assert await again == b"again"

    Bench().run(body)


def test_a_server_comes_back() -> None:
    """A channel finds whoever is at its address now; the one before is heard no more."""

    async def body(bench: Bench) -> None:
        before = bench.server
        hanging = asyncio.create_task(code_of(bench.call("Hang")))
        await asyncio.sleep(1)
        bench.server = Echo(bench.memory)
        assert await hanging is grpc.StatusCode.UNAVAILABLE
        assert await bench.call("Say", b"new") == b"new"
        assert (before.done, bench.server.done) == ([], [b"new"])

    Bench().run(body)


def test_a_closed_channel_ends_its_calls() -> None:
    async def body(bench: Bench) -> None:
        async with bench.channel:
            hanging = asyncio.create_task(code_of(bench.call("Hang")))
            await asyncio.sleep(1)
        assert await hanging is grpc.StatusCode.CANCELLED
        await asyncio.sleep(1)
        assert bench.server.cancelled == 1

    Bench().run(body)
