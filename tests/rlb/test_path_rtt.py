# SPDX-License-Identifier: Apache-2.0
"""RTTs of paths by stamps on data between leaves, which hosts never see (RLB §V)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.local import LocalHeader, PathProbe
from tailrace.codec.numbers import Opcode
from tests.p4src.frames import roce
from tests.p4src.rig import HOST, HOST_PORT, REMOTE, UPLINKS
from tests.rlb.models import PathStamps
from tests.rlb.rig import LEAVES, OWN_LEAF, REMOTE_LEAF, RlbRig

PERIOD = 1000
KEEP = 8 * PERIOD
RTT_BYTES = 4  # the last ones of path_state_t
START = 1 << 33  # more than the 32 bits of a stamp


@pytest.fixture(scope="module")
def shared() -> Iterator[RlbRig]:
    with RlbRig() as rig:
        rig.warnings()
        rig.clock = START
        yield rig


@pytest.fixture
def leaf(shared: RlbRig) -> RlbRig:
    shared.reset()
    shared.clock += 1_000_000
    shared.probes(PERIOD)
    return shared


def send(rig: RlbRig, now: int, slot: int = 0, frame: Packet | None = None) -> Packet:
    """What leaves of a packet from a host that wants to take a slot."""
    rig.next_slot(slot)
    return Ether(rig.forward(HOST_PORT, frame or roce(), rig.clock + now).data)


def probed(frame: Packet, **fields: int) -> Packet:
    """A frame of the other leaf, with a probe."""
    header = LocalHeader() / PathProbe(**{"leaf": REMOTE_LEAF, **fields})
    return Ether(src=frame.src, dst=frame.dst) / header / frame[IP].copy()


def test_one_stamp_a_path_and_period(leaf):
    """The first packet of a path has a stamp, then none for a period; another path has its own."""
    stamped = [PathProbe in send(leaf, now) for now in (1, 2, 1001, 1002, 1003)]
    assert stamped == [True, False, False, True, False]
    assert PathProbe in send(leaf, 1005, slot=1)
    probe = send(leaf, 1006, slot=2)[PathProbe]
    assert (probe.stamped, probe.echoes, probe.leaf, probe.path) == (1, 0, OWN_LEAF, UPLINKS[2])
    assert probe.ticks == (leaf.clock + 1006) % 2**32
    assert probe.next_type == 0x0800


def test_packet_is_else_as_without_a_probe(leaf):
    """Every byte behind the probe is as the host sent it, but for hop limit and path tag."""
    with_probe = send(leaf, 1)
    without = send(leaf, 2)
    assert bytes(with_probe[IP]) == bytes(without[IP])
    assert leaf.empty()


def test_control_packets_are_not_stamped(leaf):
    """They wait in no queue of data; but they take stamps back."""
    answer = roce(opcode=int(Opcode.ACK))
    assert PathProbe not in send(leaf, 1, frame=answer)
    leaf.send(UPLINKS[1], probed(roce(src=REMOTE, dst=HOST), stamped=1, path=9, ticks=77), leaf.clock + 10)
    probe = send(leaf, 15, frame=answer)[PathProbe]
    assert (probe.stamped, probe.echoes) == (0, 1)
    assert (probe.echo_path, probe.echo_ticks, probe.echo_wait) == (9, 77, 5)
    assert PathProbe not in send(leaf, 16, frame=answer)


def test_hosts_never_see_it(leaf):
    """The frame at the host is that without a probe, byte by byte."""
    frame = roce(src=REMOTE, dst=HOST)
    plain = leaf.forward(UPLINKS[0], frame, leaf.clock)
    probe = leaf.forward(UPLINKS[0], probed(frame, stamped=1, path=3, ticks=5), leaf.clock + 1)
    assert (probe.port, probe.data.hex()) == (HOST_PORT, plain.data.hex())
    assert leaf.empty()


@pytest.mark.parametrize(("rtt", "wait", "seen"), [(1, 0, 1), (0, 0, 1), (12_345, 678, 11_667)])
def test_rtt_is_without_the_wait(leaf, rtt, wait, seen):
    """now - stamp - wait, also where 32 bits wrapped; what is shorter than a tick is one."""
    stamp = send(leaf, 1)[PathProbe].ticks
    echo = {"echoes": 1, "echo_path": UPLINKS[0], "echo_ticks": stamp, "echo_wait": wait}
    leaf.send(UPLINKS[3], probed(roce(src=REMOTE, dst=HOST), **echo), leaf.clock + 1 + rtt)
    assert leaf.register("path_rtt_ticks", UPLINKS[0] * LEAVES + REMOTE_LEAF) == seen
    assert leaf.count("path_rtts_measured") > 0


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stamp", "answer", "look"]),
            st.integers(0, 2 * PERIOD),
            st.integers(0, 9),
            st.integers(0, 500),
        ),
        min_size=1,
        max_size=30,
    )
)
@example(
    [
        ("stamp", 1, 0, 0),
        ("answer", 300, 0, 0),
        ("stamp", 2000, 0, 0),
        ("look", 300, 0, 0),
        ("look", 9000, 0, 0),
    ]
)
@example([("stamp", PERIOD + 1, 0, 0)] * 4 + [("answer", 1, 2, 0), ("look", 1, 0, 0), ("look", 2000, 0, 0)])
@example([("stamp", PERIOD + 1, 0, 0)] * 2 + [("answer", 1, 1, 0), ("answer", 1, 0, 0), ("look", 1, 0, 0)])
def test_rtt_counts_as_much_as_its_oldest_stamp_is_old(shared, steps):
    """Stamps, answers to any of them in any order, lost ones: what READ_PATH tells is what the model says."""
    shared.reset()
    shared.probes(PERIOD, KEEP)
    model, stamps, now = PathStamps(KEEP), [], shared.clock + 1_000_000
    path = UPLINKS[0] * LEAVES + REMOTE_LEAF
    for step, gap, which, wait in steps:
        now += gap
        if step == "stamp":
            shared.next_slot(0)
            if PathProbe in Ether(shared.forward(HOST_PORT, roce(), now).data):
                stamps.append(now)
                model.waiting.append(now)
        elif step == "answer" and stamps:
            stamp = stamps[-1 - which % len(stamps)]
            wait = min(wait, now - stamp)
            echo = {"echoes": 1, "echo_path": UPLINKS[0], "echo_ticks": stamp % 2**32, "echo_wait": wait}
            shared.send(UPLINKS[3], probed(roce(src=REMOTE, dst=HOST), **echo), now)
            model.answer(now, stamp, wait)
        (answer,) = shared.packet_out("READ_PATH", path, now)
        assert int.from_bytes(answer.data[-RTT_BYTES:], "big") == model.rtt(now)
    shared.clock = now


def test_there_and_back_between_two_leaves(leaf):
    """A stamp goes out, waits in the other leaf for a packet, and comes back as the RTT of its path."""
    there, wait, back = 300, 40, 200
    with RlbRig() as other:
        other.warnings(own_leaf=REMOTE_LEAF)
        other.probes(PERIOD)
        # the other leaf's host is where this leaf's is; REMOTE_LEAF stands for this leaf there
        frame = send(leaf, 1, slot=2)
        frame[PathProbe].leaf = REMOTE_LEAF
        frame[IP].src, frame[IP].dst = REMOTE, HOST
        del frame[IP].chksum
        other.send(UPLINKS[0], frame, leaf.clock + 1 + there)
        answer = Ether(other.forward(HOST_PORT, roce(), leaf.clock + 1 + there + wait).data)
    answer[IP].src, answer[IP].dst = REMOTE, HOST
    del answer[IP].chksum
    leaf.send(UPLINKS[1], answer, leaf.clock + 1 + there + wait + back)
    assert leaf.register("path_rtt_ticks", UPLINKS[2] * LEAVES + REMOTE_LEAF) == there + back


def test_numbers_that_there_is_no_room_for(leaf):
    """A leaf or a path too large changes nothing, and the packet goes on."""
    frame = roce(src=REMOTE, dst=HOST)
    for fields in ({"stamped": 1, "leaf": LEAVES}, {"echoes": 1, "echo_path": 256}):
        assert leaf.forward(UPLINKS[0], probed(frame, **fields), leaf.clock).port == HOST_PORT
    assert PathProbe not in send(leaf, 1, frame=roce(opcode=int(Opcode.ACK)))


def test_switches_between_leave_it_alone(leaf):
    """A probe that is not for a host of this switch travels on as it came."""
    frame = probed(roce(), stamped=1, path=3, ticks=5)
    passed_on = Ether(leaf.forward(UPLINKS[0], frame, leaf.clock).data)
    assert bytes(passed_on[PathProbe])[:21] == bytes(frame[PathProbe])[:21]


def test_period_zero_measures_nothing(leaf):
    leaf.probes(0)
    assert PathProbe not in send(leaf, 1)
