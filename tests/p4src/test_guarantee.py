# SPDX-License-Identifier: Apache-2.0
"""The rule that Flowcut's guarantee rests on (flowcut/table.p4), hunted at one switch: while a byte of a flow is in
flight, the flow's next packet leaves by the same port or not at all; and every byte is counted exactly once.

Seven flows in one bucket of four ways; slots, candidates and ACKs change and come in any order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from scapy.packet import Packet

from tests.p4src.frames import ack_of, newest_stamp, roce
from tests.p4src.rig import HOST_PORT, RTT_OFF, UPLINKS, Rig

FLOWS, WAYS, PHASES = 7, 4, 8
SIZES = (0, 1, 500)
FRAMES: dict[tuple[int, int], Packet] = {
    (flow, size): roce(flow, payload=bytes(size)) for flow in range(FLOWS) for size in SIZES
}
DATA = {key: bytes(frame) for key, frame in FRAMES.items()}

Step = tuple[str, int, int]


def walk(seed: int) -> Iterator[Step]:
    """Random steps; the table fills and empties several times, as data or ACKs have the upper hand."""
    rng = random.Random(seed)
    for phase in range(PHASES):
        likely = ("data", "ack")[phase % 2]
        for _ in range(rng.randint(5, 60)):
            kind = rng.choice([likely, likely, likely, "data", "ack", "ack", "slot", "load"])
            if kind == "data":
                yield kind, rng.randrange(FLOWS), rng.choice(SIZES)
            elif kind == "ack":
                yield kind, rng.randrange(1000), 0
            elif kind == "slot":
                yield kind, rng.randrange(len(UPLINKS)), rng.choice(UPLINKS)
            else:
                yield kind, rng.choice(UPLINKS), rng.randrange(5000)


@dataclass
class Bed:
    """The switch and what a perfect observer knows of the flows."""

    rig: Rig
    now: int = 1
    in_flight: dict[int, list[tuple[int, int, tuple[int, int]]]] = field(
        default_factory=dict
    )  # flow: (port, size, stamp)

    def data(self, flow: int, size: int) -> None:
        output = self.rig.forward(HOST_PORT, DATA[flow, size], self.now)
        before = self.in_flight.setdefault(flow, [])
        assert {port for port, _, _ in before} <= {output.port}, f"flow {flow} changed its path in flight"
        before.append((output.port, size, newest_stamp(output.data)))

    def ack(self, choice: int) -> None:
        """Of any packet in flight, so ACKs overtake each other, also within a flow."""
        waiting = [(flow, packet) for flow, packets in self.in_flight.items() for packet in packets]
        if waiting:
            flow, packet = waiting[choice % len(waiting)]
            self.in_flight[flow].remove(packet)
            port, size, newest = packet
            self.rig.send(port, ack_of(FRAMES[flow, size], 1, [newest]), self.now)

    def play(self, step: Step) -> None:
        kind, first, second = step
        self.now += 1
        if kind == "data":
            self.data(first, second)
        elif kind == "ack":
            self.ack(first)
        elif kind == "slot":
            self.rig.move_slot(first, second)
        else:
            self.rig.set_load(first, second)

    def check(self) -> None:
        """What the table counts is what is in flight, and each flow is in one place at most."""
        tracked = {}
        for way in range(WAYS):
            if nbytes := self.rig.register("flow_in_flight_bytes", way):
                flow = self.rig.register("flow_key", way) >> 24 & 0xFFFF
                assert flow not in tracked
                tracked[flow] = nbytes
        really = {
            flow: sum(len(DATA[flow, size]) for _, size, _ in packets)
            for flow, packets in self.in_flight.items()
        }
        assert all(really[flow] == nbytes for flow, nbytes in tracked.items())
        untracked = sum(nbytes for flow, nbytes in really.items() if flow not in tracked)
        assert self.rig.register("untracked_bytes") == untracked


@pytest.mark.parametrize("seed", range(12))
def test_a_flow_in_flight_keeps_its_port(seed):
    """Also while drains come and go; in the end every entry is gone and every XOFF has had its XON."""
    with Rig("flowcut") as rig:
        rig.flowcut(first_path=("ECMP", "LEAST_LOADED")[seed % 2])
        rig.drain(rtt_threshold=(RTT_OFF, 256, 300)[seed % 3])
        bed = Bed(rig)
        for step in walk(seed):
            bed.play(step)
            bed.check()
        while any(bed.in_flight.values()):
            bed.ack(0)
            bed.check()
        assert rig.register("untracked_bytes") == 0
        assert rig.count("flowcut_overflow") > 0
        assert rig.count("flowcut_created") == rig.count("flowcut_deleted") > WAYS
        assert rig.count("xoff_sent") == rig.count("xon_sent")


@pytest.mark.parametrize("seed", range(6))
def test_early_resume_overtakes_no_more_than_its_bound(seed):
    """§IV-C: a path may change while no more than resume_bytes are in flight."""
    bound, overtaken = 1200, []
    with Rig("flowcut") as rig:
        rig.flowcut()
        rig.drain(rtt_threshold=256, resume_bytes=bound)
        bed = Bed(rig)
        for step in walk(seed):
            kind, flow, size = step
            if kind != "data":
                bed.play(step)
                continue
            bed.now += 1
            output = rig.forward(HOST_PORT, DATA[flow, size], bed.now)
            before = bed.in_flight.setdefault(flow, [])
            if before and before[-1][0] != output.port:
                overtaken.append(sum(len(DATA[flow, earlier]) for _, earlier, _ in before))
            before.append((output.port, size, newest_stamp(output.data)))
            bed.check()
    assert 0 < max(overtaken) <= bound
