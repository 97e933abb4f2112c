# SPDX-License-Identifier: Apache-2.0
"""Small networks of the L3 test program, and a NIC that sends what a list says."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from tailrace.sim.network import SWITCH_CONFIG, Network
from tailrace.sim.network.ranks import RankTransport
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, SwitchConfig
from tailrace.topology import Topology, next_hops, parse_topology
from tests.frame_nic import FrameNic

BUILD = Path(__file__).parents[2] / "programs" / "build"
OVERHEAD_BYTES = 34
"""Ethernet and IPv4 headers."""


_hops = functools.cache(next_hops)


@functools.cache
def program() -> SwitchProgram:
    return load_program((BUILD / "basic_l3.json").read_bytes())


def topology(words: str = "leaf-spine:leaves=2,spines=2,hosts=2,rate=8Gbps,delay=1us") -> Topology:
    return parse_topology(words)


def network(
    topo: Topology,
    seed: int = 0,
    *,
    config: SwitchConfig = SWITCH_CONFIG,
    stepwise: bool = False,
    transport: RankTransport | None = None,
) -> Network:
    """A network whose switches route by the first shortest path."""
    net = Network(topo, config=config, seed=seed, stepwise=stepwise, transport=transport)
    for item in net.switches:
        net.switch(item.name).load(program())
        install(net, item.name)
    return net


def install(net: Network, name: str) -> None:
    """Writes a switch's routes, by the first shortest path."""
    topo, switch = net.topology, net.switch(name)
    hops = _hops(topo)[name]
    route = switch.model.table("L3Ingress.route")
    forward = next(i for i in route.actions if switch.model.actions[i].name.endswith("forward"))
    for host in topo.hosts:
        port = host.port if host.switch == name else hops[host.switch][0]
        address = IPv4Address(host.ip).packed
        mac = int(host.mac.replace(":", ""), 16)
        switch.table_insert(
            route.index, address, b"\xff" * 4, prefix_bits=32, target=ActionCall(forward, (mac, port))
        )


def checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(topo: Topology, source: str, target: str, payload: bytes) -> bytes:
    """An Ethernet and IPv4 frame."""
    a, b = topo.host(source), topo.host(target)
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(payload),
        0,
        0,
        64,
        17,
        0,
        IPv4Address(a.ip).packed,
        IPv4Address(b.ip).packed,
    )
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    macs = bytes.fromhex("0200000000fe") + bytes.fromhex(a.mac.replace(":", ""))
    return macs + b"\x08\x00" + head + payload


@dataclass(frozen=True)
class Frame:
    data: bytes
    virtual_bytes: int = 0


@dataclass
class ListNic(FrameNic):
    """Sends each frame at its time or as soon as the wire is free after it; notes what arrives."""

    script: list[tuple[int, Frame]] = field(default_factory=list)
    arrived: list[tuple[int, bytes, int]] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return not self.script

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self.arrived.append((now_ns, frame, virtual_bytes))

    def next_frame(self, now_ns: int) -> Frame | None:
        if self.script and self.script[0][0] <= now_ns:
            return self.script.pop(0)[1]
        return None

    def next_time_ns(self, now_ns: int) -> int | None:
        return self.script[0][0] if self.script else None

    def payloads(self) -> list[bytes]:
        return [frame[OVERHEAD_BYTES:] for _, frame, _ in self.arrived]


def attach_all(net: Network) -> dict[str, ListNic]:
    nics = {host.name: ListNic() for host in net.topology.hosts}
    for name, nic in nics.items():
        net.attach(name, nic)
    return nics
