# SPDX-License-Identifier: Apache-2.0
"""Ports whose packets wait with a higher priority than they came with: which class is counted, and paused."""

from __future__ import annotations

import pytest

from tailrace.codec.layers.pfc import pfc_frame
from tailrace.switch.core import BufferConfig, PausedQueue, PfcConfig, SwitchConfig, V1ModelSwitch
from tests.switch.core.test_pfc_frames import LIMITS, MAC, RATE_BPS
from tests.switch.core.test_traffic_manager import frame, program

FRAME_BYTES = 1000
HOST, LINK, OUT = 1, 2, 3
"""Ports: of a host, to the switch before, to the next one."""


def switch_of(buffer: BufferConfig | None = None) -> V1ModelSwitch:
    """Classes 0 to 2 between switches, 0 from the host."""
    pfc = PfcConfig((0, 1, 2), *LIMITS, rise=1)
    config = SwitchConfig(
        port_rate_bps=RATE_BPS, priority_queues=8, queue_depth_packets=0, pfc=pfc, buffer=buffer
    )
    switch = V1ModelSwitch(program(), config)
    switch.port_pfc(HOST, PfcConfig((0,), *LIMITS))
    return switch


def paused(switch: V1ModelSwitch) -> dict[int, set[int]]:
    """By port, the classes that pause frames named."""
    classes: dict[int, set[int]] = {}
    for out in switch.outputs():
        if out.data[12:14] == b"\x88\x08":
            classes.setdefault(out.port, set()).add(int.from_bytes(out.data[16:18], "big"))
    return classes


@pytest.mark.parametrize("priority", [1, 2, 3])
def test_the_class_that_the_sender_used_is_paused(priority: int) -> None:
    """One below the queue's; the queue of the last channel, to a host, has a priority that is no class."""
    with switch_of() as switch:
        for _ in range(5):
            switch.inject(LINK, frame(OUT, priority, FRAME_BYTES), 0)
        assert switch.pfc_stats(LINK, priority - 1).bytes == 4 * FRAME_BYTES
        assert switch.pfc_stats(LINK, priority).bytes == 0
        assert paused(switch) == {LINK: {1 << (priority - 1)}}
        switch.run(100_000)
        assert switch.pfc_stats(LINK, priority - 1).bytes == 0
        assert (switch.pfc_stats(LINK, priority - 1).xon_sent, switch.account().balanced) == (1, True)


def test_a_host_is_paused_in_its_own_class() -> None:
    """What it sends waits with the first priority, and higher ones from it are not lossless."""
    with switch_of() as switch:
        for priority in (0, 1):
            for _ in range(5):
                switch.inject(HOST, frame(OUT, priority, FRAME_BYTES), 0)
        assert paused(switch) == {HOST: {1}}
        assert switch.pfc_stats(HOST, 1).bytes == 0


def test_control_packets_are_of_no_class() -> None:
    """They have the highest priority, and the one below it is no class."""
    with switch_of() as switch:
        for _ in range(20):
            switch.inject(LINK, frame(OUT, 7, FRAME_BYTES), 0)
        assert paused(switch) == {}
        assert switch.pfc_stats(LINK, 6).bytes == 0


def test_a_pause_stops_the_queue_of_its_class_alone() -> None:
    """And says who waits for whom: the queue, and what of it came in where, with which class."""
    with switch_of() as switch:
        switch.inject(OUT, bytes(pfc_frame(MAC, {2: 0xFFFF})), 0)
        for priority in (1, 2):
            for _ in range(5):
                switch.inject(LINK, frame(OUT, priority, FRAME_BYTES), 1000)
        switch.inject(HOST, frame(OUT, 2, FRAME_BYTES), 1000)
        switch.run(50_000)
        xon = LIMITS[1]
        assert switch.paused_queues(50_000) == [PausedQueue(OUT, 2, LINK, 1, 5 * FRAME_BYTES, xon, 1)]
        assert switch.pfc_stats(LINK, 0).bytes == 0
        assert switch.paused_queues(10**9) == []  # the pause is over by then


def test_each_class_has_its_own_headroom() -> None:
    """What one class has filled takes nothing of another one's, in memory that all ports share."""
    with switch_of(BufferConfig(4 * (4 * LIMITS[2]) + LIMITS[0])) as switch:
        for priority in (1, 2, 3):
            for _ in range(6):
                switch.inject(LINK, frame(OUT, priority, FRAME_BYTES), 0)
        assert {i: switch.pfc_stats(LINK, i).headroom_bytes for i in range(3)} == {
            0: LIMITS[2], 1: LIMITS[2], 2: LIMITS[2],
        }  # fmt: skip
        assert switch.buffer().balanced
