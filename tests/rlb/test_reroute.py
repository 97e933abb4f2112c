# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 (RLB §III-B.2) against the paper's lines, and real recirculation within its limits (§IV-B.1)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from tailrace.switch.core import SentFrame
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST_PORT, UPLINKS
from tests.rlb.models import Decision, algorithm1, dynamic_limit, further_slots, other_slot
from tests.rlb.rig import (
    FIRST_SPORT,
    FOREVER,
    LEAVES,
    REMOTE_LEAF,
    WIDE,
    WIDE_GROUP,
    WIDE_LEAF,
    WIDE_UPLINKS,
    RlbRig,
    other_path,
)

NOW = 1_000_000
RECIRC_BPS = 8_000_000_000  # a nanosecond a byte
FRAME = roce()
SECOND = other_path(FRAME, UPLINKS[0])
FAST, SLOW = 100_000, 1_000_000
WAIT = len(FRAME)
ONE = 1 << 16


@pytest.fixture(scope="module")
def shared() -> Iterator[RlbRig]:
    with RlbRig(recirc_rate_bps=RECIRC_BPS) as rig:
        rig.warnings()
        yield rig


@pytest.fixture
def leaf(shared: RlbRig) -> RlbRig:
    """Nothing is warned of, no path measured; time goes on where the last test was."""
    shared.reset()
    shared.warnings()
    shared.limits()
    shared.clock = max(shared.clock, NOW) + NOW
    return shared


def worth_waiting(rig: RlbRig, until: int = 1 << 47) -> None:
    """The first path is warned, and the second is so slow that the packet had better wait."""
    rig.warn(UPLINKS[0], until)
    rig.rtt(UPLINKS[0], FAST)
    rig.rtt(SECOND, SLOW)
    rig.next_slot(0)


def finish(rig: RlbRig, after: int = 1 << 22) -> list[SentFrame]:
    """All that happens until a time after the last packet came in."""
    rig.clock += after
    rig.switch.run(rig.clock)
    return rig.switch.outputs()


@settings(max_examples=60)
@given(
    st.integers(0, len(WIDE_UPLINKS) - 1),
    st.integers(FIRST_SPORT, FIRST_SPORT + 9999),
    st.lists(st.integers(0, 9), min_size=len(WIDE_UPLINKS), max_size=len(WIDE_UPLINKS)),
    st.lists(st.integers(0, 40), min_size=len(WIDE_UPLINKS), max_size=len(WIDE_UPLINKS)),
    st.integers(0, 20),
    st.booleans(),
)
@example(10, FIRST_SPORT, [0] * 40, [5] * 40, 0, False)
@example(0, FIRST_SPORT, [0] * 40, [1, *range(2, 41)], 3, True)
@example(7, FIRST_SPORT + 1, [0] * 6 + [9] + [0] * 33, [1] * 40, 0, False)
@example(5, FIRST_SPORT + 2, [0] * 40, [1] * 21 + [2] * 19, 0, False)
@example(7, FIRST_SPORT + 3, [0] * 12 + [9] + [0] * 27, [1] * 40, 0, True)
@example(5, FIRST_SPORT + 4, [0] * 40, [1] * 21 + [2] * 14 + [1] * 5, 0, True)
def test_against_the_lines_of_the_paper(shared, best, sport, open_paths, rtt, delay, last_open):
    """Any warnings, any RTTs (0: none), any t_rc, 40 paths, any order of them: forwards on the same port, or
    recirculates, once, and then takes p, or the next open path.
    """
    frame, size = roce(sport, dst=WIDE), len(WIDE_UPLINKS)
    value = flow_hash(frame)
    second = other_slot(value, best, size)
    warned = [number < 8 for number in open_paths]
    rig = shared
    rig.reset()
    rig.warnings()
    rig.limits(most=1, usual_ticks=delay, last_open=int(last_open))
    rig.clock = max(rig.clock, NOW) + 10_000
    for port, closed, ticks in zip(WIDE_UPLINKS, warned, rtt, strict=True):
        rig.warn(port, (1 << 47) * closed, WIDE_LEAF)
        rig.rtt(port, ticks, WIDE_LEAF)
    rig.next_slot(best, WIDE_GROUP)
    before = rig.total("recirculations")
    outputs = rig.send(HOST_PORT, frame, rig.clock)
    decision = algorithm1(best, further_slots(value, second, size), warned, rtt, delay)
    went_round = rig.total("recirculations") - before
    assert went_round == (decision.suboptimal is not None)
    if went_round:
        # it waits for p; when it is back all is as it was, but that it may not go round again
        assert outputs == []
        outputs = finish(rig, 1000)
        if last_open:
            assert decision.suboptimal is not None
            further = further_slots(value, decision.suboptimal, size)
            left = algorithm1(decision.path, further, warned, rtt, delay, waits=False).path
            decision = Decision(best if warned[left] else left)
    assert [output.port for output in outputs] == [WIDE_UPLINKS[decision.path]]
    assert rig.empty()


def test_waits_for_the_better_path_until_it_is_open(leaf):
    """It goes round as long as the warning holds, then takes the path it waited for; one hop less, once. Alone it
    knows the time only from when it left the recirculation port, so it goes round once more than it had to.
    """
    worth_waiting(leaf, leaf.clock + 3 * WAIT)
    leaf.limits(most=255)
    before = leaf.total("recirculations")
    assert leaf.send(HOST_PORT, FRAME, leaf.clock) == []
    assert (leaf.load(leaf.mirror), leaf.source_load(HOST_PORT)) == (WAIT, WAIT)
    assert leaf.register("recirculating") == 1
    (output,) = finish(leaf)
    assert output.port == UPLINKS[0]
    assert Ether(output.data)[IP].ttl == FRAME[IP].ttl - 1
    assert leaf.total("recirculations") - before == 3 + 1
    assert leaf.register("recirculation_ticks") == WAIT
    assert leaf.empty()


@pytest.mark.parametrize("most", [0, 1, 7, 255])
def test_never_beyond_the_limit(leaf, most):
    """A path that stays warned: exactly so often, then the packet takes it."""
    worth_waiting(leaf)
    leaf.limits(most=most)
    before = leaf.total("recirculations")
    outputs = leaf.send(HOST_PORT, FRAME, leaf.clock) + finish(leaf)
    assert [output.port for output in outputs] == [UPLINKS[0]]
    assert leaf.total("recirculations") - before == most
    assert leaf.empty()


def test_no_room_no_recirculation(leaf):
    """Only so many go round at a time: targets drop the others."""
    worth_waiting(leaf)
    leaf.limits(most=1, room=2)
    at_once = []
    for i in range(4):
        leaf.next_slot(0)
        at_once += leaf.send(HOST_PORT, FRAME, leaf.clock + i)
    assert [output.port for output in at_once] == [UPLINKS[0]] * 2
    assert leaf.register("recirculating") == 2
    assert len(finish(leaf)) == 2
    assert leaf.switch.drops().get("recirculate_full", 0) == 0
    assert leaf.empty()


@settings(max_examples=25)
@given(st.integers(0, 30), st.integers(0, 3), st.integers(0, 40))
def test_dynamic_limit(shared, waits, inflow, room):
    """RLB*: by what is won (eq. 6) and by what still fits (eq. 4, 5)."""
    rig = shared
    rig.reset()
    pause, won, usual = room * 100, waits * 25, 10
    rig.warnings(pause_bytes=pause)
    rig.limits(dynamic=1, most=255, usual_ticks=usual, inflow=inflow * ONE)
    rig.clock = max(rig.clock, NOW) + NOW
    rig.warn(UPLINKS[0], 1 << 47)
    rig.rtt(UPLINKS[0], FAST)
    rig.rtt(SECOND, FAST + won)
    rig.next_slot(0)
    before = rig.total("recirculations")
    outputs = rig.send(HOST_PORT, FRAME, rig.clock) + finish(rig)
    # alone, the packet is late by one round with the time: see above
    expected, port = 0, UPLINKS[0]
    while True:
        waited, delay = max(expected - 1, 0) * WAIT, usual if expected < 2 else WAIT
        if won <= delay:
            port = SECOND
            break
        if not dynamic_limit(
            queue=0, size=WAIT, inflow=Fraction(inflow), pause=pause, waited=waited, delay=delay, won=won
        ):
            break
        expected += 1
    assert rig.total("recirculations") - before == expected
    assert [output.port for output in outputs] == [port]
    assert rig.empty()


def test_old_delay_is_not_trusted(leaf):
    """After trust_ticks without a recirculation the usual delay counts again, so that one busy moment does not
    end all recirculation."""
    worth_waiting(leaf)
    leaf.limits(most=1, trust_ticks=1000)
    leaf.set_register("recirculation_ticks", 0, 2 * SLOW)
    leaf.set_register("recirculation_seen_ticks", 0, leaf.clock)
    assert leaf.forward(HOST_PORT, FRAME, leaf.clock).port == SECOND
    leaf.next_slot(0)
    assert leaf.send(HOST_PORT, FRAME, leaf.clock + 1001) == []
    assert len(finish(leaf)) == 1


@pytest.mark.parametrize("most", [0, 3])
def test_last_round_of_a_packet(leaf, most):
    """When it may not go round any more it takes p, as warned as it is (last=p), or an open path (last=open);
    where none is open, what the selector said.
    """
    for last_open, port in ((0, UPLINKS[0]), (1, SECOND)):
        worth_waiting(leaf)
        leaf.limits(most=most, last_open=last_open)
        outputs = leaf.send(HOST_PORT, FRAME, leaf.clock) + finish(leaf)
        assert [output.port for output in outputs] == [port]
    for port in UPLINKS:
        leaf.warn(port, 1 << 47)
    worth_waiting(leaf)
    outputs = leaf.send(HOST_PORT, FRAME, leaf.clock) + finish(leaf)
    assert [output.port for output in outputs] == [UPLINKS[0]]
    assert leaf.empty()


def test_path_that_nobody_answers_is_slow(leaf):
    """A packet waits for a fast path while its stamps are answered, or new; not for one that is overdue."""
    for age, waits in ((0, True), (FAST, True), (FAST + 1, False)):
        worth_waiting(leaf)
        leaf.limits(most=1)
        if age:
            leaf.set_register("probe_unanswered_ticks", UPLINKS[0] * LEAVES + REMOTE_LEAF, leaf.clock - age)
        outputs = leaf.send(HOST_PORT, FRAME, leaf.clock)
        assert [output.port for output in outputs] == ([] if waits else [SECOND])
        finish(leaf)


def test_packet_that_waits_is_a_stamp(leaf):
    """No others go to a path that all wait for: after its RTT it is overdue, until a stamp has come back."""
    path, start = UPLINKS[0] * LEAVES + REMOTE_LEAF, leaf.clock
    worth_waiting(leaf)
    leaf.limits(most=1)
    for late, waits in ((0, True), (FAST, True), (FAST + 1, False)):
        leaf.next_slot(0)
        outputs = leaf.send(HOST_PORT, FRAME, start + late)
        assert [output.port for output in outputs] == ([] if waits else [SECOND])
        leaf.switch.run(start + late + 2 * WAIT)
        leaf.switch.outputs()
        assert leaf.register("probe_unanswered_ticks", path) == start
    leaf.clock = start + 3 * FAST
    worth_waiting(leaf)
    assert leaf.send(HOST_PORT, FRAME, leaf.clock) == []
    finish(leaf)


def test_unanswered_path_is_slow_to_others(leaf):
    """A packet goes on to a second path whose RTT is alike; once its stamp is as old as it is worth, it waits."""
    for age, waits in ((0, False), (FAST + 1, False), (SLOW, True)):
        worth_waiting(leaf)
        leaf.rtt(SECOND, FAST)
        leaf.limits(most=1, usual_ticks=SLOW // 2)
        if age:
            leaf.set_register("probe_unanswered_ticks", SECOND * LEAVES + REMOTE_LEAF, leaf.clock - age)
        outputs = leaf.send(HOST_PORT, FRAME, leaf.clock)
        assert [output.port for output in outputs] == ([] if waits else [SECOND])
        finish(leaf)


def test_old_rtt_is_none(leaf):
    """Measured longer ago than they are kept, RTTs count no more: the packet goes on to the next path."""
    keep = 1000
    leaf.probes(0, keep)
    worth_waiting(leaf)
    leaf.limits(most=1)
    assert leaf.send(HOST_PORT, FRAME, leaf.clock + keep) == []
    leaf.next_slot(0)
    assert leaf.forward(HOST_PORT, FRAME, leaf.clock + keep + 1).port == SECOND
    assert len(finish(leaf)) == 1
    leaf.probes(0)


def test_path_that_is_taken_out_meanwhile(leaf):
    """A packet that waits for a slot that is gone when it comes back is sent by one that is there."""
    leaf.rtt(UPLINKS[3], FAST)
    leaf.rtt(other_path(FRAME, UPLINKS[3]), SLOW)
    leaf.warn(UPLINKS[3], 1 << 47)
    leaf.limits(most=9)
    leaf.next_slot(3)
    assert leaf.send(HOST_PORT, FRAME, leaf.clock) == []
    leaf.shrink(2)
    leaf.next_slot(1)
    (output,) = finish(leaf)
    leaf.shrink(len(UPLINKS))
    assert output.port == UPLINKS[1]
    assert leaf.empty()


def test_transit_packets_reroute_too(leaf):
    """A packet of another switch leaves a warned path; where no RTT is known it never goes round."""
    leaf.limits(most=255)
    leaf.warn(UPLINKS[0], 1 << 47)
    leaf.next_slot(0)
    assert leaf.forward(DOWNLINK, FRAME, leaf.clock).port == SECOND


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([HOST_PORT, DOWNLINK, UPLINKS[3]]),
            st.integers(0, 3),
            st.integers(0, 1500),
            st.integers(0, 300),
            st.booleans(),
        ),
        min_size=1,
        max_size=25,
    ),
    st.integers(0, 3000),
)
def test_no_byte_leaks(shared, packets, limit):
    """Warnings, recirculation, drops at the queue limit, hop limit: in the end all accounts are at zero, and what
    came in has left or was dropped."""
    rig = shared
    rig.reset()
    rig.warnings(dt_ticks=50, warn_bytes=500, pause_bytes=2000, margin_ticks=FOREVER, refresh_ticks=10)
    rig.limits(most=3, room=4)
    rig.default("queue_config", limit_bytes=limit)
    rig.switch.port_config(UPLINKS[1], rate_bps=RECIRC_BPS // 4)
    rig.clock = max(rig.clock, NOW) + NOW
    for i, port in enumerate(UPLINKS):
        rig.rtt(port, 10 * (i + 1) ** 4)
    for port, slot, size, gap, warn in packets:
        rig.clock += gap
        rig.warn(UPLINKS[slot], (rig.clock + 400) * warn)
        rig.next_slot(slot)
        rig.send(port, roce(FIRST_SPORT + size, ttl=1 + (size % 7 > 0)), rig.clock, virtual_bytes=size)
    finish(rig)
    rig.default("queue_config", limit_bytes=0)
    rig.switch.port_config(UPLINKS[1], rate_bps=0)
    assert rig.empty()
    assert rig.switch.account().balanced
