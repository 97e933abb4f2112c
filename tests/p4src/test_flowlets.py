# SPDX-License-Identifier: Apache-2.0
"""LetFlow's flowlet table (letflow/flowlets.p4) in virtual time: the gap to the tick, and what shares a slot."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import Opcode
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, UPLINKS, Rig


def flowlet_rig(gap_ticks: int) -> Rig:
    rig = Rig("letflow", seed=3)
    rig.default("flowlet_config", "set_flowlet_gap", gap_ticks=gap_ticks)
    return rig


@settings(max_examples=40)
@given(st.integers(1, 1 << 40), st.lists(st.integers(-2, 2), max_size=12), st.integers(0, 1 << 40))
def test_a_flowlet_ends_after_more_than_the_gap(gap_ticks, offsets, start):
    """A pause as long as the gap is none yet; the first packet, also at time 0, begins a flowlet."""
    with flowlet_rig(gap_ticks) as rig:
        now, flowlets = start, 1
        port = rig.forward(HOST_PORT, roce(), now).port
        for offset in offsets:
            pause = max(gap_ticks + offset, 0)
            now += pause
            before, port = port, rig.forward(HOST_PORT, roce(), now).port
            flowlets += pause > gap_ticks
            assert port == before or pause > gap_ticks
            assert rig.count("flowlets_created") == flowlets


def test_flowlets_take_all_paths_alike():
    """The paths of a flow's flowlets are random and fair, and a flow alone is no exception."""
    flowlets = 800
    with flowlet_rig(10) as rig:
        shares = Counter(rig.forward(HOST_PORT, roce(), 11 * (i + 1)).port for i in range(flowlets))
    mean = flowlets / len(UPLINKS)
    assert set(shares) == set(UPLINKS)
    assert max(abs(share - mean) for share in shares.values()) < 5 * mean**0.5


def test_flows_in_one_slot_look_like_one_flow():
    """Two flows with the same 16 bits of hash: while one sends, the other gets no new path. No order is lost by it."""
    slots: dict[int, int] = {}
    for sport in range(1, 5000):
        slot = flow_hash(roce(sport)) >> 16
        if slot in slots:
            break
        slots[slot] = sport
    first, second = roce(slots[slot]), roce(sport)
    with flowlet_rig(100) as rig:
        rig.forward(HOST_PORT, first, 1000)
        rig.forward(HOST_PORT, second, 1100)
        assert rig.count("flowlets_created") == 1
        rig.forward(HOST_PORT, first, 1200)
        rig.forward(HOST_PORT, second, 1301)
        assert rig.count("flowlets_created") == 2


def test_what_is_not_data_makes_no_flowlet():
    """An ACK of a flow neither begins a flowlet nor keeps one alive."""
    ack = roce(opcode=int(Opcode.ACK), payload=bytes(4))
    with flowlet_rig(100) as rig:
        rig.forward(HOST_PORT, roce(), 1000)
        for now in (1050, 1100):
            rig.forward(HOST_PORT, ack, now)
        rig.forward(HOST_PORT, roce(), 1101)
        assert rig.count("flowlets_created") == 2


def test_no_flowlets_where_a_switch_is_to_find_none():
    """The path is that of the flow's hash, whatever its pauses."""
    with flowlet_rig(1) as rig:
        rig.default("flowlet_config", "no_flowlets")
        taken = {}
        for sport in range(50_000, 50_032):
            frame = roce(sport)
            taken[sport] = {rig.forward(HOST_PORT, frame, 1000 * i + sport).port for i in range(1, 4)}
            assert taken[sport] == {UPLINKS[flow_hash(frame) % len(UPLINKS)]}
        assert rig.count("flowlets_created") == 0
    assert len(set.union(*taken.values())) > 1
