# SPDX-License-Identifier: Apache-2.0
"""Copies of one frame take what a switch has for packets, and no more; nothing else waits for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import Replica, SentFrame, SwitchConfig, V1ModelSwitch
from tailrace.switch.core.lib import C, load
from tailrace.switch.trace import dry_run_packet
from tests.eventually import eventually
from tests.switch.bmv2_builder import Builder, assign, call, const, field

MIB = 1 << 20
PORTS = 511
REPLICAS = [Replica(port, instance) for port in range(PORTS) for instance in range(33)][:16_384]
STEPS = 1 << 16
"""Passes and copies of one call of the core."""
STEPS_UNDER_CONTENTION = 1024
"""The same where somebody waits for the switch."""


def multicasting(packet_bytes: int = 0) -> V1ModelSwitch:
    """Sends each packet to group 1, of 16,384 replicas."""
    b = Builder([("a", 8)])
    b.run([assign(field("standard_metadata", "mcast_grp"), const(1))])
    switch = V1ModelSwitch(load_program(b.text()), SwitchConfig(packet_bytes=packet_bytes))
    switch.mcast_set(1, REPLICAS)
    return switch


def taken(switch: V1ModelSwitch, until_ns: int = 0) -> list[SentFrame]:
    """All that leaves; the core stops for its caller before that takes much memory."""
    frames: list[SentFrame] = []
    while load().tr_run(switch.handle, 1_000 * until_ns) <= 1_000 * until_ns:
        frames += switch.outputs()
    return frames + switch.outputs()


@pytest.mark.parametrize("length", [64, 2_000, 9_000, C.TR_MAX_FRAME])
def test_copies_count_against_the_memory_of_packets(length: int) -> None:
    """Those without room are counted; later packets have it again, of whatever size."""
    with multicasting(packet_bytes=8 * MIB) as switch:
        for size in (length, C.TR_MAX_FRAME, 64, 2_000, 9_000):
            before = switch.drops().get("no_buffer", 0)
            switch.inject(0, bytes(size), 0)
            left = len(taken(switch))
            assert left + switch.drops().get("no_buffer", 0) - before == len(REPLICAS)
            assert 0 < left * size <= 4 * MIB
            assert switch.account().held_frames == 0


def test_without_a_limit_all_copies_are_made() -> None:
    with multicasting() as switch:
        switch.inject(0, bytes(64), 0)
        assert len(switch.outputs()) == len(REPLICAS)


def test_packets_that_wait_have_room_to_leave() -> None:
    """They are packed while they wait: queues may be full of them, and all leave whole."""
    b = Builder([("a", 8)])
    config = SwitchConfig(packet_bytes=MIB, queue_depth_packets=0, port_rate_bps=1_000_000)
    with V1ModelSwitch(load_program(b.text()), config) as switch:
        for _ in range(20_000):
            switch.inject(1, bytes(64), 0)
        lost = switch.drops()["no_buffer"]
        left = 0
        for ms in range(0, 20_000, 100):
            switch.run(ms * 1_000_000)
            left += len(switch.outputs())
        assert left == 20_000 - lost
        assert switch.drops() == {"no_buffer": lost}


def test_packets_that_leave_at_once_are_taken_out_in_between() -> None:
    """The core stops for its caller before they take all there is."""
    b = Builder([("a", 8)])
    with V1ModelSwitch(
        load_program(b.text()), SwitchConfig(packet_bytes=MIB, queue_depth_packets=0)
    ) as switch:
        switch.port_config(0, rate_bps=1)
        for _ in range(20_000):
            switch.inject(1, bytes(64), 0)
        queued = switch.queue_depth(0)[0]
        left = len(taken(switch))
        switch.port_config(0, rate_bps=0)
        left += len(taken(switch, 10**12))
        assert left == queued + 1 == 20_000 - switch.drops()["no_buffer"]


def circling() -> SwitchProgram:
    """Sends each packet to group 1 and each copy back to ingress, for ever."""
    b = Builder([("a", 8)])
    b.extra["field_lists"] = [{"id": 1, "name": "none", "elements": []}]
    b.run([assign(field("standard_metadata", "mcast_grp"), const(1))])
    again = b.action("again", [call("recirculate", const(1))])
    b.table("e", [], "exact", [again], default=(again, []), const_default=True, egress=True)
    return load_program(b.text())


def test_copies_that_circle_let_the_caller_go_on() -> None:
    """Copies count as passes through the switch: a call of the core ends after so many of both."""
    with V1ModelSwitch(circling()) as switch:
        switch.mcast_set(1, REPLICAS)
        switch.inject(0, bytes(64), 0)
        made = switch.account().made_frames
        assert len(REPLICAS) < made < STEPS + 2 * len(REPLICAS)


def test_a_control_call_need_not_wait_for_all_of_them() -> None:
    """Passes of long frames take some 10 us each: where somebody waits a call of the core ends much sooner."""
    with V1ModelSwitch(circling()) as switch:
        switch.mcast_set(1, REPLICAS[:1])
        switch.inject(0, bytes(64), 0)
        with switch.between_packets():
            lib, other = load(), threading.Thread(target=switch.account)

            def copies() -> int:
                before = switch.account().made_frames
                assert lib.tr_run(switch.handle, 0) == 0
                return switch.account().made_frames - before

            alone = copies()
            other.start()
            assert eventually(lambda: lib.tr_switch_contended(switch.handle))
            beside = copies()
        other.join()
        assert alone == STEPS // 3 + 1  # ingress, the copy and its egress
        assert 0 < beside <= STEPS_UNDER_CONTENTION // 3 + 1


SCRIPT = """
import json, resource
from tests.switch.core.test_copies import *
with multicasting() as switch:
    dry_run_packet(switch, 0, bytes(64))  # compiles the tracing build
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trace = dry_run_packet(switch, 0, bytes(C.TR_MAX_FRAME))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    made = sum(type(step).__name__ == "CopyEvent" for step in trace.steps)
    sent = sum(type(step).__name__ == "SentEvent" for copy in trace.steps if hasattr(copy, "steps") for step in copy.steps)
    print(json.dumps([grown, trace.cut, made, sent, len(switch.outputs())]))
"""


def test_a_dry_run_stops_at_its_own_limit() -> None:
    """Its result so far is shown, and that it is cut; of 1 GiB of copies it makes few."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    grown_kib, cut, made, sent, left = json.loads(run.stdout)
    assert grown_kib < 128 << 10
    assert cut and left == 0
    assert made * C.TR_MAX_FRAME <= 8 * MIB
    assert 0 < sent <= made


def test_a_dry_run_of_small_copies_stops_as_well() -> None:
    with multicasting() as switch:
        trace = dry_run_packet(switch, 0, bytes(64))
        assert trace.cut
        assert len(trace.steps) < 4_200
