# SPDX-License-Identifier: Apache-2.0
"""The ways of numbered packets through a virtual network that runs `spritz`, and hosts that send just such packets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tailrace.sim.network import Network, Wire, WireEvent
from tests.flowcut.frames import ROCE, UDP, make
from tests.flowcut.sources import OutFrame
from tests.frame_nic import FrameNic

FRAME_BYTES, TAG_BYTES = 80, 4
_TYPE_AT, _VLAN = 12, b"\x81\x00"
_NUMBER_AT = 14 + 20 + 8 + 12


@dataclass(frozen=True)
class Probe:
    """A packet from host to host, by names."""

    src: str
    dst: str
    ev: int
    tag: int = 0


@dataclass
class Nic(FrameNic):
    """Sends frames in their order, one each `gap_ns`."""

    gap_ns: int
    frames: list[bytes] = field(default_factory=list)
    ready_ns: int = 0

    @property
    def idle(self) -> bool:
        return not self.frames

    def next_time_ns(self, now_ns: int) -> int | None:
        return self.ready_ns if self.frames else None

    def next_frame(self, now_ns: int) -> OutFrame | None:
        if not self.frames or now_ns < self.ready_ns:
            return None
        self.ready_ns = now_ns + self.gap_ns
        return OutFrame(self.frames.pop(0))

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """What arrives is seen on the wire."""


@dataclass
class Way:
    """Of one packet: its switches, the host where it arrived, and the nodes at whose wires it came with a tag."""

    switches: list[str] = field(default_factory=list)
    host: str = ""
    tagged_to: list[str] = field(default_factory=list)


def send(network: Network, probes: list[Probe], gap_ns: int = 1) -> list[Way]:
    """Send them all, and let the network run dry; their ways, in the same order."""
    topology = network.topology
    nics = {host.name: Nic(gap_ns) for host in topology.hosts}
    for number, probe in enumerate(probes):
        key = (topology.host(probe.src).ip, topology.host(probe.dst).ip, probe.ev, ROCE, UDP)
        frame = make(key, FRAME_BYTES, number)
        if probe.tag:
            frame = frame[:_TYPE_AT] + _VLAN + probe.tag.to_bytes(2, "big") + frame[_TYPE_AT:]
        nics[probe.src].frames.append(frame)
    ways: defaultdict[int, Way] = defaultdict(Way)
    hosts = set(nics)

    def tap(wire: Wire, event: WireEvent, _now_ns: int, frame: bytes, _virtual_bytes: int) -> None:
        if event is not WireEvent.RECEIVED:
            return
        tagged = frame[_TYPE_AT : _TYPE_AT + 2] == _VLAN
        at = _NUMBER_AT + (TAG_BYTES if tagged else 0)
        way = ways[int.from_bytes(frame[at : at + 4], "big")]
        if wire.target.node in hosts:
            way.host = wire.target.node
        else:
            way.switches.append(wire.target.node)
        if tagged and wire.source.node not in hosts:
            way.tagged_to.append(wire.target.node)

    for name, nic in nics.items():
        network.attach(name, nic)
    network.tap(tap)
    assert network.run()
    return [ways[number] for number in range(len(probes))]
