# SPDX-License-Identifier: Apache-2.0
"""Forged sources: no host speaks for another one, in any scheme; each speaks for itself as before."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from finsy.proto import p4r

from tailrace.p4rt.programs import load
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import Host, parse_topology
from tests.flowcut.fabric import build
from tests.frame_nic import FrameNic
from tests.guards.kinds import ICMP, TCP, Ipv4, Kind, bth, ethernet, ipv4
from tests.guards.places import DRAGONFLY, FLOWCUT, LAST_LINK, RLB, ROUTED, SELECTORS, STEERED
from tests.guards.scene import OutFrame, Place
from tests.guards.source import constants

FRAMES = 600
REPLY_PORTS = dict(constants("UDP_"))
OPCODES = dict(constants("BTH_"))
ETHERTYPE_IPV4 = dict(constants("ETHERTYPE_"))["ETHERTYPE_IPV4"]
LIMITED_BROADCAST = "255.255.255.255"


@dataclass
class Script(FrameNic):
    """A NIC that sends some frames once, and keeps what it gets."""

    frames: list[bytes] = field(default_factory=list)
    arrived: list[bytes] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """See codec.nic."""
        return not self.frames

    def next_time_ns(self, now_ns: int) -> int | None:
        """See codec.nic."""
        return now_ns if self.frames else None

    def next_frame(self, now_ns: int) -> OutFrame | None:
        """See codec.nic."""
        return OutFrame(self.frames.pop(0)) if self.frames else None

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """See codec.nic."""
        self.arrived.append(frame)


def forgeries(src: str | None) -> list[Kind]:
    """ACK, CNP, NIC ACK, data, ICMP, TCP and a fragment that say they are from an address; None: the host's own."""
    contents = [
        *((name, Ipv4(src=src), bth(opcode, 8)) for name, opcode in OPCODES.items()),
        ("nic-ack", Ipv4(src=src, dport=REPLY_PORTS["UDP_NIC_ACK"]), bytes(10)),
        ("data", Ipv4(src=src), bth(7, 200)),
        ("icmp", Ipv4(ICMP, src=src), bytes(40)),
        ("tcp", Ipv4(TCP, src=src, sport=5000, dport=5001), bytes(40)),
        ("fragment", Ipv4(src=src, flags=7), bytes(40)),
    ]

    def kind(name: str, says: Ipv4, payload: bytes) -> Kind:
        return Kind(name, lambda a, b: ethernet(a, ETHERTYPE_IPV4, ipv4(a, b, says, payload)))

    return [kind(*content) for content in contents]


def drops(network: Network, switch: str, scheme: str) -> dict[str, int]:
    """Packets that a switch dropped, by reason."""
    program = load(resolve(parse_scheme(scheme), network.topology).program)
    (counter,) = (c for c in program.p4info.counters if c.preamble.alias == "drops")
    request = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
    dropped = {}
    for response in network.p4rt(switch).read(p4r.ReadRequest(entities=[request])):
        for entity in response.entities:
            entry = entity.counter_entry
            if entry.data.packet_count:
                dropped[program.enum_name("DropReason_t", entry.index.index)] = entry.data.packet_count
    return dropped


CASES = [(LAST_LINK, scheme) for scheme in (*SELECTORS, *FLOWCUT, *RLB)]
CASES += [(DRAGONFLY, scheme) for scheme in (*ROUTED, *STEERED)]


@pytest.mark.parametrize(("place", "scheme"), CASES, ids=[f"{p}-{s}" for p, s in CASES])
def test_nobody_speaks_for_others(place: Place, scheme: str) -> None:
    """Of hundreds in another one's name none arrives, all are counted; in the own name all arrive."""
    with build(parse_topology(place.topology), parse_scheme(scheme)) as network:
        hosts: list[Host] = list(network.topology.hosts)
        attacker, victim = (network.topology.host(name) for name in place.attackers[0])
        stranger = next(host for host in hosts if host not in (attacker, victim))
        kinds = forgeries(stranger.ip)
        source, sink = Script(), Script()
        source.frames = [kinds[n % len(kinds)].make(attacker, victim) for n in range(FRAMES)]
        network.attach(attacker.name, source)
        network.attach(victim.name, sink)
        network.run()
        assert sink.arrived == []
        assert drops(network, attacker.switch, scheme) == {"SPOOFED_SOURCE": FRAMES}
        honest = [kind.make(attacker, victim) for kind in forgeries(None)]
        source.frames = list(honest)
        network.attach(attacker.name, source)
        network.run()
        assert len(sink.arrived) == len(honest)
        assert drops(network, attacker.switch, scheme) == {"SPOOFED_SOURCE": FRAMES}


@pytest.mark.parametrize("guard", ["yes", "no"])
def test_without_guard(guard: str) -> None:
    """Ports are open where the scheme says so; who asks for an address is heard of in neither way."""
    scheme = f"ecmp:guard={guard}"
    with build(parse_topology(LAST_LINK.topology), parse_scheme(scheme)) as network:
        attacker, victim = (network.topology.host(name) for name in LAST_LINK.attackers[0])
        stranger = network.topology.host(LAST_LINK.victim[0])
        source, sink = Script(), Script()
        source.frames = [kind.make(attacker, victim) for kind in forgeries(stranger.ip)]
        asks = Ipv4(src="0.0.0.0", sport=68, dport=67)
        everybody = Host("all", 999, LIMITED_BROADCAST, victim.mac, "", 0, 1, 0)
        source.frames.append(ethernet(attacker, ETHERTYPE_IPV4, ipv4(attacker, everybody, asks, bytes(240))))
        network.attach(attacker.name, source)
        network.attach(victim.name, sink)
        network.run()
        forged = len(forgeries(None))
        assert len(sink.arrived) == (forged if guard == "no" else 0)
        expected = {"NO_ROUTE": 1} | ({} if guard == "no" else {"SPOOFED_SOURCE": forged})
        assert drops(network, attacker.switch, scheme) == expected
