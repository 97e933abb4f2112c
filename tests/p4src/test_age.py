# SPDX-License-Identifier: Apache-2.0
"""The age of what is in flight (flowcut/lookup.p4, inspect.p4), to the tick, in virtual time."""

from __future__ import annotations

import pytest

from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, Rig

AGE, START = 1000, 1 << 41
WAYS = 4


@pytest.fixture
def rig():
    with Rig("flowcut") as rig:
        rig.flowcut(age_ticks=AGE)
        yield rig


def flows(rig: Rig) -> int:
    return sum(rig.register("flow_in_flight_bytes", way) > 0 for way in range(WAYS))


@pytest.mark.parametrize("op", ["READ_FLOWS", "SWEEP"])
@pytest.mark.parametrize("idle", [0, AGE, AGE + 1, 10 * AGE])
def test_sweep_deletes_after_more_than_the_age(rig, op, idle):
    rig.forward(HOST_PORT, roce(), START)
    rig.packet_out(op, 0, START + idle)
    assert flows(rig) == (op == "READ_FLOWS" or idle <= AGE)


@pytest.mark.parametrize("idle", [0, AGE, AGE + 1])
def test_a_flow_comes_back(rig, idle):
    """Up to its age it goes on; after it, it starts anew."""
    rig.forward(HOST_PORT, roce(), START)
    rig.forward(HOST_PORT, roce(), START + idle)
    anew = idle > AGE
    assert sum(rig.register("flow_in_flight_bytes", way) for way in range(WAYS)) == len(roce()) * (2 - anew)
    assert (rig.count("flowcut_expired"), rig.count("flowcut_created")) == (anew, 1 + anew)


@pytest.mark.parametrize("idle", [AGE, AGE + 1])
def test_a_full_bucket_gives_up_what_is_past_its_age(rig, idle):
    for sport in range(WAYS):
        rig.forward(HOST_PORT, roce(sport), START)
    rig.forward(HOST_PORT, roce(99), START + idle)
    assert (rig.count("flowcut_overflow"), rig.count("flowcut_expired")) == ((0, 1) if idle > AGE else (1, 0))


@pytest.mark.parametrize("idle", [AGE, AGE + 1])
def test_untracked_bytes_age(rig, idle):
    """A way is free; the newcomer may take it as soon as what was untracked is past its age."""
    for sport in range(WAYS + 1):
        rig.forward(HOST_PORT, roce(sport), START)
    rig.set_register("flow_in_flight_bytes", 2, 0)
    rig.forward(HOST_PORT, roce(99), START + idle)
    assert rig.count("flowcut_created") == WAYS + (idle > AGE)
    assert rig.register("untracked_bytes") == len(roce()) * (1 if idle > AGE else 2)


@pytest.mark.parametrize("op", ["SWEEP", "data"])
@pytest.mark.parametrize("early", [1, 50])
def test_a_packet_stamped_before_the_last_one_finds_nothing_aged(rig, op, early):
    """BMv2 stamps packets in several threads, so time may step back a little: that is no age of 2^48 ticks."""
    for sport in range(WAYS + 1):
        rig.forward(HOST_PORT, roce(sport), START)
    for register in ("flow_last_data_ticks", "untracked_last_ticks"):
        for way in range(WAYS if register.startswith("flow") else 1):
            rig.set_register(register, way, START + early)
    if op == "SWEEP":
        rig.packet_out("SWEEP", 0, START)
    else:
        rig.forward(HOST_PORT, roce(99), START)
    assert flows(rig) == WAYS
    assert rig.register("untracked_bytes") == len(roce()) * (1 if op == "SWEEP" else 2)
    assert rig.count("flowcut_expired") == 0


def test_clock_wraps(rig):
    """An entry from before the 48-bit clock's wrap is as old as it is."""
    last = (1 << 48) - 10
    rig.forward(HOST_PORT, roce(), 5)
    entry = next(way for way in range(WAYS) if rig.register("flow_in_flight_bytes", way))
    rig.set_register("flow_last_data_ticks", entry, last)
    rig.packet_out("SWEEP", 0, AGE - 10)
    assert flows(rig) == 1
    rig.packet_out("SWEEP", 0, AGE - 9)
    assert flows(rig) == 0
