# SPDX-License-Identifier: Apache-2.0
"""How long digests that nobody acknowledges are held back: strictly, and as simple_switch_grpc does it."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from tailrace.switch.core import DigestRecord
from tailrace.switch.p4runtime.context import INSERT
from tailrace.switch.p4runtime.entities.digests import MIN_SWEEP_NS, Digests
from tailrace.switch.p4runtime.entities.schema import DigestPlan
from tests.switch.p4runtime.states import new_state
from tests.switch.p4runtime.test_stateful_batches import program

MS = 1_000_000
SECOND = 1_000 * MS


def enabled(start_ns: int, ack_timeout_ns: int, *, lenient: bool) -> tuple[Digests, DigestPlan]:
    """The only digest of the program, each message in a list of its own, as configured at `start_ns`."""
    compiled, schema = program()
    digests = new_state(compiled, schema, start_ns, lenient=lenient).digests
    ((digest_id, plan),) = schema.digests.items()
    entry = p4r.DigestEntry(digest_id=digest_id)
    entry.config.ack_timeout_ns = ack_timeout_ns
    digests.write(INSERT, entry, None)
    return digests, plan


def learned(digests: Digests, plan: DigestPlan, value: int, now_ns: int) -> int:
    """One message of the data plane at `now_ns`; the number of the list that is sent, 0 for none."""
    digests.due(now_ns)
    message = digests.record(DigestRecord(plan.index, now_ns, (value,) * len(plan.type.widths)), now_ns)
    return 0 if message is None else message.list_id


@pytest.mark.parametrize(
    ("after_ms", "strict", "lenient"), [(999, 0, 0), (1001, 2, 0), (1799, 2, 0), (1801, 2, 2)]
)
def test_the_second_of_two(after_ms: int, strict: int, lenient: int) -> None:
    """ack_timeout_ns is 1 s, the first comes 0.2 s after the configuration."""
    for kind, expected in ((False, strict), (True, lenient)):
        digests, plan = enabled(5 * SECOND, SECOND, lenient=kind)
        first = 5 * SECOND + 200 * MS
        assert learned(digests, plan, 7, first) == 1
        assert learned(digests, plan, 7, first + after_ms * MS) == expected


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "compat"])
def test_without_a_timeout_nothing_is_held_back(lenient: bool) -> None:
    digests, plan = enabled(0, 0, lenient=lenient)
    assert [learned(digests, plan, 7, now_ns) for now_ns in (0, 0, 1)] == [1, 2, 3]


class Sweeper:
    """What is held back when a timer goes over all lists: it forgets those that it has seen before."""

    def __init__(self, start_ns: int, period_ns: int) -> None:
        self._next_ns, self._period_ns = start_ns + period_ns, period_ns
        self.lists: dict[int, tuple[int, bool]] = {}

    def until(self, now_ns: int) -> None:
        while self._next_ns <= now_ns:
            self.lists = {number: (value, True) for number, (value, seen) in self.lists.items() if not seen}
            self._next_ns += self._period_ns

    def holds(self, value: int) -> bool:
        return any(held == value for held, _ in self.lists.values())


steps = st.lists(
    st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 3), st.none() | st.integers(1, 40)), max_size=40
)


@given(start_ns=st.integers(0, 1 << 62), timeout_ns=st.integers(1, 2 * SECOND), steps=steps)
def test_like_a_sweeper(start_ns: int, timeout_ns: int, steps: list[tuple[int, int, int | None]]) -> None:
    """Whenever messages and acknowledgements come, leniently just what the sweeper holds is not sent."""
    digests, plan = enabled(start_ns, timeout_ns, lenient=True)
    model = Sweeper(start_ns, max(timeout_ns, MIN_SWEEP_NS))
    now_ns = start_ns
    for delay_ns, value, acknowledged in steps:
        now_ns += delay_ns
        model.until(now_ns)
        if acknowledged is not None:
            digests.acknowledge(p4r.DigestListAck(digest_id=plan.id, list_id=acknowledged))
            model.lists.pop(acknowledged, None)
        number = learned(digests, plan, value, now_ns)
        assert (number == 0) == model.holds(value)
        if number:
            model.lists[number] = (value, False)
