# SPDX-License-Identifier: Apache-2.0
"""Nothing depends on the windows in which the network is run, nor on where runs are cut."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sim.network.random_runs import SPAN_NS, RandomRun

_SETTINGS = settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.too_slow],
)


# a cut between the end of a pause and the next event of the paused switch
@example(seed=12604, faults=False, pfc=True, cuts=[29647])
@given(
    seed=st.integers(0, 2**32),
    faults=st.booleans(),
    pfc=st.booleans(),
    cuts=st.lists(st.integers(0, 2 * SPAN_NS), max_size=8),
)
@_SETTINGS
def test_windows_and_single_instants_give_the_same(
    seed: int, faults: bool, pfc: bool, cuts: list[int]
) -> None:
    """Frames, times, losses, queues, paths: all are equal, in one run or in pieces."""
    single_steps = RandomRun(seed, faults=faults, pfc=pfc, stepwise=True).go()
    assert RandomRun(seed, faults=faults, pfc=pfc).go() == single_steps
    # NICs are asked for frames once more at each cut
    pieces = RandomRun(seed, faults=faults, pfc=pfc).go(cuts)
    assert replace(pieces, events=single_steps.events) == single_steps


@given(seed=st.integers(0, 2**32), pfc=st.booleans())
@settings(parent=_SETTINGS, max_examples=20)
def test_being_looked_at_changes_nothing(seed: int, pfc: bool) -> None:
    """A tap makes the network go instant by instant."""
    plain = RandomRun(seed, faults=True, pfc=pfc).go()
    tapped = RandomRun(seed, faults=True, pfc=pfc)
    events: list[tuple[int, str]] = []
    tapped.net.tap(lambda wire, event, now_ns, frame, virtual: events.append((now_ns, event.value)))
    assert tapped.go() == plain
    assert [now_ns for now_ns, _ in events] == sorted(now_ns for now_ns, _ in events)
    counts = {event: sum(kind == event for _, kind in events) for event in ("sent", "received", "lost")}
    assert counts["received"] == plain.traffic.delivered
    assert counts["lost"] == plain.traffic.cut + plain.traffic.dropped
    assert counts["sent"] == counts["received"] + counts["lost"] + plain.account.under_way.frames
