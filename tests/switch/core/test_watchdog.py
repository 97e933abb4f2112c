# SPDX-License-Identifier: Apache-2.0
"""The watchdog of pauses: when a storm begins and ends, to the nanosecond, and what becomes of packets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.layers.pfc import pfc_frame
from tailrace.spec.watchdog import NO_WATCHDOG, Watchdog
from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.core import BufferConfig, PfcConfig, StateError, SwitchConfig, V1ModelSwitch
from tests.switch.core.test_account import CONFIGS, FRAMES, PROGRAMS, Driven
from tests.switch.core.test_traffic_manager import frame, program

MAC = "02:00:00:00:00:01"
CLASS, OTHER = 3, 4
FRAME_BYTES = 1000
# A byte takes a nanosecond, a pause quantum 64 ns: 65,535 of them 4,194,240 ns.
RATE_BPS = 8_000_000_000
LONGEST_NS = 0xFFFF * 64
DETECT_NS, RESTORE_NS = 50_000, 80_000
DOG = Watchdog(DETECT_NS, RESTORE_NS)
STOP, GO = (bytes(pfc_frame(MAC, {CLASS: quanta})) for quanta in (0xFFFF, 0))


def switch_of(
    watchdog: Watchdog = DOG, rate_bps: int = RATE_BPS, xoff: int = 100_000, runs: SwitchProgram | None = None
) -> V1ModelSwitch:
    """A switch whose class 3 and 4 are lossless."""
    config = SwitchConfig(
        port_rate_bps=rate_bps,
        priority_queues=8,
        queue_depth_packets=0,
        pfc=PfcConfig((CLASS, OTHER), xoff, xoff // 2, 50_000, watchdog=watchdog),
        buffer=BufferConfig(4_000_000, port_bytes=10_000),
    )
    return V1ModelSwitch(runs or program(), config)


def data(priority: int = CLASS) -> bytes:
    return frame(2, priority, FRAME_BYTES)


def dropped(switch: V1ModelSwitch) -> int:
    return switch.drops().get("pfc_storm", 0)


def sent(switch: V1ModelSwitch) -> list[int]:
    """When frames had left port 2."""
    return [out.time_ns for out in switch.outputs() if out.port == 2]


def check(switch: V1ModelSwitch) -> None:
    """All accounts are right."""
    assert switch.account().balanced
    assert switch.buffer().balanced
    counted = sum(
        switch.pfc_stats(port, priority).storm_dropped for port in range(5) for priority in range(8)
    )
    assert counted == dropped(switch)


def test_a_storm_is_detected_at_its_time_and_what_waits_and_comes_is_dropped() -> None:
    """And the room that it had is free again, and its sender may go on."""
    with switch_of(xoff=3000) as switch:
        switch.inject(2, STOP, 1000)
        for time_ns in range(1000, 6000, 1000):
            switch.inject(1, data(), time_ns)
        assert switch.pfc_stats(1, CLASS).xoff_sent == 1
        switch.run(1000 + DETECT_NS - 1)
        assert (switch.pfc_stats(2, CLASS).storms, dropped(switch)) == (0, 0)
        assert switch.pfc_stats(1, CLASS).bytes == 5000
        switch.run(1000 + DETECT_NS)
        stats = switch.pfc_stats(2, CLASS)
        assert (stats.storms, stats.storming, stats.storm_dropped, dropped(switch)) == (1, 1, 5, 5)
        assert switch.port_stats(2).dropped == 5
        assert (switch.pfc_stats(1, CLASS).bytes, switch.pfc_stats(1, CLASS).xon_sent) == (0, 1)
        switch.inject(1, data(), 70_000)
        assert dropped(switch) == 6
        assert switch.pfc_stats(1, CLASS).xoff_sent == 1, "what is dropped pauses nobody"
        assert switch.pfc_stats(2, CLASS, 70_000).storm_ns == 70_000 - 1000 - DETECT_NS
        assert switch.pfc_stats(2, CLASS).paused_ns == DETECT_NS
        assert sent(switch) == []
        check(switch)


def test_only_time_with_packets_that_wait_counts() -> None:
    """Who pauses a port to which nobody sends harms nobody."""
    with switch_of() as switch:
        switch.inject(2, STOP, 0)
        switch.run(10 * DETECT_NS)
        switch.inject(1, data(), 10 * DETECT_NS)
        switch.run(11 * DETECT_NS - 1)
        assert switch.pfc_stats(2, CLASS).storms == 0
        switch.run(11 * DETECT_NS)
        assert switch.pfc_stats(2, CLASS).storms == 1
        check(switch)


@pytest.mark.parametrize("resumes", [False, True])
def test_a_storm_is_over_when_no_pause_was_asked_for_in_so_long(resumes: bool) -> None:
    """Counted from the end of the last pause, whether it ran out or was taken back."""
    with switch_of() as switch:
        switch.inject(1, data(OTHER), 0)
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.inject(2, STOP, 100_000)
        end_ns = 100_000 + LONGEST_NS
        if resumes:
            end_ns = 200_000
            switch.inject(2, GO, end_ns)
            switch.inject(2, GO, end_ns + RESTORE_NS // 2)
        over_ns = end_ns + RESTORE_NS
        switch.inject(1, data(), over_ns - 1)
        assert dropped(switch) == 2
        switch.inject(1, data(), over_ns)
        stats = switch.pfc_stats(2, CLASS)
        assert (stats.storms, stats.storming, stats.storm_ns) == (1, 0, over_ns - DETECT_NS)
        assert sent(switch) == [1000, over_ns + 1000]
        check(switch)


def test_other_priorities_and_ports_go_on() -> None:
    """A storm is that of one queue."""
    with switch_of() as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(DETECT_NS)
        for priority in (CLASS, OTHER, 0):
            switch.inject(1, data(priority), DETECT_NS)
        switch.inject(1, frame(3, CLASS, FRAME_BYTES), DETECT_NS)
        switch.run(DETECT_NS + 10_000)
        assert sent(switch) == [DETECT_NS + 1000, DETECT_NS + 2000]
        assert [switch.pfc_stats(2, p).storm_dropped for p in (CLASS, OTHER, 0)] == [2, 0, 0]
        check(switch)


def test_each_priority_has_its_own_storm() -> None:
    """One frame may begin several."""
    with switch_of() as switch:
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0xFFFF, OTHER: 0xFFFF})), 0)
        switch.inject(1, data(CLASS), 0)
        switch.inject(1, data(OTHER), 5000)
        switch.run(DETECT_NS)
        assert [switch.pfc_stats(2, p).storming for p in (CLASS, OTHER)] == [1, 0]
        switch.run(DETECT_NS + 5000)
        assert [switch.pfc_stats(2, p).storming for p in (CLASS, OTHER)] == [1, 1]
        switch.inject(2, bytes(pfc_frame(MAC, {CLASS: 0})), 100_000)
        switch.run(100_000 + RESTORE_NS)
        assert [switch.pfc_stats(2, p).storming for p in (CLASS, OTHER)] == [0, 1]
        check(switch)


def test_a_storm_may_send_all_the_same() -> None:
    """Action ignore: pauses are not obeyed until it is over, then they are again."""
    with switch_of(Watchdog(DETECT_NS, RESTORE_NS, action="ignore")) as switch:
        switch.inject(2, STOP, 0)
        for _ in range(3):
            switch.inject(1, data(), 0)
        switch.inject(2, STOP, DETECT_NS + 1500)
        switch.run(200_000)
        assert sent(switch) == [DETECT_NS + 1000 * n for n in (1, 2, 3)]
        assert (dropped(switch), switch.pfc_stats(2, CLASS).storming) == (0, 1)
        switch.inject(2, GO, 200_000)
        switch.run(200_000 + RESTORE_NS)
        switch.inject(2, STOP, 300_000)
        switch.inject(1, data(), 300_000)
        switch.run(300_000 + DETECT_NS - 1)
        assert (sent(switch), switch.pfc_stats(2, CLASS).storms) == ([], 1)
        check(switch)


def test_a_frame_that_is_under_way_is_not_cut() -> None:
    """What waits for the port behind it is dropped at once."""
    with switch_of() as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.inject(1, data(OTHER), DETECT_NS - 500)
        switch.run(DETECT_NS)
        assert dropped(switch) == 1
        switch.run(2 * DETECT_NS)
        assert sent(switch) == [DETECT_NS + 500]


# ---- toggling ----


def held_share(switch: V1ModelSwitch, stop_ns: int, go_ns: int, end_ns: int) -> float:
    """Toggles pauses for so long while packets come all the time; the share of it that the port was held."""
    for time_ns in range(0, end_ns, 1000):
        at = time_ns % (stop_ns + go_ns)
        if at == 0:
            switch.inject(2, STOP, time_ns)
        elif at == stop_ns:
            switch.inject(2, GO, time_ns)
        switch.inject(1, data(), time_ns)
    return switch.pfc_stats(2, CLASS, end_ns).paused_ns / end_ns


@settings(max_examples=40)
@given(stop=st.integers(1, 80), go=st.integers(1, 400), share=st.sampled_from([0.02, 0.05, 0.25]))
def test_no_pattern_holds_a_queue_for_more_than_its_share(stop: int, go: int, share: float) -> None:
    """And what it may hold it, it may: who stays below it never meets the watchdog."""
    watchdog = Watchdog(DETECT_NS, RESTORE_NS, share)
    end_ns = 3_000_000
    with switch_of(watchdog, xoff=1_000_000) as switch:
        held = held_share(switch, stop * 1000, go * 1000, end_ns)
        assert held <= share + DETECT_NS / end_ns + 0.001
        if stop * 1000 < DETECT_NS * (1 - share) and stop / (stop + go) < share:
            assert switch.pfc_stats(2, CLASS).storms == 0
        if stop / (stop + go) > share + 0.1:
            assert switch.pfc_stats(2, CLASS).storms > 0
        check(switch)


def test_a_share_of_all_asks_for_a_time_without_a_break() -> None:
    """Switches are trusted: a break of any length clears the account."""
    with switch_of(xoff=1_000_000) as switch:
        assert held_share(switch, DETECT_NS - 1000, 1000, 2_000_000) > 0.9
        assert switch.pfc_stats(2, CLASS).storms == 0


def test_pauses_that_follow_each_other_are_one() -> None:
    """Repeated at any rate of frames, or only just before the last one ends."""
    for every_ns in (64, 6399):
        with switch_of() as switch:
            short = bytes(pfc_frame(MAC, {CLASS: 100}))
            switch.inject(1, data(OTHER), 0)
            for time_ns in range(0, DETECT_NS + 1, every_ns):
                switch.inject(2, short, time_ns)
                if time_ns == 0:
                    switch.inject(1, data(), 0)
            switch.run(DETECT_NS)
            assert switch.pfc_stats(2, CLASS).storms == 1


# ---- ports, links, settings ----


def test_a_port_without_rate_has_a_watchdog_too() -> None:
    """One frame of 60 bytes held it for ever."""
    with switch_of(rate_bps=0) as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 10)
        switch.run(DETECT_NS + 10)
        assert dropped(switch) == 1
        end_ns = 0xFFFF * 512 // 10 + RESTORE_NS
        switch.inject(1, data(), end_ns)
        assert sent(switch) == [end_ns]
        check(switch)


def test_a_storm_ends_with_its_link() -> None:
    """Who asked for pauses is gone; but the account stays, so that nobody wins by a link that flaps."""
    with switch_of(Watchdog(DETECT_NS, RESTORE_NS, 0.05)) as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(DETECT_NS)
        switch.port_set(2, up=False)
        switch.run(DETECT_NS + 100)
        assert switch.pfc_stats(2, CLASS).storming == 0
        switch.port_set(2, up=True)
        switch.inject(1, data(), 60_000)
        assert sent(switch) == [61_000]
        switch.inject(2, STOP, 70_000)
        switch.inject(1, data(), 70_000)
        switch.run(75_000)
        assert switch.pfc_stats(2, CLASS).storms == 2
        check(switch)


def test_a_storm_ends_with_pfc_and_with_the_watchdog() -> None:
    """Without PFC nothing is paused; without a watchdog the pause that lasts is obeyed again."""
    for left, goes in (
        (PfcConfig((), 0, 0, 0), True),
        (PfcConfig((CLASS,), 9000, 0, 0, watchdog=NO_WATCHDOG), False),
    ):
        with switch_of() as switch:
            switch.inject(2, STOP, 0)
            switch.inject(1, data(), 0)
            switch.run(DETECT_NS)
            switch.port_pfc(2, left)
            assert switch.pfc_stats(2, CLASS).storming == 0
            switch.inject(1, data(), 60_000)
            switch.run(70_000)
            assert sent(switch) == ([61_000] if goes else [])
            switch.run(LONGEST_NS + 10_000)
            assert sent(switch) == ([] if goes else [LONGEST_NS + 1000])
            assert dropped(switch) == 1
            check(switch)


def test_settings_may_change_in_a_storm() -> None:
    """From drop to ignore and back, and a restoration that is over at once."""
    with switch_of() as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(DETECT_NS)

        def put(watchdog: Watchdog) -> None:
            switch.port_pfc(2, PfcConfig((CLASS, OTHER), 9000, 0, 9000, watchdog=watchdog))

        put(Watchdog(DETECT_NS, RESTORE_NS, action="ignore"))
        switch.inject(1, data(), 60_000)
        switch.run(62_000)
        assert (sent(switch), dropped(switch)) == ([61_000], 1)
        put(DOG)
        switch.inject(1, data(), 70_000)
        assert dropped(switch) == 2
        switch.inject(2, GO, 80_000)
        put(Watchdog(DETECT_NS, 0))
        switch.run(80_000)
        switch.inject(1, data(), 80_001)
        switch.run(90_000)
        assert sent(switch) == [81_001]
        check(switch)


@pytest.mark.parametrize(
    ("before", "detect_ns", "storms"), [(DOG, 10_000, 1), (DOG, 500_000, 0), (NO_WATCHDOG, DETECT_NS, 1)]
)
def test_a_new_watchdog_finds_what_is_held_already(before: Watchdog, detect_ns: int, storms: int) -> None:
    """One with a shorter detection or the first one; a longer detection lets it be."""
    with switch_of(before) as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(30_000)
        switch.port_pfc(2, PfcConfig((CLASS,), 9000, 0, 0, watchdog=Watchdog(detect_ns, RESTORE_NS)))
        switch.run(30_000 + DETECT_NS)
        assert switch.pfc_stats(2, CLASS).storms == storms


def test_a_storm_outlives_the_program() -> None:
    """The neighbour's pauses have nothing to do with it; it is over when they are."""
    with switch_of() as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(DETECT_NS)
        switch.load(switch.program)
        switch.inject(1, data(), 60_000)
        assert dropped(switch) == 2
        switch.inject(2, GO, 60_000)
        switch.run(60_000 + RESTORE_NS)
        assert switch.pfc_stats(2, CLASS).storming == 0
        check(switch)


def test_watchdogs_that_make_no_sense() -> None:
    """Are refused in one line."""
    for watchdog in (Watchdog(share=0), Watchdog(share=1.1), Watchdog(-1), Watchdog(1, -1)):
        with pytest.raises(StateError, match="PFC watchdog"):
            switch_of(watchdog)
    with switch_of(Watchdog(1 << 62, 1 << 62, 1e-6)) as switch:
        switch.inject(2, STOP, 0)
        switch.inject(1, data(), 0)
        switch.run(LONGEST_NS + 1000)
        assert sent(switch) == [LONGEST_NS + 1000]


# ---- whatever happens ----

STEP = st.one_of(
    st.tuples(st.just("data"), st.sampled_from([CLASS, OTHER, 0]), st.integers(1, 3)),
    st.tuples(st.just("pause"), st.sampled_from([CLASS, OTHER]), st.sampled_from([0, 1, 50, 0xFFFF])),
    st.tuples(st.just("link"), st.sampled_from([0, 1]), st.just(2)),
    st.tuples(st.just("set"), st.sampled_from([0, 1, 20_000]), st.sampled_from([0, 1, 30_000])),
    st.tuples(st.just("action"), st.sampled_from([0, 1]), st.just(0)),
    st.tuples(st.just("load"), st.just(0), st.just(0)),
)


@settings(max_examples=150)
@given(
    steps=st.lists(st.tuples(st.sampled_from([0, 700, 9000, 60_000]), STEP), min_size=5, max_size=60),
    share=st.sampled_from([0.05, 0.5, 1.0]),
    rate_bps=st.sampled_from([0, RATE_BPS]),
)
def test_whatever_happens_accounts_are_right(
    steps: list[tuple[int, tuple[str, int, int]]], share: float, rate_bps: int
) -> None:
    """Pauses, data, links and settings in any order: all frames are somewhere, and in the end nothing waits."""
    now_ns = 0
    with switch_of(Watchdog(DETECT_NS, RESTORE_NS, share), rate_bps, xoff=3000) as switch:
        for gap_ns, (kind, a, b) in steps:
            now_ns += gap_ns
            if kind == "data":
                for port in range(b):
                    switch.inject(port, data(a), now_ns)
            elif kind == "pause":
                switch.inject(2, bytes(pfc_frame(MAC, {a: b})), now_ns)
            elif kind == "link":
                switch.port_set(2, up=bool(a))
            elif kind == "load":
                switch.load(switch.program)
            else:
                dog = (
                    Watchdog(a, b, share)
                    if kind == "set"
                    else Watchdog(DETECT_NS, RESTORE_NS, share, "ignore" if a else "drop")
                )
                switch.port_pfc(2, PfcConfig((CLASS, OTHER), 3000, 0, 3000, watchdog=dog))
            switch.run(now_ns)
            check(switch)
        switch.port_set(2, up=True)
        switch.run(now_ns + 2 * LONGEST_NS + RESTORE_NS)
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes, look.own_bytes, look.held_bytes) == (0, 0, 0, 0)
        assert switch.pfc_stats(2, CLASS).storming == switch.pfc_stats(2, OTHER).storming == 0
        check(switch)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_copy_and_circle_leave_no_byte_behind(name: str) -> None:
    """Clones, copies and recirculated packets in storms."""
    config = CONFIGS["pfc"]
    assert config.pfc is not None
    with Driven(name, config, 7) as driven:
        switch = driven.switch
        thresholds = (config.pfc.xoff_bytes, config.pfc.xon_bytes, config.pfc.headroom_bytes)
        dog = Watchdog(2000, 5000, 0.02)
        switch.port_pfc(512, PfcConfig(range(8), *thresholds, config.pfc.quanta, watchdog=dog))
        switch.buffer_config(BufferConfig(400_000, port_bytes=1000))
        for _ in range(FRAMES):
            driven.frame()
            assert switch.buffer().balanced
            assert switch.account().balanced
        for step in range(1, 20):
            switch.run(driven.now_ns + step * 100_000)
        look = switch.buffer()
        assert (look.shared_bytes, look.headroom_bytes) == (0, 0)
        assert switch.account().balanced
        storms = sum(switch.pfc_stats(port, p).storms for port in range(8) for p in range(8))
        assert (storms > 0) == (dropped(switch) > 0)
