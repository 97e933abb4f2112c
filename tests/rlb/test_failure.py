# SPDX-License-Identifier: Apache-2.0
"""Algorithm 2 (RLB §IV-B.2) against the paper's lines: average recirculation counts, strikes, one alert."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, UPLINKS
from tests.rlb.models import Algorithm2
from tests.rlb.rig import RlbRig, other_path

MOST, INTERVAL = 2, 100
START = 1_000_000
FAST, SLOW = 1000, 1_000_000


@pytest.fixture(scope="module")
def leaf() -> Iterator[RlbRig]:
    with RlbRig() as rig:
        rig.warnings()
        yield rig


def run(rig: RlbRig, packets: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    """Packets as (ticks since the last one, slot that it waits for, recirculations): ports of alerts, by the
    program and by the model. Going round takes no time here, so t_rc is 0.
    """
    rig.reset()
    rig.default("failure_config", interval_ticks=INTERVAL, most=MOST)
    model, expected = Algorithm2(MOST, INTERVAL), []
    rig.clock = max(rig.clock, START) + START
    for gap, slot, count in packets:
        rig.clock += gap
        for number, port in enumerate(UPLINKS):
            rig.warn(port, (1 << 47) * (number == slot))
            rig.rtt(port, FAST if number == slot else SLOW)
        rig.limits(most=count)
        rig.next_slot(slot)
        (output,) = rig.send(HOST_PORT, roce(), rig.clock)
        assert output.port == UPLINKS[slot]
        alerts = [model.recirculated(rig.clock, UPLINKS[slot], i, 0) for i in range(1, count + 1)]
        expected += [port for port in alerts if port is not None]
    digests = rig.switch.digests()
    for digest in digests:
        port, total, number, delay = digest.values
        assert total > MOST * number
        assert delay == 0
        assert port in UPLINKS
    assert rig.empty()
    return [digest.values[0] for digest in digests], expected


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 250), st.integers(0, 1), st.sampled_from([0, 1, 6, 9])),
        min_size=4,
        max_size=14,
    )
)
@example([(150, 0, 9), (150, 0, 9), (150, 0, 9), (150, 0, 9)])
@example([(150, 0, 9), (150, 1, 9), (150, 0, 9), (150, 0, 9)])
@example([(150, 0, 9), (150, 0, 1), (150, 0, 9), (150, 0, 9), (150, 0, 9)])
@example([(150, 0, 9), (250, 0, 9), (150, 0, 9), (150, 0, 9)])
@example([(100, 0, 6), (1, 1, 6), (1, 0, 6), (150, 1, 6), (1, 1, 9), (150, 1, 9), (150, 1, 9)])
def test_against_the_lines_of_the_paper(leaf, packets):
    """The same alerts, whatever waits for whom and when."""
    seen, expected = run(leaf, packets)
    assert seen == expected


def test_second_interval_in_a_row_alerts_once(leaf):
    """One bad interval is none, the second is an alert, more of them are no more alerts."""
    bad = (150, 2, 9)
    assert run(leaf, [bad] * 2)[0] == []
    assert run(leaf, [bad] * 3)[0] == [UPLINKS[2]]
    assert run(leaf, [bad] * 9)[0] == [UPLINKS[2]]


def test_a_quiet_interval_forgives(leaf):
    """After it a port begins anew; then it can be found a second time."""
    bad, quiet = (150, 2, 9), (250, 2, 9)
    assert run(leaf, [bad, bad, quiet, bad])[0] == [UPLINKS[2]]
    assert run(leaf, [quiet] * 6)[0] == []


def test_an_interval_is_no_shorter_than_a_recirculation_takes():
    """t_rc is what one is expected to take, where none has been measured lately."""
    usual = 1000
    with RlbRig(recirc_rate_bps=8_000_000_000) as rig:
        rig.warnings()
        rig.limits(most=1, usual_ticks=usual, trust_ticks=0)
        rig.default("failure_config", interval_ticks=1, most=0)
        rig.warn(UPLINKS[0], 1 << 47)
        alerts = []
        for now in (START, START + usual - 100, START + usual + 1, START + 2 * usual + 2):
            rig.clock = now
            rig.rtt(UPLINKS[0], FAST)
            rig.rtt(other_path(roce(), UPLINKS[0]), SLOW)
            rig.next_slot(0)
            assert rig.send(HOST_PORT, roce(), now) == []
            alerts.append([digest.values[::3] for digest in rig.switch.digests()])
            rig.switch.run(now + 100)
            rig.switch.outputs()
    assert alerts == [[], [], [], [(UPLINKS[0], usual)]]


def test_off(leaf):
    """Interval 0: nothing is looked at."""
    leaf.reset()
    leaf.default("failure_config", interval_ticks=0, most=0)
    leaf.limits(most=9)
    leaf.clock = max(leaf.clock, START) + START
    leaf.warn(UPLINKS[0], 1 << 47)
    leaf.rtt(UPLINKS[0], FAST)
    leaf.rtt(UPLINKS[1], SLOW)
    leaf.next_slot(0)
    leaf.send(HOST_PORT, roce(), leaf.clock)
    assert leaf.register("failure_packets") == 0
