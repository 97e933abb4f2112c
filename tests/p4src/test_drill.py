# SPDX-License-Identifier: Apache-2.0
"""DRILL(2,1) (drill/selector.p4) in virtual time, against a model that knows every pair of samples."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import Opcode
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, UPLINK_GROUP, UPLINKS, Rig
from tests.p4src.selectors import drill

PAIR_REMOTE, PAIR_GROUP, PAIR = "10.0.7.2", 9, (5, 3)
ALONE_REMOTE, ALONE_GROUP, ALONE = "10.0.8.2", 10, (4,)
DRAWS = 600
LOAD = st.integers(0, 3).map(lambda steps: 1000 * steps)


def drill_rig() -> Rig:
    rig = Rig("drill", seed=5)
    rig.group(PAIR_REMOTE, PAIR_GROUP, PAIR)
    rig.group(ALONE_REMOTE, ALONE_GROUP, ALONE)
    return rig


@settings(max_examples=60)
@given(st.lists(st.tuples(st.tuples(LOAD, LOAD, LOAD, LOAD), st.booleans()), min_size=1, max_size=20))
def test_every_choice_is_one_of_the_models(steps):
    """Whatever waits, in a group of four and in one of two, where nothing is left to chance: the best of the samples
    and of what was best last time in this group.
    """
    remembered: dict[int, int] = {}
    with drill_rig() as rig:
        for at, (loads, in_pair) in enumerate(steps):
            by_port = dict(zip(UPLINKS, loads, strict=True))
            for port, load_bytes in by_port.items():
                rig.set_load(port, load_bytes)
            group, ports, dst = (
                (PAIR_GROUP, PAIR, PAIR_REMOTE) if in_pair else (UPLINK_GROUP, UPLINKS, "10.0.2.2")
            )
            slot = ports.index(rig.forward(HOST_PORT, roce(dst=dst), at).port)
            odds = drill([by_port[port] for port in ports], remembered.get(group))
            assert slot in odds
            remembered[group] = slot
            assert rig.register("drill_memory", group) == slot + 1


@pytest.mark.parametrize("remembered", [None, 0, 2, 3])
def test_samples_are_fair(remembered):
    """As often as the model says, within five standard deviations: all pairs of samples are alike."""
    loads = (3000, 1000, 2000, 0)
    odds = drill(loads, remembered)
    with drill_rig() as rig:
        for port, load_bytes in zip(UPLINKS, loads, strict=True):
            rig.set_load(port, load_bytes)
        counts: Counter[int] = Counter()
        for at in range(DRAWS):
            rig.set_register("drill_memory", UPLINK_GROUP, 0 if remembered is None else remembered + 1)
            counts[UPLINKS.index(rig.forward(HOST_PORT, roce(), at).port)] += 1
    assert set(counts) == set(odds)
    for slot, share in odds.items():
        mean = float(share) * DRAWS
        assert abs(counts[slot] - mean) <= 5 * (mean * (1 - float(share))) ** 0.5


def test_nothing_remembered_and_nothing_waits():
    """Without memory and without queues the first sample is taken, and all are alike; afterwards it is remembered."""
    with drill_rig() as rig:
        counts: Counter[int] = Counter()
        for at in range(DRAWS):
            rig.set_register("drill_memory", UPLINK_GROUP, 0)
            counts[rig.forward(HOST_PORT, roce(at + 1), at).port] += 1
        mean = DRAWS / len(UPLINKS)
        assert max(abs(counts[port] - mean) for port in UPLINKS) < 5 * mean**0.5
        kept = rig.forward(HOST_PORT, roce(), DRAWS).port
        assert {rig.forward(HOST_PORT, roce(sport), DRAWS + sport).port for sport in range(1, 40)} == {kept}


def test_a_packet_evades_the_one_before_it():
    """Where each packet waits, the ports of a pair are taken alike: none is ever longer by more than one packet."""
    size = len(roce(dst=PAIR_REMOTE))
    with drill_rig() as rig:
        for port in PAIR:
            rig.switch.port_config(port, rate_bps=8)  # a byte a second: nothing leaves meanwhile
        for at in range(40):
            rig.send(HOST_PORT, roce(at + 1, dst=PAIR_REMOTE), at)
            loads = [rig.load(port) for port in PAIR]
            assert max(loads) - min(loads) <= size


def test_slots_that_are_gone():
    """A slot that the group no longer has is forgotten; where no slot has a port, there is no way."""
    with drill_rig() as rig:
        rig.set_register("drill_memory", PAIR_GROUP, len(PAIR) + 1)
        rig.set_load(PAIR[0], 500)
        assert rig.forward(HOST_PORT, roce(dst=PAIR_REMOTE), 0).port == PAIR[1]
        rig.route(PAIR_REMOTE, 32, "to_group", group=77, size=2)
        assert rig.send(HOST_PORT, roce(dst=PAIR_REMOTE), 1) == []
        assert rig.drops() == {"NO_ROUTE": 1}


def test_a_group_of_one():
    """There is nothing to choose, however much waits."""
    with drill_rig() as rig:
        rig.set_load(ALONE[0], 1 << 31)
        assert {rig.forward(HOST_PORT, roce(dst=ALONE_REMOTE), at).port for at in range(9)} == set(ALONE)


def test_what_is_not_data_takes_its_ecmp_path():
    """ACKs are not sprayed, and are not what the memory is of."""
    ack = roce(opcode=int(Opcode.ACK), payload=bytes(4))
    with drill_rig() as rig:
        usual = UPLINKS[flow_hash(ack) % len(UPLINKS)]
        rig.set_load(usual, 5000)
        assert {rig.forward(HOST_PORT, ack, at).port for at in range(9)} == {usual}
        assert rig.register("drill_memory", UPLINK_GROUP) == 0
