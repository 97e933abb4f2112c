# SPDX-License-Identifier: Apache-2.0
"""The lock of a device: a writer has it alone, it is granted in the order of requests, and all get it."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.switch.p4runtime.scheduler import StateLock
from tests.long import times

LONG_S = 60.0

requests = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from(("stay", "cancel", "fail"))), max_size=12
)


@settings(max_examples=times(300, 3))
@given(requests)
def test_the_lock(asked: list[tuple[bool, int, str]]) -> None:
    lock, holders, order = StateLock(), dict[int, bool](), list[int]()

    async def work(number: int, shared: bool, turns: int, how: str) -> None:
        async with lock.hold(shared=shared):
            assert not holders or (shared and all(holders.values()))
            holders[number] = shared
            order.append(number)
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
                if how == "fail":
                    raise RuntimeError
            finally:
                del holders[number]

    async def run() -> None:
        tasks = []
        for number, (shared, turns, how) in enumerate(asked):
            tasks.append(asyncio.create_task(work(number, shared, turns, how)))
            await asyncio.sleep(0)
            if how == "cancel":
                tasks[-1].cancel()
        for end in await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), LONG_S):
            assert end is None or isinstance(end, asyncio.CancelledError | RuntimeError)

    asyncio.run(run())
    assert not lock.has_waiters() and not lock._queue
    for place, number in enumerate(order):  # only readers may overtake readers
        assert all(
            later > number or (asked[later][0] and asked[number][0])
            for later in order[place:]
            if later != number
        )


def test_who_waits_too_long_goes_on_without_it() -> None:
    """And leaves nothing; whoever waits behind gets the lock."""

    async def run() -> None:
        lock = StateLock()
        async with lock.hold():
            assert not lock.has_waiters()
            async with lock.hold(most_s=0.01):
                assert lock.has_waiters()
            assert not lock.has_waiters()
        async with lock.hold(shared=True), lock.hold(shared=True, most_s=LONG_S):
            assert not lock.has_waiters()

    asyncio.run(run())
