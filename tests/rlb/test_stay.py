# SPDX-License-Identifier: Apache-2.0
"""A flow that was moved to another path stays there while its selector says the same (p4src/rlb/stay.p4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, UPLINKS
from tests.rlb.models import algorithm1, further_slots, other_slot
from tests.rlb.rig import FIRST_SPORT, RlbRig, other_path

STAY = 1000
STEP = 1_000_000
MOVED_TO = other_path(roce(FIRST_SPORT), UPLINKS[0])
"""Where packets of the first flow go that want the first slot, while that is warned."""


@pytest.fixture(scope="module")
def shared() -> Iterator[RlbRig]:
    with RlbRig() as rig:
        rig.limits()
        yield rig


@pytest.fixture
def leaf(shared: RlbRig) -> RlbRig:
    shared.reset()
    shared.warnings(stay_ticks=STAY)
    shared.clock += STEP
    return shared


def path(rig: RlbRig, now: int, slot: int = 0, sport: int = FIRST_SPORT) -> int:
    """By which port a packet of a flow leaves whose selector says a slot."""
    rig.next_slot(slot)
    return rig.forward(HOST_PORT, roce(sport), rig.clock + now).port


def test_other_flows_are_not_moved(leaf):
    """Of many, but those that share the cell of a table with it."""
    leaf.warn(UPLINKS[0], leaf.clock + 10)
    assert path(leaf, 0) == MOVED_TO
    assert {path(leaf, 20 + i, sport=50_000 + i) for i in range(20)} == {UPLINKS[0]}


def test_off(leaf):
    """Each packet for itself, as Algorithm 1 has it."""
    leaf.warnings(stay_ticks=0)
    leaf.warn(UPLINKS[0], leaf.clock + 10)
    assert [path(leaf, 0), path(leaf, 20)] == [MOVED_TO, UPLINKS[0]]
    assert not any(leaf.cells("moved_flows"))


@settings(max_examples=40)
@given(
    st.integers(FIRST_SPORT, FIRST_SPORT + 99),
    st.lists(
        st.tuples(
            st.one_of(st.integers(1, 2 * STAY), st.sampled_from([STAY, STAY + 1])),
            st.integers(0, len(UPLINKS) - 1),
            st.sets(st.integers(0, len(UPLINKS) - 1)),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_against_the_model(shared, sport, packets):
    """Algorithm 1 from wherever the flow was moved to, while it goes on and its selector says the same slot."""
    rig, size = shared, len(UPLINKS)
    rig.reset()
    rig.warnings(stay_ticks=STAY)
    rig.clock += STEP
    now, moved = 0, None
    for gap, slot, warned in packets:
        now += gap
        for number, port in enumerate(UPLINKS):
            rig.warn(port, (1 << 47) * (number in warned))
        value = flow_hash(roce(sport))
        start, second = slot, other_slot(value, slot, size)
        if moved is not None and moved[0] == slot and now - moved[2] <= STAY:
            start = moved[1]
            second = slot if second == start else second
        further = further_slots(value, second, size)
        expected = algorithm1(start, further, [i in warned for i in range(size)], [0] * size, 0).path
        if len(warned) == size:
            expected = slot
        assert path(rig, now, slot, sport) == UPLINKS[expected]
        if expected != slot:
            moved = (slot, expected, now)
        elif start != slot:
            moved = None
    assert rig.empty()
