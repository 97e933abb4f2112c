# SPDX-License-Identifier: Apache-2.0
"""Claims: who has a part alone has it alone, who came first has it first, and all get what they wait for."""

from __future__ import annotations

import asyncio
from collections import Counter

from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.switch.p4runtime.concurrency.lock_keys import REPLICATION
from tailrace.switch.p4runtime.concurrency.locks import LockManager, LockRequest
from tests.long import times
from tests.switch.p4runtime import states
from tests.switch.p4runtime.test_slices import program

PARTS = "abcd"
LONG_S = 60.0

requests = st.lists(
    st.tuples(
        st.frozensets(st.sampled_from(PARTS), max_size=3),
        st.frozensets(st.sampled_from(PARTS), max_size=3),
        st.integers(0, 3),
        st.sampled_from(("stay", "early", "cancel", "fail")),
    ),
    max_size=12,
)


@settings(max_examples=times(300, 3))
@given(requests)
def test_claims(asked: list[tuple[frozenset[str], frozenset[str], int, str]]) -> None:
    alone: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    came: dict[str, list[int]] = {part: [] for part in PARTS}
    had: dict[str, list[int]] = {part: [] for part in PARTS}
    claims = LockManager()

    async def work(number: int, mine: frozenset[str], ours: frozenset[str], turns: int, how: str) -> None:
        ours = ours - mine
        for part in mine | ours:
            came[part].append(number)
        async with claims.acquire(mine, ours) as claim:
            for part in mine:
                assert not alone[part] and not shared[part]
                had[part].append(number)
            for part in ours:
                assert not alone[part]
            alone.update(mine)
            shared.update(ours)
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
                if how == "fail":
                    raise RuntimeError
            finally:
                alone.subtract(mine)
                shared.subtract(ours)
            if how == "early":
                claim.release()
                await asyncio.sleep(0)

    async def run() -> None:
        tasks = []
        for number, (mine, ours, turns, how) in enumerate(asked):
            tasks.append(asyncio.create_task(work(number, mine, ours, turns, how)))
            await asyncio.sleep(0)
            if how == "cancel":
                tasks[-1].cancel()
        for end in await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), LONG_S):
            assert end is None or isinstance(end, asyncio.CancelledError | RuntimeError)

    asyncio.run(run())
    assert not claims.has_waiters()
    assert claims._queues == {}
    for part in PARTS:  # who has it alone has it in the order of coming
        assert had[part] == [number for number in came[part] if number in set(had[part])]


def test_who_has_a_part_hears_that_others_wait() -> None:
    """Once, also where that was before it asked; of who shares the part it hears nothing."""

    async def run() -> None:
        claims, notices = LockManager(), list[str]()

        async def wait(*, alone: bool) -> None:
            async with claims.acquire("a" if alone else (), () if alone else "a"):
                pass

        async with claims.acquire(shared="a") as claim:
            claim.when_contended(lambda: notices.append("first"))
            await asyncio.create_task(wait(alone=False))
            assert notices == []
            waiting = [asyncio.create_task(wait(alone=True)) for _ in range(3)]
            await asyncio.sleep(0)
            assert notices == ["first"]
            claim.when_contended(lambda: notices.append("late"))
            assert notices == ["first", "late"]
        await asyncio.gather(*waiting)

    asyncio.run(run())


def test_the_parts_of_a_pipeline() -> None:
    """A table has its own, with its direct resources; a profile shares that of its tables; without an id all."""
    state = states.new_state(*program())
    try:
        parts, schema = state.lock_keys, state.schema
        tables = {plan.name.rpartition(".")[2]: plan for plan in schema.tables.values()}

        def of(**fields: object) -> set[object]:
            return set(parts.of(p4r.Entity(**fields)))

        mac = of(table_entry=p4r.TableEntry(table_id=tables["mac"].id))
        assert len(mac) == 1
        same = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=tables["mac"].id))
        assert of(direct_counter_entry=same) == mac
        everything = of(table_entry=p4r.TableEntry())
        assert mac < everything
        for plan in schema.tables.values():
            if plan.profile is not None:
                member = p4r.ActionProfileMember(action_profile_id=plan.profile.id)
                assert of(action_profile_member=member) == of(table_entry=p4r.TableEntry(table_id=plan.id))
        number = next(iter(schema.counters))
        counter = of(counter_entry=p4r.CounterEntry(counter_id=number))
        assert counter == {number}
        assert not counter & everything
        assert of(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()) == {REPLICATION}
        assert of(table_entry=p4r.TableEntry(table_id=99)) == set()
        assert set(parts.of(p4r.Entity())) == set()
    finally:
        state.context.switch.close()


def test_a_claim_is_left_once() -> None:
    async def run() -> None:
        left: list[LockRequest] = []
        claim = LockRequest((), "a", left.append)
        claim.release()
        claim.release()
        assert left == [claim]
        claim.when_contended(lambda: left.append(claim))
        claim.notify_waiter()
        assert left == [claim]

    asyncio.run(run())
