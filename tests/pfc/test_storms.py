# SPDX-License-Identifier: Apache-2.0
"""The watchdog of pauses in the program: storms begin and end, what is dropped is counted, accounts stay right."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.spec.watchdog import Watchdog
from tests.p4src.rig import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, UPLINKS
from tests.pfc.rig import QUANTUM_NS, PfcRig, control, data
from tests.pfc.test_waiting import FRAME_NS, LONG, MS, PROGRAMS

FROM, OTHER = UPLINKS[:2]
DETECT_NS, RESTORE_NS = 5 * MS, 8 * MS
DOG = Watchdog(DETECT_NS, RESTORE_NS)
ROUND_NS = 2 * MS
"""The most that a round of few packets takes."""

DROP, NONE = 1, 0


def storm_of(leaf: PfcRig, port: int = HOST_PORT) -> int:
    return leaf.rig.register("pfc_storm", port)


def storm_digests(leaf: PfcRig) -> list[tuple[str, int]]:
    """The digests that were sent: name, port."""
    records = leaf.rig.switch.digests()
    names = [digest.name for digest in leaf.rig.model.digests]
    assert all(record.values[1] == 0 for record in records)
    return [(names[record.digest], record.values[0]) for record in records]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pause_that_does_not_end(name: str) -> None:
    """What waits is dropped after its time, what comes at once; other ports and control do not notice."""
    with PfcRig(name, watchdog=DOG) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        for number in range(10):
            leaf.inject(FROM, data(number), MS)
        leaf.run(MS + DETECT_NS - 1)
        assert (storm_of(leaf), leaf.rig.drops()) == (NONE, {})
        leaf.run(MS + DETECT_NS + ROUND_NS)
        assert (storm_of(leaf), leaf.rig.drops()) == (DROP, {"PFC_STORM": 10})
        assert leaf.is_empty()
        assert storm_digests(leaf) == [("pfc_storm_t", HOST_PORT)]
        leaf.inject(FROM, data(10), 10 * MS)
        leaf.inject(FROM, control(11), 10 * MS)
        leaf.inject(FROM, data(12, dst=OTHER_HOST), 10 * MS)
        leaf.run(12 * MS)
        assert leaf.rig.drops() == {"PFC_STORM": 11}
        assert [number for _, number in leaf.sent(HOST_PORT)] == [11]
        assert [number for _, number in leaf.sent(OTHER_HOST_PORT)] == [12]
        counts = [leaf.rig.count(counter, HOST_PORT) for counter in ("pfc_storms", "pfc_storm_drops")]
        assert counts == [1, 11]
        # 65,535 quanta from 0 on
        over_ns = LONG * QUANTUM_NS + RESTORE_NS
        leaf.inject(FROM, data(13), over_ns - 1)
        assert storm_digests(leaf) == []
        leaf.inject(FROM, data(14), over_ns)
        leaf.run(over_ns + MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == [11, 14]
        assert storm_digests(leaf) == [("pfc_restored_t", HOST_PORT)]
        assert leaf.rig.drops() == {"PFC_STORM": 12}
        assert leaf.is_empty()


def test_a_resume_ends_a_storm_after_its_time() -> None:
    """And the pause that began it counts as long as it was obeyed."""
    with PfcRig("ecmp", watchdog=DOG) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        leaf.inject(FROM, data(0), 0)
        leaf.run(10 * MS)
        assert 0 <= leaf.rig.register("pfc_closed_ticks", HOST_PORT) - DETECT_NS < ROUND_NS
        leaf.pause(HOST_PORT, LONG, 10 * MS)
        leaf.pause(HOST_PORT, 0, 20 * MS)
        leaf.pause(HOST_PORT, 0, 20 * MS + RESTORE_NS // 2)
        leaf.inject(FROM, data(1), 20 * MS + RESTORE_NS)
        leaf.run(30 * MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == [1]
        assert leaf.is_empty()


def test_only_time_with_packets_that_wait_counts() -> None:
    """A pause of a port to which nobody sends harms nobody."""
    with PfcRig("ecmp", watchdog=DOG) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        leaf.inject(FROM, data(0), 10 * DETECT_NS)
        leaf.run(11 * DETECT_NS - 1)
        assert storm_of(leaf) == NONE
        leaf.run(11 * DETECT_NS + ROUND_NS)
        assert storm_of(leaf) == DROP


def test_pauses_may_be_ignored() -> None:
    """Then all is sent, in order."""
    with PfcRig("ecmp", watchdog=Watchdog(DETECT_NS, RESTORE_NS, action="ignore")) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        for number in range(10):
            leaf.inject(FROM, data(number), 0)
        leaf.pause(HOST_PORT, LONG, 10 * MS)
        for number in range(10, 15):
            leaf.inject(FROM, data(number), 10 * MS)
        leaf.run(20 * MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(15))
        assert leaf.sent(HOST_PORT)[0][0] >= DETECT_NS
        assert leaf.rig.drops() == {}
        assert leaf.is_empty()


@pytest.mark.parametrize(("stop_ns", "go_ns"), [(DETECT_NS - MS, MS // 2), (2 * MS, 2 * MS), (MS // 2, MS)])
def test_toggling_is_found(stop_ns: int, go_ns: int) -> None:
    """Who holds a port for more of the time than a share of it."""
    with PfcRig("ecmp", watchdog=Watchdog(DETECT_NS, RESTORE_NS, 0.05)) as leaf:
        number, end_ns = 0, 60 * MS
        for begin in range(0, end_ns, stop_ns + go_ns):
            leaf.pause(HOST_PORT, LONG, begin)
            for at_ns in range(begin, begin + stop_ns, 10 * FRAME_NS):
                leaf.inject(FROM, data(number), at_ns)
                number += 1
            leaf.pause(HOST_PORT, 0, begin + stop_ns)
        leaf.run(end_ns)
        assert leaf.rig.count("pfc_storms", HOST_PORT) > 0
        assert leaf.rig.register("pfc_closed_ticks", HOST_PORT) < 0.05 * end_ns + DETECT_NS + 2 * ROUND_NS


def test_who_pauses_little_is_left_alone() -> None:
    """Below its share, for as long as it likes."""
    with PfcRig("ecmp", watchdog=Watchdog(DETECT_NS, RESTORE_NS, 0.05)) as leaf:
        numbers = []
        for turn in range(20):
            begin = turn * 40 * MS
            leaf.pause(HOST_PORT, LONG, begin)
            leaf.inject(FROM, data(turn), begin)
            leaf.pause(HOST_PORT, 0, begin + MS)
            numbers.append(turn)
        leaf.run(1000 * MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == numbers
        assert leaf.rig.count("pfc_storms", HOST_PORT) == 0


def test_a_storm_frees_who_was_paused_for_it() -> None:
    """The sender of what waits is resumed, once that is dropped."""
    frame = len(data(0))
    with PfcRig("ecmp", watchdog=DOG, xoff_bytes=3 * frame, xon_bytes=frame) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        for number in range(8):
            leaf.inject(FROM, data(number), MS)
        leaf.run(MS + DETECT_NS - 1)
        assert [quanta for _, quanta in leaf.asked(FROM)] == [LONG]
        leaf.run(MS + DETECT_NS + ROUND_NS)
        assert [quanta for _, quanta in leaf.asked(FROM)] == [LONG, 0]
        assert leaf.is_empty()


Step = tuple[str, int, int, int]
HOSTS = ((HOST, HOST_PORT), (OTHER_HOST, OTHER_HOST_PORT))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 20 * FRAME_NS), st.integers(0, 1), st.integers(0, 3)),
        st.tuples(
            st.just("pause"), st.integers(0, MS), st.integers(0, 1), st.sampled_from((0, 5, 60, LONG, LONG))
        ),
    ),
    min_size=20,
    max_size=120,
)


@settings(max_examples=50)
@given(
    steps=STEPS,
    name=st.sampled_from(("presto", "rlb_drill")),
    share=st.sampled_from((0.05, 0.5, 1.0)),
    action=st.sampled_from(("drop", "ignore")),
)
def test_any_pauses_at_any_time(steps: list[Step], name: str, share: float, action: str) -> None:
    """What is not dropped leaves in order; every packet is sent or counted; in the end nothing is held."""
    now = 0
    given_to: list[list[int]] = [[], []]
    dog = Watchdog(MS, 2 * MS, share, "drop" if action == "drop" else "ignore")
    with PfcRig(name, watchdog=dog) as leaf:
        for number, (what, later, to, value) in enumerate(steps):
            now += later
            address, port = HOSTS[to]
            if what == "data":
                leaf.inject(UPLINKS[value], data(number, dst=address), now)
                given_to[to].append(number)
            else:
                leaf.pause(port, value, now)
        leaf.run(now + LONG * QUANTUM_NS + 100 * MS)
        gone = 0
        for (_, port), numbers in zip(HOSTS, given_to, strict=True):
            sent = [number for _, number in leaf.sent(port)]
            assert sent == [number for number in numbers if number in set(sent)]
            dropped = leaf.rig.count("pfc_storm_drops", port)
            assert len(sent) + dropped == len(numbers)
            gone += dropped
        assert leaf.rig.drops() == ({"PFC_STORM": gone} if gone else {})
        assert action == "drop" or gone == 0
        assert leaf.is_empty()
        begun = sum(leaf.rig.count("pfc_storms", port) for _, port in HOSTS)
        assert len([name for name, _ in storm_digests(leaf) if name == "pfc_storm_t"]) == begun
