# SPDX-License-Identifier: Apache-2.0
"""An event loop in a network's time: exact, repeatable, and nothing of it waits for the machine."""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections.abc import Callable, Iterator

import pytest

from tailrace.sim.network import Network
from tailrace.sim.network.loop import VirtualLoop
from tailrace.spec.constants import NS_PER_S
from tailrace.topology import parse_topology

US = 1e-6


class Clock:
    """A clock that goes from one time at which it was to call back to the next."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self.calls = 0

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        if time_ns is None or time_ns <= self.now_ns:
            callback()
            return
        self.calls += 1
        heapq.heappush(self._waiting, (time_ns, self.calls, callback))

    def run(self, until_ns: int) -> None:
        while self._waiting and self._waiting[0][0] <= until_ns:
            self.now_ns, _, callback = heapq.heappop(self._waiting)
            callback()
        self.now_ns = until_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(clock: Clock) -> Iterator[VirtualLoop]:
    made = VirtualLoop(clock)
    yield made
    made.end()


@pytest.mark.parametrize("seed", range(5))
def test_every_timer_fires_at_its_nanosecond(clock: Clock, loop: VirtualLoop, seed: int) -> None:
    """However many there are, in whatever order they were set, and however late the time is."""
    rng = random.Random(seed)
    clock.now_ns = begin_ns = rng.choice((0, 10**9, 10**12))
    fired: list[tuple[int, int]] = []

    async def wait(delay_ns: int) -> None:
        await asyncio.sleep(delay_ns / NS_PER_S)
        fired.append((clock.now_ns, begin_ns + delay_ns))

    delays = [rng.randrange(1, 10**7) for _ in range(300)]
    loop.run_ready(lambda: [loop.create_task(wait(delay)) for delay in delays] and None)
    clock.run(begin_ns + 10**7)
    assert len(fired) == len(delays)
    assert all(now == due for now, due in fired)


def test_a_second_takes_no_second(clock: Clock, loop: VirtualLoop) -> None:
    """An hour of waiting, timeouts that fire and timeouts that do not."""
    seen: list[object] = []

    async def work() -> None:
        await asyncio.sleep(3600)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        seen.append(await asyncio.wait_for(asyncio.sleep(30, "done"), 60))
        seen.append(await asyncio.get_running_loop().run_in_executor(None, sum, (1, 2)))

    began_s = time.monotonic()
    loop.run_ready(lambda: loop.create_task(work()))
    clock.run(2 * 3600 * NS_PER_S)
    assert seen == ["done", 3]
    assert time.monotonic() - began_s < 60


def test_cancelled_timers_wake_nobody(clock: Clock, loop: VirtualLoop) -> None:
    """Ten thousand questions that are answered in time cost no ten thousand wake-ups later."""

    async def ask() -> None:
        for _ in range(10_000):
            await asyncio.wait_for(asyncio.sleep(0), 1)

    loop.run_ready(lambda: loop.create_task(ask()))
    assert clock.calls <= 1


def test_within_a_turn_and_within_another_loop(clock: Clock, loop: VirtualLoop) -> None:
    """`turn` in a turn is later in the same one; and somebody's own loop, as a notebook has, goes on."""
    order: list[str] = []

    def outer() -> None:
        loop.run_ready(lambda: order.append("inner"))
        order.append("outer")

    async def notebook() -> asyncio.AbstractEventLoop:
        loop.run_ready(outer)
        return asyncio.get_running_loop()

    async def same() -> bool:
        before = asyncio.get_running_loop()
        return await notebook() is before

    assert asyncio.run(same())
    assert order == ["outer", "inner"]


def test_end_lets_tasks_clean_up(clock: Clock) -> None:
    """What they wait for when they are cancelled is cancelled, too."""
    loop = VirtualLoop(clock)
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            ended.append("first")
            try:
                await asyncio.sleep(1)
            finally:
                ended.append("second")

    loop.run_ready(lambda: loop.create_task(work()))
    loop.end()
    assert ended == ["first", "second"]
    assert loop.is_closed()
    clock.run(10 * NS_PER_S)  # nothing of it wakes any more


def test_a_network_is_such_a_clock() -> None:
    """Its callbacks come between packets, at the loop's times."""
    with Network(parse_topology("leaf-spine:leaves=1,spines=1,hosts=1")) as network:
        loop = VirtualLoop(network)
        seen: list[int] = []

        async def tick() -> None:
            for _ in range(5):
                await asyncio.sleep(3 * US)
                seen.append(network.now_ns)

        loop.run_ready(lambda: loop.create_task(tick()))
        network.advance_to(100_000)
        loop.end()
        assert seen == [3_000, 6_000, 9_000, 12_000, 15_000]


def test_no_timer_is_neither_due_nor_waited_for(
    clock: Clock, loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At some times a nanosecond later is, rounded, just what asyncio takes for not yet due."""
    rounds = 0
    once = loop._run_once  # type: ignore[attr-defined]

    def counted() -> None:
        nonlocal rounds
        rounds += 1
        assert rounds < 100, "the loop turns for ever"
        once()

    monkeypatch.setattr(loop, "_run_once", counted)
    fired: list[int] = []
    for clock.now_ns in range(15_000, 17_000):
        rounds = 0
        due = clock.now_ns + 1
        loop.call_at(due / NS_PER_S, lambda: fired.append(clock.now_ns))
        loop.run_ready()
        clock.run(due)
        assert fired[-1] == due
