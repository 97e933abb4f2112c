# SPDX-License-Identifier: Apache-2.0
"""PFC frames: when they are sent and what they do, to the nanosecond, and what is not one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.layers.pfc import pfc_frame
from tailrace.switch.core import PfcConfig, SwitchConfig, V1ModelSwitch
from tests.switch.core.test_traffic_manager import frame, program

MAC = "02:00:00:00:00:01"
CLASS = 3
FRAME_BYTES = 1000
# A byte takes a nanosecond: a frame 1000 ns, a pause frame 60 ns, a pause quantum (512 bits) 64 ns.
RATE_BPS = 8_000_000_000
DELAY_NS = 500
LIMITS = (3000, 1000, 2000)
"""xoff, xon and headroom in bytes."""
FOREVER = bytes(pfc_frame(MAC, {CLASS: 0xFFFF}))


def switch_of(quanta: int = 0xFFFF, priorities: tuple[int, ...] = (CLASS,)) -> V1ModelSwitch:
    return V1ModelSwitch(
        program(),
        SwitchConfig(
            port_rate_bps=RATE_BPS,
            port_delay_ns=DELAY_NS,
            priority_queues=8,
            queue_depth_packets=0,
            pfc=PfcConfig(priorities, *LIMITS, quanta),
        ),
    )


def data(priority: int = CLASS) -> bytes:
    return frame(2, priority, FRAME_BYTES)


def asked(switch: V1ModelSwitch, port: int = 1) -> list[tuple[int, int]]:
    """Times at which pause frames had left a port, and their quanta."""
    pauses = []
    for out in switch.outputs():
        if out.port == port:
            assert (out.data[:6].hex(), out.data[12:18].hex()) == ("0180c2000001", "880801010008")
            assert not any(out.data[18 : 18 + 2 * CLASS]) and not any(out.data[20 + 2 * CLASS :])
            pauses.append((out.time_ns, int.from_bytes(out.data[18 + 2 * CLASS : 20 + 2 * CLASS], "big")))
    return pauses


def test_when_a_sender_is_paused_and_resumed() -> None:
    """A frame each 500 ns comes in by port 1, one each 1000 ns goes out by port 2.

        time      0  500  1000  1500  2000  2500  3000  3500 | 4000  5000  6000
        in        x  x    x     x     x     x     x     x    |
        out       x       x           x           x          | x     x     x
        waiting   0  1    1     2     2     3     3     4 kB | 3     2     1

    Above 3 kB at 3500: the pause has left port 1 after 60 ns, and is at the other end 500 ns later. At 1 kB at
    6000: so does the resume.
    """
    with switch_of() as switch:
        for time_ns in range(0, 4000, 500):
            switch.inject(1, data(), time_ns)
        assert switch.pfc_stats(1, CLASS).bytes == 4000
        switch.run(100_000)
        assert asked(switch) == [(3500 + 60 + DELAY_NS, 0xFFFF), (6000 + 60 + DELAY_NS, 0)]
        stats = switch.pfc_stats(1, CLASS)
        assert (stats.pausing_ns, stats.xoff_sent, stats.xon_sent) == (2500, 1, 1)
        assert (stats.bytes, stats.most_bytes, stats.headroom_most_bytes) == (0, 4000, 1000)


def test_a_switch_without_a_program_hears_pauses_and_drops_the_rest() -> None:
    with switch_of() as switch:
        loaded = program()
        switch.load(None)
        switch.inject(2, FOREVER, 0)
        switch.inject(1, data(), 500)
        switch.run(20_000)
        assert switch.outputs() == []
        switch.load(loaded)
        switch.inject(1, data(), 20_000)
        assert [out.port for out in switch.outputs()] == []  # still paused
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0})), 30_000)
        switch.run(40_000)
        assert [out.port for out in switch.outputs()] == [2]


def test_a_pause_is_repeated_before_it_ends() -> None:
    """100 quanta are 6400 ns; half of them after the last bit has left, at 1560 and so on, the next frame goes."""
    with switch_of(quanta=100) as switch:
        switch.inject(2, FOREVER, 0)
        for time_ns in range(0, 2000, 500):
            switch.inject(1, data(), time_ns)
        switch.run(9000)
        assert asked(switch) == [(time + DELAY_NS, 100) for time in (1560, 1560 + 3260, 1560 + 2 * 3260)]
        assert switch.pfc_stats(1, CLASS, 9000).pausing_ns == 9000 - 1500


@pytest.mark.parametrize(
    ("resume_ns", "starts_ns"),
    [(None, 1580), (1200, 1200), (700, 1000)],
)
def test_when_a_queue_is_paused_and_resumed(resume_ns: int | None, starts_ns: int) -> None:
    """20 quanta from 300 on end at 1580; the frame on the wire until 1000 is not interrupted."""
    with switch_of() as switch:
        for _ in range(2):
            switch.inject(1, data(), 0)
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 20})), 300)
        if resume_ns is not None:
            switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0})), resume_ns)
        switch.run(100_000)
        ends = [out.time_ns for out in switch.outputs() if out.port == 2]
        assert ends == [1000 + DELAY_NS, starts_ns + 1000 + DELAY_NS]
        stats = switch.pfc_stats(2, CLASS)
        assert stats.paused_ns == (1580 if resume_ns is None else resume_ns) - 300
        assert stats.received == 1 + (resume_ns is not None)
        assert stats.times_paused == 1
        assert switch.port_stats(2).paused_ns == stats.paused_ns


def test_a_pause_ends_with_its_link() -> None:
    """Who asked for it is gone: what waited is not held up, and is not when the link is back."""
    config = SwitchConfig(priority_queues=8, pfc=PfcConfig((CLASS,), *LIMITS))
    with V1ModelSwitch(program(), config) as switch:
        switch.inject(2, FOREVER, 100)
        switch.inject(1, data(), 200)
        switch.run(5000)
        assert [out for out in switch.outputs() if out.port == 2] == []
        switch.port_set(2, up=False)
        switch.run(6000)
        assert switch.drops()["port_down"] == 1
        switch.port_set(2, up=True)
        switch.inject(1, data(), 7000)
        assert [out.time_ns for out in switch.outputs() if out.port == 2] == [7000]
        assert switch.pfc_stats(1, CLASS).bytes == 0


def test_a_link_that_comes_back_is_told_again() -> None:
    """The other end has forgotten its pause; while the link is down nobody is told anything."""
    with switch_of(quanta=100) as switch:
        switch.inject(2, FOREVER, 0)
        for time_ns in range(0, 2000, 500):
            switch.inject(1, data(), time_ns)
        switch.run(1600)
        assert asked(switch) == [(1560 + DELAY_NS, 100)]
        switch.port_set(1, up=False)
        switch.run(20_000)
        assert asked(switch) == []
        assert "port_down" not in switch.drops()
        switch.port_set(1, up=True)
        switch.run(20_100)
        assert [quanta for _, quanta in asked(switch)] == [100]


def test_a_quantum_has_a_length_where_a_port_has_no_rate() -> None:
    """512 bits at 10 Gbit/s, as Linux says of a veth; so no pause is without end, whoever has gone silent."""
    config = SwitchConfig(priority_queues=8, pfc=PfcConfig((CLASS,), *LIMITS))
    max_ns = 0xFFFF * 512 // 10
    with V1ModelSwitch(program(), config) as switch:
        switch.inject(2, FOREVER, 100)
        switch.inject(1, data(), 200)
        switch.run(100_000_000)
        assert [o.time_ns for o in switch.outputs() if o.port == 2] == [100 + max_ns]
        assert switch.pfc_stats(2, CLASS).paused_ns == max_ns


def test_a_pause_is_counted_while_it_lasts() -> None:
    """Up to the time that is asked for."""
    config = SwitchConfig(priority_queues=8, pfc=PfcConfig((CLASS,), *LIMITS))
    with V1ModelSwitch(program(), config) as switch:
        switch.inject(2, FOREVER, 100)
        assert switch.pfc_stats(2, CLASS, 5100).paused_ns == 5000
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0})), 7100)
        assert switch.pfc_stats(2, CLASS, 9999).paused_ns == 7000


def test_a_frame_may_name_all_classes() -> None:
    """Each has its own time; none of them leaves before."""
    with switch_of(priorities=tuple(range(8))) as switch:
        switch.inject(2, bytes(pfc_frame(MAC, {i: 100 * (i + 1) for i in range(8)})), 0)
        for priority in range(8):
            switch.inject(1, data(priority), 0)
        switch.run(1_000_000)
        left = [(o.data[1] >> 4 & 7, o.time_ns) for o in switch.outputs() if o.port == 2]
        assert left == [(i, 6400 * (i + 1) + 1000 + DELAY_NS) for i in range(8)]


def test_classes_that_are_not_lossless_are_not_paused() -> None:
    """A neighbour pauses only what both have agreed on."""
    with switch_of() as switch:
        switch.inject(2, bytes(pfc_frame(MAC, dict.fromkeys(range(8), 0xFFFF))), 0)
        for priority in (CLASS, 4):
            switch.inject(1, data(priority), 0)
        switch.run(10_000)
        assert [o.data[1] >> 4 & 7 for o in switch.outputs()] == [4]


def test_zero_quanta_pause_nothing() -> None:
    """Nor do they where nothing was paused."""
    with switch_of() as switch:
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0})), 0)
        switch.inject(1, data(), 0)
        assert [out.time_ns for out in switch.outputs()] == [1000 + DELAY_NS]
        assert switch.port_stats(2).pfc_received == 1
        assert switch.drops() == {"pfc_frame": 1}


def changed(at: int, value: str) -> bytes:
    new = bytes.fromhex(value)
    return FOREVER[:at] + new + FOREVER[at + len(new) :]


IGNORED = {
    "only a type": FOREVER[:14],
    "half an opcode": FOREVER[:15],
    "no classes": FOREVER[:16],
    "seven times": FOREVER[:33],
    "the pause of all classes": changed(14, "0001"),
    "an opcode that nobody knows": changed(14, "0102"),
    "somebody else's": changed(0, "020000000002"),
    "for all": changed(0, "ffffffffffff"),
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_is_no_valid_pause_is_ignored_and_counted(name: str) -> None:
    """It pauses nothing and goes no further."""
    with switch_of() as switch:
        switch.inject(2, IGNORED[name], 0)
        switch.inject(1, data(), 0)
        assert [(out.port, out.time_ns) for out in switch.outputs()] == [(2, 1000 + DELAY_NS)]
        stats = switch.port_stats(2)
        assert (stats.pfc_ignored, stats.pfc_received, stats.paused_ns) == (1, 0, 0)
        assert switch.drops() == {"mac_control": 1}
        assert switch.account().balanced


def test_the_shortest_valid_frame_is_obeyed() -> None:
    """Padding is the sender's affair."""
    with switch_of() as switch:
        switch.inject(2, FOREVER[:34], 0)
        assert switch.port_stats(2).pfc_received == 1


@settings(max_examples=150)
@given(
    head=st.sampled_from([FOREVER[:12], bytes(12)]),
    rest=st.one_of(st.binary(max_size=60), st.binary(max_size=50).map(lambda b: b"\x01\x01" + b)),
)
def test_no_control_frame_goes_further(head: bytes, rest: bytes) -> None:
    """Whatever stands behind the type: it is obeyed or ignored, and all is accounted for."""
    with switch_of(priorities=(0, CLASS, 7)) as switch:
        switch.inject(2, head + b"\x88\x08" + rest, 0)
        stats = switch.port_stats(2)
        assert (stats.pfc_received + stats.pfc_ignored, switch.outputs()) == (1, [])
        assert sum(switch.drops().values()) == 1
        assert switch.account().balanced


def test_without_pfc_a_pause_frame_is_a_packet() -> None:
    """As any other: the program has it."""
    with V1ModelSwitch(program(), SwitchConfig(priority_queues=8)) as switch:
        switch.inject(2, FOREVER, 0)
        assert switch.drops() == {}
        assert len(switch.outputs()) == 1


def test_pfc_that_is_turned_off_holds_nobody() -> None:
    """The sender is resumed, the queue goes on, and what waits is still accounted for."""
    with switch_of() as switch:
        switch.inject(2, FOREVER, 0)
        for _ in range(4):
            switch.inject(1, data(), 0)
        switch.port_pfc(1, PfcConfig((), 0, 0, 0))
        switch.port_pfc(2, PfcConfig((), 0, 0, 0))
        switch.run(0)
        switch.run(100_000)
        out = switch.outputs()
        assert [int.from_bytes(o.data[24:26], "big") for o in out if o.port == 1] == [0xFFFF, 0]
        assert len([o for o in out if o.port == 2]) == 4
        assert switch.pfc_stats(1, CLASS).bytes == 0
        look = switch.buffer()
        assert (look.balanced, look.held_bytes) == (True, 0)
