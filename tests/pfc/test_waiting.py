# SPDX-License-Identifier: Apache-2.0
"""PFC by the program: what a pause stops, that nothing is lost by it, and that order is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tailrace.codec.layers.local import PAUSE_MAC
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import MAC_CONTROL_TYPE
from tests.p4src.rig import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, UPLINKS
from tests.pfc.rig import NEIGHBOUR, QUANTUM_NS, RATE_BPS, Model, PfcRig, control, data

PROGRAMS = (
    "ecmp",
    "letflow",
    "presto",
    "drill",
    "hermes",
    "rlb_presto",
    "rlb_letflow",
    "rlb_drill",
    "rlb_hermes",
)
FRAME_NS = len(data(0)) * 8 * 10**9 // RATE_BPS
LONG = 0xFFFF
MS = 1_000_000
FROM, OTHER = UPLINKS[:2]


@pytest.fixture(params=PROGRAMS)
def leaf(request: pytest.FixtureRequest) -> Iterator[PfcRig]:
    with PfcRig(request.param) as rig:
        yield rig


def test_a_pause_stops_the_queue_behind_the_frame_that_is_being_sent(leaf: PfcRig) -> None:
    """And a resume lets it go on, in order, at the rate of the link, with all that came meanwhile."""
    for number in range(10):
        leaf.inject(FROM, data(number), 0)
    leaf.pause(HOST_PORT, LONG, 2 * FRAME_NS + 1)
    for number in range(10, 15):
        leaf.inject(OTHER, data(number), MS)
    leaf.run(5 * MS)
    assert [number for _, number in leaf.sent(HOST_PORT)] == [0, 1, 2]
    leaf.pause(HOST_PORT, 0, 5 * MS)
    leaf.run(20 * MS)
    assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(15))
    again = [began for began, _ in leaf.sent(HOST_PORT)[3:]]
    assert again[0] >= 5 * MS
    assert again[-1] - again[0] == 11 * FRAME_NS, "the link is never idle, once the first one is let in"
    assert leaf.is_empty()
    assert leaf.rig.drops() == {}


def test_a_pause_ends_by_itself(leaf: PfcRig) -> None:
    """After its quanta, at the rate of the port."""
    leaf.pause(HOST_PORT, 100, 0)
    for number in range(5):
        leaf.inject(FROM, data(number), 1)
    leaf.run(100 * QUANTUM_NS - 1)
    assert leaf.sent(HOST_PORT) == []
    leaf.run(20 * MS)
    assert [number for _, number in leaf.sent(HOST_PORT)] == list(range(5))
    assert leaf.sent(HOST_PORT)[0][0] >= 100 * QUANTUM_NS
    assert leaf.rig.register("pfc_closed_ticks", HOST_PORT) == 100 * QUANTUM_NS
    assert leaf.is_empty()


def test_what_goes_before_data_does_not_wait(leaf: PfcRig) -> None:
    """Nor do other ports."""
    leaf.pause(HOST_PORT, LONG, 0)
    leaf.inject(FROM, data(0), 1)
    leaf.inject(FROM, control(1), 2)
    leaf.run(MS)
    assert [number for _, number in leaf.sent(HOST_PORT)] == [1]


def test_frames_that_are_no_pause_of_data() -> None:
    """Another class, another opcode, another address, half a frame: nothing waits; what is no PFC is counted."""
    with PfcRig("presto") as leaf:
        good = bytes(pfc_frame(NEIGHBOUR, {0: LONG}))
        leaf.inject(HOST_PORT, pfc_frame(NEIGHBOUR, {1: LONG, 7: LONG}), 0)
        for bad in (
            Ether(src=NEIGHBOUR, dst=PAUSE_MAC, type=MAC_CONTROL_TYPE) / Raw(b"\0\1" + good[16:]),
            Ether(bytes.fromhex("020000000001") + good[6:]),
            Ether(good[:33]),
        ):
            leaf.inject(HOST_PORT, bad, 0)
        leaf.inject(FROM, data(0), 1)
        leaf.run(MS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == [0]
        assert leaf.rig.count("pfc_received", HOST_PORT) == 1
        assert leaf.rig.drops() == {"UNSUPPORTED": 2, "MALFORMED": 1}


def test_a_port_of_which_nothing_is_said_is_not_paused() -> None:
    """There is no length of a quantum, so its pause would have no end."""
    with PfcRig("presto", rated=(OTHER_HOST_PORT,)) as leaf:
        leaf.pause(HOST_PORT, LONG, 0)
        leaf.inject(FROM, data(0), 1)
        leaf.run(1000 * QUANTUM_NS)
        assert [number for _, number in leaf.sent(HOST_PORT)] == [0]
        assert leaf.rig.count("pfc_received", HOST_PORT) == 1
        assert leaf.rig.drops() == {}


Step = tuple[str, int, int, int]
"""What happens, after how many ns, for which host, and a number: of the source's port, or quanta."""
HOSTS = ((HOST, HOST_PORT), (OTHER_HOST, OTHER_HOST_PORT))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 2 * FRAME_NS), st.integers(0, 1), st.integers(0, 3)),
        st.tuples(
            st.just("pause"),
            st.integers(0, 3 * FRAME_NS),
            st.integers(0, 1),
            st.sampled_from((0, 0, 5, 20, 60)),
        ),
    ),
    min_size=20,
    max_size=150,
)


@settings(max_examples=60)
@given(steps=STEPS, name=st.sampled_from(("presto", "rlb_drill")))
def test_any_pauses_at_any_time(steps: list[Step], name: str) -> None:
    """Nothing begins to leave while its port is closed, nothing is lost, nothing overtakes anything for its port."""
    models, now = [Model(), Model()], 0
    given_to: list[list[int]] = [[], []]
    with PfcRig(name) as leaf:
        for number, (what, later, to, value) in enumerate(steps):
            now += later
            address, port = HOSTS[to]
            if what == "data":
                leaf.inject(UPLINKS[value], data(number, dst=address), now)
                given_to[to].append(number)
            else:
                models[to].pause(value, now)
                leaf.pause(port, value, now)
        leaf.run(now + 1000 * MS)
        for (_, port), model, numbers in zip(HOSTS, models, given_to, strict=True):
            sent = leaf.sent(port)
            assert [number for _, number in sent] == numbers
            for began, number in sent:
                assert not any(begin < began < end for begin, end in model.closed()), (
                    f"{number} left at {began}"
                )
            assert leaf.rig.register("pfc_closed_ticks", port) == sum(
                end - begin for begin, end in model.closed()
            )
        assert leaf.is_empty()
        assert leaf.rig.drops() == {}
