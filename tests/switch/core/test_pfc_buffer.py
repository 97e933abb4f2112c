# SPDX-License-Identifier: Apache-2.0
"""Who may wait in the switch: thresholds of ports and priorities, headrooms, and the buffer that all share."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.switch.core import BufferConfig, PfcConfig, PfcLimits, StateError, SwitchConfig, V1ModelSwitch
from tests.switch.core.test_account import CONFIGS, FRAMES, PROGRAMS, Driven
from tests.switch.core.test_traffic_manager import circling, frame, program

CLASS = 3
LOSSY = 4
FRAME_BYTES = 100
# Port 2 is slow enough to send nothing more after its first frame.
SLOW_BPS = 8


def switch_of(pfc: PfcConfig, buffer: BufferConfig | None = None) -> V1ModelSwitch:
    """A switch in which 100-byte frames from port 1 and 3 wait for port 2."""
    config = SwitchConfig(priority_queues=8, queue_depth_packets=0, pfc=pfc, buffer=buffer)
    switch = V1ModelSwitch(program(), config)
    switch.port_config(2, rate_bps=SLOW_BPS)
    switch.inject(2, frame(2, LOSSY, FRAME_BYTES), 0)
    for port in (1, 3):
        switch.inject(port, frame(port, LOSSY, FRAME_BYTES), 0)
    switch.outputs()
    return switch


def send(switch: V1ModelSwitch, port: int, frames: int, priority: int = CLASS) -> int:
    """Sends so many frames to port 2; how many of them the switch has kept."""
    before = sum(switch.drops().values())
    for _ in range(frames):
        switch.inject(port, frame(2, priority, FRAME_BYTES), 0)
    return frames - (sum(switch.drops().values()) - before)


def test_priorities_have_thresholds_of_their_own() -> None:
    """And ports, by another call."""
    pfc = PfcConfig((3, 4), 1000, 500, 200, overrides={4: PfcLimits(300, 100, 400)})
    with switch_of(pfc) as switch:
        assert [send(switch, 1, 50, priority) for priority in (3, 4)] == [12, 7]
        assert [switch.pfc_stats(1, p).headroom_most_bytes for p in (3, 4)] == [200, 400]
        switch.port_pfc(3, PfcConfig((3,), 2000, 500, 0))
        assert send(switch, 3, 50, 3) == 20
        assert send(switch, 3, 50, 4) == 50, "not lossless on this port"
        assert switch.drops() == {"pfc_headroom": (50 - 12) + (50 - 7) + (50 - 20)}


def test_a_refused_packet_pauses_too() -> None:
    """Without headroom nothing is ever above the threshold."""
    with switch_of(PfcConfig((CLASS,), 1000, 500, 0)) as switch:
        assert send(switch, 1, 10) == 10
        assert switch.pfc_stats(1, CLASS).xoff_sent == 0
        assert send(switch, 1, 1) == 0
        assert switch.pfc_stats(1, CLASS).xoff_sent == 1


def test_lossy_packets_share_what_headrooms_leave() -> None:
    """Three ports with 500 bytes each, of 4000: 2500 are for all."""
    with switch_of(PfcConfig((CLASS,), 10_000, 500, 500), BufferConfig(4000)) as switch:
        assert switch.buffer().reserved_bytes == 1500
        assert send(switch, 1, 40, LOSSY) == 25
        assert switch.drops() == {"buffer_full": 15}
        assert switch.port_stats(2).dropped == 15
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes, look.balanced) == (2500, 0, True)


def test_data_do_not_get_what_ports_have_for_others() -> None:
    """Where lossless packets hold all the rest, each port still has room for some that are not."""
    pfc = PfcConfig((CLASS,), 10_000, 500, 500)
    with switch_of(pfc, BufferConfig(4900, port_bytes=300)) as switch:
        assert switch.buffer().reserved_bytes == 3 * (500 + 300)
        assert send(switch, 1, 40) == 25 + 5
        assert [send(switch, port, 9, LOSSY) for port in (1, 3)] == [3, 3]
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes, look.own_bytes) == (2500, 500, 600)
        assert look.balanced
        switch.load(switch.program)
        assert switch.buffer().own_bytes == 0


def test_a_full_buffer_pauses_below_the_threshold() -> None:
    """Then each port has its headroom still; and what did not fit in either is dropped, and says so."""
    with switch_of(PfcConfig((CLASS,), 10_000, 500, 500), BufferConfig(4000)) as switch:
        assert send(switch, 1, 25) == 25
        assert switch.pfc_stats(1, CLASS).xoff_sent == 0
        assert send(switch, 3, 40) == 5
        assert switch.pfc_stats(3, CLASS).xoff_sent == 1
        assert send(switch, 1, 40) == 5
        assert switch.drops() == {"buffer_full": 35 + 35}
        look = switch.buffer()
        assert (look.shared_most_bytes, look.headroom_most_bytes, look.balanced) == (2500, 1000, True)


def test_dynamic_thresholds_leave_something_for_others() -> None:
    """With alpha 1 the first port may take half of the 8000 shared bytes, the second half of what is left then."""
    pfc = PfcConfig((CLASS,), 100_000, 100_000, 1000)
    with switch_of(pfc, BufferConfig(11_000, Fraction(1))) as switch:
        assert send(switch, 1, 40) == 40
        assert switch.pfc_stats(1, CLASS).xoff_sent == 0
        assert send(switch, 1, 40) == 10
        assert switch.pfc_stats(1, CLASS).xoff_sent == 1
        assert send(switch, 3, 40) == 20 + 10
        assert switch.pfc_stats(3, CLASS).headroom_bytes == 1000
        # its threshold was 2000 at most, so its loss is the buffer's affair
        assert set(switch.drops()) == {"buffer_full"}


def test_a_dynamic_threshold_is_at_most_the_one_configured() -> None:
    """However much is free."""
    with switch_of(PfcConfig((CLASS,), 1000, 500, 500), BufferConfig(1 << 20, Fraction(4))) as switch:
        assert send(switch, 1, 40) == 15
        assert switch.drops() == {"pfc_headroom": 25}


def test_dynamic_thresholds_need_a_limit() -> None:
    """Of infinitely much there is no share."""
    with V1ModelSwitch(program()) as switch, pytest.raises(StateError, match="buffer"):
        switch.buffer_config(BufferConfig(0, Fraction(1, 8)))


def test_a_recirculated_packet_keeps_its_room() -> None:
    """Twelve frames go round and round at 100 us each: one pause, repeated, no resume, no byte more or less."""
    # of 65,535 times 512 bits at 10 Gbit/s, for the port has no rate
    repeat_ns = 65_535 * 512 // 10 // 2
    pfc = PfcConfig((0,), 1000, 500, 500)
    config = SwitchConfig(
        recirc_rate_bps=8_000_000, queue_depth_packets=0, pfc=pfc, buffer=BufferConfig(9000)
    )
    with V1ModelSwitch(circling("recirculate"), config) as switch:
        for _ in range(12):
            switch.inject(1, frame(2), 0)
        for until_ns in range(0, 5_000_000, 37_000):
            switch.run(until_ns)
            stats, look = switch.pfc_stats(1, 0), switch.buffer()
            assert (stats.bytes, stats.headroom_bytes) == (1200, 200)
            assert (stats.xoff_sent, stats.xon_sent) == (1 + until_ns // repeat_ns, 0)
            assert (look.shared_bytes, look.headroom_bytes, look.held_bytes) == (1000, 200, 1200)
        assert switch.drops() == {}
        switch.load(switch.program)
        assert switch.pfc_stats(1, 0).bytes == switch.buffer().held_bytes == switch.buffer().shared_bytes == 0
        assert switch.drops() == {"pipeline_replaced": 12 + stats.xoff_sent}, (
            "with the pauses that nobody has fetched"
        )


def test_what_was_accepted_is_not_dropped_when_it_comes_round() -> None:
    """Others take what was free meanwhile, and the dynamic threshold falls below what is there: it stays there."""
    pfc = PfcConfig((0,), 3000, 500, 200)
    config = SwitchConfig(
        recirc_rate_bps=8_000_000, queue_depth_packets=0, pfc=pfc, buffer=BufferConfig(4000, Fraction(1))
    )
    with V1ModelSwitch(circling("recirculate"), config) as switch:
        switch.port_pfc(3, PfcConfig((CLASS,), 3000, 500, 200))
        for _ in range(12):
            switch.inject(1, frame(2), 0)
        for _ in range(20):
            switch.inject(3, frame(2), 0)
        before = switch.pfc_stats(1, 0)
        look = switch.buffer()
        assert look.bytes - look.reserved_bytes - look.shared_bytes < 500
        for until_ns in range(0, 9_000_000, 370_000):
            switch.run(until_ns)
            stats = switch.pfc_stats(1, 0)
            assert (stats.bytes, stats.headroom_bytes) == (1200, before.headroom_bytes)
        assert switch.drops() == {}
        assert switch.buffer().balanced


def test_lossless_packets_may_all_recirculate() -> None:
    """Their room is the buffer's; others are dropped at the depth that simple_switch has."""
    pfc = PfcConfig((0,), 1_000_000, 500, 500)
    for config, lost in (
        (SwitchConfig(recirc_rate_bps=8), 2000 - 1024),
        (SwitchConfig(recirc_rate_bps=8, pfc=pfc), 0),
    ):
        with V1ModelSwitch(circling("recirculate"), config) as switch:
            for _ in range(2000):
                switch.inject(1, frame(2), 0)
            assert sum(switch.drops().values()) == lost
            assert switch.account().balanced


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_copy_and_circle_leave_no_byte_behind(name: str) -> None:
    """Clones, copies, resubmitted and recirculated packets: at any time the buffer is taken by what is there."""
    config = CONFIGS["pfc"]
    assert config.pfc is not None
    with Driven(name, config, 4) as driven:
        switch = driven.switch
        switch.buffer_config(BufferConfig(400_000, Fraction(1, 128), port_bytes=1000))
        for _ in range(FRAMES):
            driven.frame()
            look = switch.buffer()
            assert look.balanced
            assert look.shared_bytes + look.reserved_bytes <= look.bytes
        assert look.shared_most_bytes > 0
        # the last pause has long ended then
        for step in range(1, 20):
            switch.run(driven.now_ns + step * 100_000)
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes) == (0, 0)
        assert switch.account().balanced


@settings(max_examples=60)
@given(
    limits=st.tuples(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 2000)),
    size=st.sampled_from([None, 3000, 6000, 20_000]),
    alpha=st.sampled_from([None, Fraction(1, 8), Fraction(2)]),
    port_bytes=st.sampled_from([0, 1000]),
    steps=st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from([CLASS, LOSSY]), st.integers(16, 900), st.integers(0, 400)
        ),
        min_size=5,
        max_size=60,
    ),
    again=st.none() | st.integers(0, 60),
)
def test_whatever_waits_is_on_one_account_and_leaves_it(
    limits: tuple[int, int, int],
    size: int | None,
    alpha: Fraction | None,
    port_bytes: int,
    steps: list[tuple[int, int, int, int]],
    again: int | None,
) -> None:
    """Random traffic of three ports to one, with limits that change on the way: nothing is ever above a limit,
    nobody stays paused, and in the end nothing is taken.
    """
    xoff, xon, headroom = limits
    pfc = PfcConfig((CLASS,), max(xoff, xon), xon, headroom, quanta=50)
    buffer = None if size is None else BufferConfig(size, alpha, port_bytes=port_bytes)
    config = SwitchConfig(
        priority_queues=8, queue_depth_packets=0, port_rate_bps=8_000_000_000, pfc=pfc, buffer=buffer
    )
    now_ns = 0
    with V1ModelSwitch(program(), config) as switch:
        for number, (port, priority, length, gap_ns) in enumerate(steps):
            now_ns += gap_ns
            if number == again:
                switch.port_pfc(port, PfcConfig((CLASS, LOSSY), max(xoff, xon), xon, headroom + 500))
            switch.inject(port, frame(3, priority, length), now_ns)
            look = switch.buffer()
            assert look.balanced
            if again is None:
                stats = [switch.pfc_stats(p, CLASS) for p in range(3)]
                assert all(s.headroom_bytes <= headroom for s in stats)
                assert all(s.bytes - s.headroom_bytes <= max(xoff, xon) for s in stats)
        switch.run(now_ns + 1_000_000)
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes, look.own_bytes, look.held_bytes) == (0, 0, 0, 0)
        last = {o.port: int.from_bytes(o.data[24:28], "big") for o in switch.outputs() if o.port != 3}
        assert set(last.values()) <= {0}, "the last that each sender heard is: go on"
        assert switch.account().balanced
