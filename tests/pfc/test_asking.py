# SPDX-License-Identifier: Apache-2.0
"""PFC by the program: whom a switch pauses, when, and for how long."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.layers.pfc import pfc_frame
from tests.p4src.rig import HOST_PORT, UPLINKS
from tests.pfc.rig import FOREVER, QUANTUM_NS, RATE_BPS, ROOM, STATION, PfcRig, control, data
from tests.rlb.rig import RlbRig, cnms

SIZE = len(data(0))
FRAME_NS = SIZE * 8 * 10**9 // RATE_BPS
FROM, OTHER = UPLINKS[:2]
QUANTA, REFRESH = 1000, 50 * FRAME_NS
MS = 1_000_000
MADE_NS = 20_000
"""A pause frame goes once round in the switch as a full frame, and out of the port behind a full frame."""


@pytest.mark.parametrize("name", ["presto", "rlb_presto"])
def test_one_pause_above_xoff_and_one_resume_at_xon(name: str) -> None:
    """Of the port that brought it, and of no other; the frame is what IEEE 802.1Qbb says."""
    with PfcRig(name, xoff_bytes=5 * SIZE, xon_bytes=2 * SIZE, quanta=QUANTA) as leaf:
        leaf.inject(OTHER, data(99), 0)
        for number in range(8):
            leaf.inject(FROM, data(number), 100 * number)
        leaf.run(20 * MS)
        (paused_at, quanta), (resumed_at, none) = leaf.asked(FROM)
        assert (quanta, none) == (QUANTA, 0)
        # the sixth one of FROM is above xoff; when the sixth has left, two are there
        assert 500 < paused_at < 500 + MADE_NS
        began = {number: at for at, number in leaf.sent(HOST_PORT)}
        assert began[5] <= resumed_at < began[5] + MADE_NS
        assert leaf.asked(OTHER) == []
        (frame, _) = [output.data for output in leaf.outputs if output.port == FROM]
        assert frame == bytes(pfc_frame(STATION, {0: QUANTA}))
        counts = [leaf.rig.count(name, FROM) for name in ("pfc_sent", "pfc_pauses_sent")]
        assert counts == [2, 1]
        assert leaf.rig.register("pfc_most_bytes", FROM) == 8 * SIZE
        assert leaf.is_empty()


def test_a_pause_that_holds_is_asked_for_again() -> None:
    """Also while the packets can only wait: their port is closed."""
    with PfcRig("drill", xoff_bytes=3 * SIZE, xon_bytes=SIZE, quanta=QUANTA, refresh_ticks=REFRESH) as leaf:
        leaf.pause(HOST_PORT, 0xFFFF, 0)
        for number in range(5):
            leaf.inject(FROM, data(number), 1)
        end = 10 * REFRESH
        leaf.run(end)
        times = [at for at, quanta in leaf.asked(FROM) if quanta == QUANTA]
        assert len(times) == len(leaf.asked(FROM)) >= 8
        apart = [later - earlier for earlier, later in pairwise(times)]
        assert all(REFRESH <= gap < REFRESH + MADE_NS for gap in apart)
        leaf.pause(HOST_PORT, 0, end)
        leaf.run(end + 20 * MS)
        assert leaf.asked(FROM)[-1][1] == 0
        assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(5))
        assert leaf.is_empty()


def test_warnings_and_pauses_do_not_hide_each_other() -> None:
    """A packet has one clone in ingress and one in egress: pauses come first, warnings with the next packet."""
    with PfcRig("rlb_presto", kind=RlbRig, xoff_bytes=5 * SIZE, xon_bytes=3 * SIZE, quanta=QUANTA) as leaf:
        assert isinstance(leaf.rig, RlbRig)
        # whatever grows above two frames is warned of, at every packet
        usual = {"dt_ticks": 1, "warn_bytes": 2 * SIZE, "margin_ticks": FOREVER, "refresh_ticks": 0}
        leaf.rig.warnings(**usual, pause_bytes=5 * SIZE, valid_ticks=QUANTUM_NS)
        for number in range(10):
            leaf.inject(FROM, data(number), 100 + 10 * number)
        leaf.run(20 * MS)
        assert [quanta for _, quanta in leaf.asked(FROM)] == [QUANTA, 0]
        paused_at, resumed_at = (at for at, _ in leaf.asked(FROM))
        warnings = [(at, message.valid_ticks) for at, message in cnms(leaf.outputs, FROM)]
        assert warnings[-1][1] == 0, "withdrawn in the end"
        assert any(at < paused_at and valid for at, valid in warnings)
        assert warnings[-1][0] > resumed_at
        assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(10))
        assert leaf.is_empty()


def test_more_than_may_wait_is_dropped_and_counted() -> None:
    """What was let in is neither lost nor out of order; control packets take no room."""
    with PfcRig("presto", room=10) as leaf:
        leaf.pause(HOST_PORT, 0xFFFF, 0)
        for number in range(15):
            leaf.inject(FROM, data(number), 1 + number)
            leaf.inject(FROM, control(100 + number), 1 + number)
        leaf.run(5 * MS)
        leaf.pause(HOST_PORT, 0, 5 * MS)
        leaf.run(10 * MS)
        leaf.inject(FROM, data(15), 10 * MS)
        leaf.run(20 * MS)
        assert leaf.rig.drops() == {"NO_WAITING_ROOM": 5}
        numbers = [number for _, number in leaf.sent(HOST_PORT)]
        assert sorted(number for number in numbers if number >= 100) == list(range(100, 115))
        assert [number for number in numbers if number < 100] == [*range(10), 15]
        assert leaf.is_empty()


def test_a_packet_that_is_lost_against_the_rules_holds_nobody_up_for_ever() -> None:
    """A queue that is too short drops some that had their number: after the patience the others go on."""
    patience = 5 * MS
    with PfcRig("presto", patience_ticks=patience) as leaf:
        leaf.rig.switch.queue_config(HOST_PORT, depth=(4, 0))
        for number in range(10):
            leaf.inject(FROM, data(number), 0)
        leaf.run(MS)
        leaf.rig.switch.queue_config(HOST_PORT, depth=(0, 0))
        lost = 10 - len(leaf.sent(HOST_PORT))
        assert lost > 0
        for number in range(10, 15):
            leaf.inject(FROM, data(number), MS)
        leaf.run(MS + patience // 2)
        assert len(leaf.sent(HOST_PORT)) == 10 - lost
        leaf.run(10 * patience)
        for number in range(15, 20):
            leaf.inject(FROM, data(number), 10 * patience)
        leaf.run(20 * patience)
        numbers = [number for _, number in leaf.sent(HOST_PORT)]
        assert numbers[: 10 - lost] == [*range(10 - lost)]
        assert sorted(numbers[10 - lost : -5]) == [*range(10, 15)]
        assert numbers[-5:] == [*range(15, 20)], "in order again"
        issued, left = (leaf.rig.register(f"pfc_all_{name}") for name in ("issued", "left"))
        assert issued == left, "no room is lost with the packets"


def test_off_is_as_if_it_were_not_there() -> None:
    """Without configuration pause frames are frames that nobody knows, and nothing is paused."""
    with PfcRig("presto", room=0, xoff_bytes=1, xon_bytes=0) as leaf:
        leaf.pause(HOST_PORT, 0xFFFF, 0)
        for number in range(5):
            leaf.inject(FROM, data(number), 1)
        leaf.run(20 * MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(5))
        assert leaf.asked(FROM) == []
        assert leaf.rig.drops() == {"UNSUPPORTED": 1}
        assert leaf.rig.register("pfc_all_issued") == 0


@settings(max_examples=30)
@given(
    gaps=st.lists(st.integers(0, 2 * FRAME_NS), min_size=10, max_size=120),
    name=st.sampled_from(("presto", "rlb_drill")),
)
def test_an_obedient_sender_is_paused_above_xoff_only(gaps: list[int], name: str) -> None:
    """Whatever it sends: pauses and resumes alternate, and in the end it may send."""
    with PfcRig(name, xoff_bytes=6 * SIZE, xon_bytes=3 * SIZE, quanta=QUANTA) as leaf:
        now = 1  # 0 means that no pause was asked for
        for number, gap in enumerate(gaps):
            now += gap
            leaf.inject(FROM, data(number), now)
        leaf.run(now + ROOM * FRAME_NS)
        said = [quanta for _, quanta in leaf.asked(FROM)]
        assert said == [QUANTA, 0] * (len(said) // 2)
        most = leaf.rig.register("pfc_most_bytes", FROM)
        assert bool(said) == (most > 6 * SIZE)
        assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(len(gaps)))
        assert leaf.is_empty()
