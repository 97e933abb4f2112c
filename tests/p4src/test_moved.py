# SPDX-License-Identifier: Apache-2.0
"""The last switch's memory of flows that were moved (flowcut/moved.p4), against a model, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.packet import Packet

from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import MOVED, ack_of, newest_stamp, roce, shimmed
from tests.p4src.rig import DOWNLINK, HOST, HOST_PORT, NEVER_TICKS, REMOTE, UPLINK_GROUP, UPLINKS, Rig

AGE = 500
HALF = 2**31
START = 1 << 41
SPORTS = (1, 2, 3)
SHARES_SLOT = 15714
"""Source port of a flow whose hash agrees with that of port 1 in 16 bits."""
_SETTINGS = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Arrival:
    """A packet of a flow, so long after the one before it; `sent` by the clock of its first switch."""

    wait: int
    sport: int
    sent: int
    moved: bool
    stamps: int


ARRIVALS = st.lists(
    st.builds(
        Arrival,
        st.sampled_from([0, 1, 10, AGE, AGE + 1]),
        st.sampled_from(SPORTS),
        st.one_of(st.integers(-20, 20), st.sampled_from([-AGE - 20, -HALF, HALF])),
        st.booleans(),
        st.integers(1, 7),
    ),
    max_size=30,
)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig("flowcut") as rig:
        rig.flowcut(age_ticks=AGE)
        yield rig


@given(ARRIVALS)
@_SETTINGS
def test_late_packets_and_only_those_are_dropped(arrivals: list[Arrival]) -> None:
    """What was sent before a moved packet that is here, no longer than an age before it."""
    assert len({flow_hash(inbound(sport)) >> 16 for sport in SPORTS}) == len(SPORTS), "slots of their own"
    now = START
    records: dict[int, tuple[int, int]] = {}
    dropped = 0
    with Rig("flowcut") as rig:
        rig.flowcut(age_ticks=AGE)
        for arrival in arrivals:
            now += arrival.wait
            newest, seen = records.get(arrival.sport, (0, 0))
            behind = (newest - arrival.sent) % 2**32
            late = now - seen <= AGE and behind <= AGE and (behind > 0 or not arrival.moved)
            dropped += late
            if arrival.moved and not late:
                records[arrival.sport] = (arrival.sent, now)
            outputs = rig.send(DOWNLINK, arriving(arrival), now)
            assert [o.port for o in outputs if o.port != DOWNLINK] == [HOST_PORT] * (not late)
        assert sum(rig.drops().values()) == rig.drops().get("PATH_WITHDRAWN", 0) == dropped


@pytest.mark.parametrize("tracked", [True, False])
def test_where_the_age_is_too_long_for_stamps_a_flow_waits_for_its_bytes(rig: Rig, tracked: bool) -> None:
    """Of a flow whose next hop is withdrawn nothing is sent until nothing of it is in flight."""
    rig.flowcut(age_ticks=NEVER_TICKS)
    for sport in () if tracked else range(101, 105):  # they fill the bucket
        rig.forward(HOST_PORT, roce(sport), START)
    before = rig.forward(HOST_PORT, roce(), START)
    rest = tuple(port for port in UPLINKS if port != before.port)
    rig.candidates(UPLINK_GROUP, rest)
    for slot in rig.slots:
        rig.move_slot(slot, rest[0])
    assert rig.send(HOST_PORT, roce(), START + 1) == []
    assert rig.drops() == {"PATH_WITHDRAWN": 1}
    rig.send(before.port, ack_of(roce(), 1, [newest_stamp(before.data)]), START + 2)
    assert rig.forward(HOST_PORT, roce(), START + 3).port in rest


def inbound(sport: int) -> Packet:
    """A packet of a flow to a host of this switch."""
    return roce(sport, src=REMOTE, dst=HOST)


def arriving(arrival: Arrival) -> Packet:
    """The oldest stamp tells when it was sent; any of them that its flow was moved there."""
    stamps = [(77 * i, 1) for i in range(1, arrival.stamps)]
    stamps.append((arrival.sent % 2**32, 1))
    if arrival.moved:
        at = arrival.sent % arrival.stamps
        stamps[at] = (stamps[at][0], stamps[at][1] | MOVED)
    return shimmed(inbound(arrival.sport), 7, stamps)


def test_a_slot_serves_one_flow_at_a_time(rig: Rig) -> None:
    """Another flow of the slot that was moved, too, waits for the age of the first one; if it was not, it goes on."""
    first = inbound(1)
    other = inbound(SHARES_SLOT)
    assert flow_hash(first) >> 16 == flow_hash(other) >> 16
    at = START

    def comes(frame: Packet, sent: int, flags: int, now: int) -> bool:
        return any(
            o.port == HOST_PORT for o in rig.send(DOWNLINK, shimmed(frame, 2, [(sent, 1 | flags)]), now)
        )

    assert comes(first, 50, MOVED, at)
    assert comes(other, 10, 0, at + 1)
    assert not comes(other, 20, MOVED, at + AGE)
    assert not comes(first, 49, 0, at + AGE)
    assert comes(other, 30, MOVED, at + AGE + 1)
    assert not comes(other, 29, 0, at + AGE + 2)
    assert comes(first, 49, 0, at + AGE + 2)
