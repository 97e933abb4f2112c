# SPDX-License-Identifier: Apache-2.0
"""Conservation: whatever a program does, every frame and every payload byte is somewhere; and a run may be cut
anywhere without changing what comes out.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from checks.conformance.golden import Golden, read_golden
from checks.conformance.native_switch import NativeSwitch
from checks.conformance.packets import Packet
from checks.conformance.program import load_programs
from tailrace.switch.core import FrameAccount, PfcConfig, SentFrame, SwitchConfig

TESTS = Path(__file__).resolve().parents[2]
BUILD = TESTS / "programs" / "build"
# Those that copy, cut, drop and send packets round again.
PROGRAMS = ("cloning", "multicast", "truncate_log_random", "resubmit_recirculate", "priorities")
FRAMES = 300
PAUSE = bytes.fromhex("0180c2000001 020000000000 8808 0101 00ff") + bytes.fromhex("0400") * 8 + bytes(26)
CONFIGS = {
    "fast": SwitchConfig(priority_queues=8),
    "queues": SwitchConfig(
        priority_queues=8,
        queue_depth_packets=5,
        port_rate_bps=3_000_000_000,
        port_delay_ns=700,
        recirc_rate_bps=1_000_000_000,
    ),
    "pfc": SwitchConfig(
        priority_queues=8,
        queue_depth_packets=0,
        port_rate_bps=7_000_000_000,
        pfc=PfcConfig(range(8), xoff_bytes=3000, xon_bytes=1500, headroom_bytes=2500, quanta=40),
    ),
}


def golden_of(name: str) -> Golden:
    return read_golden(TESTS / "golden" / f"{name}.json.xz")


class Driven:
    """A configured switch, and frames for it with random lengths of virtual payload at random times."""

    def __init__(self, name: str, config: SwitchConfig, seed: int) -> None:
        golden = golden_of(name)
        (program,) = load_programs(BUILD, name)
        native = NativeSwitch(program, config)
        self.switch = native.switch
        native.install(golden.updates)
        self.random = random.Random(f"{name} {seed}")
        self.packets: list[Packet] = golden.packets
        self.frames, self.virtual_bytes = 0, 0
        self.now_ns = 0

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.switch.close()

    def frame(self, cuts: tuple[float, ...] = ()) -> None:
        """One more frame comes in, some time after the last; every twentieth is a pause.

        The time from the last frame to this one is run in pieces, which end at these shares of it.
        """
        packet = self.random.choice(self.packets)
        data = PAUSE if self.random.random() < 0.05 else packet.data
        virtual_bytes = self.random.choice((0, 0, 1, 1000, 9000))
        gap_ns = self.random.choice((0, 0, 3, 500, 4000))
        for share in cuts:
            self.switch.run(self.now_ns + int(gap_ns * share))
        self.now_ns += gap_ns
        self.switch.inject(packet.port, data, self.now_ns, virtual_bytes=virtual_bytes)
        self.frames += 1
        self.virtual_bytes += virtual_bytes


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_frame_is_somewhere(name: str, config: str) -> None:
    """What came in or was made has left, was dropped or is held; what the caller saw agrees."""
    left = left_virtual = 0
    with Driven(name, CONFIGS[config], 1) as driven:
        for _ in range(FRAMES):
            driven.frame()
            if driven.random.random() < 0.3:
                outputs = driven.switch.outputs()
                left += len(outputs)
                left_virtual += sum(output.virtual_bytes for output in outputs)
            account = driven.switch.account()
            assert account.balanced, account
            assert (account.tx_frames, account.tx_virt) == (left, left_virtual)
            assert (account.rx_frames, account.rx_virt) == (driven.frames, driven.virtual_bytes)
            assert account.dropped_frames == sum(driven.switch.drops().values())


@pytest.mark.parametrize("config", CONFIGS)
def test_what_is_in_flight_is_lost_when_the_program_is_replaced(config: str) -> None:
    """Nothing is held afterwards, and the loss has a name."""
    with Driven("multicast", CONFIGS[config], 2) as driven:
        for _ in range(FRAMES):
            driven.frame()
        held = driven.switch.account().held_frames
        assert held > 0
        driven.switch.load(driven.switch.program)
        account = driven.switch.account()
        assert account.balanced
        assert (account.held_frames, account.held_virt) == (0, 0)
        assert driven.switch.drops()["pipeline_replaced"] >= held


def test_an_account_that_does_not_add_up_is_not_balanced() -> None:
    """The check sees a frame too few, and a byte too few."""
    whole = FrameAccount(3, 1, 2, 1, 1, 30, 10, 20, 10, 5, 5, 0)
    assert whole.balanced
    assert not FrameAccount(3, 1, 2, 1, 0, 30, 10, 20, 10, 5, 5, 0).balanced
    assert not FrameAccount(3, 1, 2, 1, 1, 30, 10, 20, 10, 4, 5, 0).balanced


def outcome(name: str, config: SwitchConfig, cuts: int) -> list[SentFrame]:
    """All outputs of some traffic, run in `cuts` pieces more between two frames, and in many after the last."""
    chooser = random.Random(cuts)
    with Driven(name, config, 3) as driven:
        for _ in range(FRAMES):
            driven.frame(tuple(sorted(chooser.random() for _ in range(cuts))))
        for step in range(1 + 50 * cuts):
            driven.switch.run(driven.now_ns + 2_500 * step)
        driven.switch.run(driven.now_ns + 400_000)
        return driven.switch.outputs()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_may_be_cut_anywhere(name: str, config: str) -> None:
    """Run to a later time at once or in pieces: the same frames at the same times in the same order."""
    whole = outcome(name, CONFIGS[config], 0)
    assert len(whole) > FRAMES // 4
    assert whole == outcome(name, CONFIGS[config], 3)
