# SPDX-License-Identifier: Apache-2.0
"""Dead links are found by missing probes, over the virtual network with real programs and without any clock."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.controller import lldp
from tailrace.controller.linkwatch import LinkMonitor, Probe, link_names
from tailrace.controller.reconcile import install_all
from tailrace.p4rt import programs
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import parse_topology
from tests.schemes.planned import intent

MISSED = 3
ROUND_NS = 1_000_000


@given(name=st.text(min_size=1, max_size=40), port=st.integers(0, 511), number=st.integers(0, (1 << 32) - 1))
def test_a_probe_tells_what_it_was_made_from(name: str, port: int, number: int) -> None:
    probe = lldp.encode(name, port, number)
    assert len(probe) >= 60
    assert lldp.decode(probe) == ((name, port), number)
    # \xfe: the type of the TLV with the number, 127, in the upper 7 bits
    without = probe.replace(b"\xfe\x08\x02\x00\x00\x01", b"\xfe\x08\x02\x00\x00\x02")
    assert lldp.decode(without) == ((name, port), None)


OCTETS = st.binary(max_size=80)


@given(st.one_of(OCTETS, OCTETS.map(lambda rest: lldp.encode("s1", 1, 0)[:14] + rest)))
def test_frames_of_others_are_read_without_an_error(frame: bytes) -> None:
    decoded = lldp.decode(frame)
    if decoded is not None:
        (_, port), number = decoded
        assert port >= 0
        assert number is None or 0 <= number < 1 << 32


def test_lldp_of_others() -> None:
    """LLDP that names no switch and port of ours is nobody's: other subtypes, a MAC address, a name, bad
    text.
    """
    good = lldp.encode("s1", 1, 0)
    assert lldp.decode(good.replace(b"\x02\x03\x07s1", b"\x02\x03\x04s1")) is None
    assert lldp.decode(good.replace(b"\x04\x02\x071", b"\x04\x02\x07e")) is None
    assert lldp.decode(good.replace(b"s1", b"\xff\xff")) is None
    assert lldp.decode(good[:20]) is None
    assert lldp.decode(b"\0" * 60) is None


class Fabric:
    """A virtual network whose links are watched round by round."""

    def __init__(self, words: str, *, without_entries: str | None = None) -> None:
        self.topology = parse_topology(words)
        self.network = Network(self.topology)
        intents = intent(self.topology, parse_scheme("flowcut"), target("virtual"))
        if without_entries is not None:
            intents[without_entries] = replace(intents[without_entries], entities=())
        install_all(self.network.p4rt, intents)
        self.monitor = LinkMonitor(self.topology, MISSED)
        self.program = programs.load("flowcut")
        self.connected = {switch.name for switch in self.topology.switches}
        self.problems: list[str] = []

    def round(self) -> frozenset[tuple[str, int]]:
        """One round: probes go out, time passes, what came in is heard; the links that are down."""
        return self.send(self.monitor.round(self.connected))

    def send(self, probes: list[Probe]) -> frozenset[tuple[str, int]]:
        """The same of some probes."""
        for probe in probes:
            op = self.program.enum("PacketOutOp_t", "SEND")
            message = p4r.PacketOut(payload=probe.frame)
            for field, value in ((1, op), (2, probe.port)):
                message.metadata.add(metadata_id=field, value=bytes([value]))
            self.network.p4rt(probe.switch).packet_out(message)
        self.network.advance_to(self.network.now_ns + ROUND_NS)
        for name in sorted(self.connected):
            for packet in self.network.p4rt(name).packet_ins():
                values = {field.metadata_id: int.from_bytes(field.value, "big") for field in packet.metadata}
                problem = self.monitor.probe_received(name, values[2], packet.payload)
                self.problems += [] if problem is None else [problem]
        return self.monitor.down

    def names(self) -> list[str]:
        return link_names(self.topology, self.monitor.down)


@pytest.mark.parametrize(
    "words", ["leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps", "dragonfly:p=1,a=2,h=1"]
)
def test_all_alive(words: str) -> None:
    """In a network without faults nothing is ever down, and all is settled after one round."""
    fabric = Fabric(words)
    assert not fabric.monitor.discovered
    for _ in range(2 * MISSED):
        assert frozenset() == fabric.round()
        assert fabric.monitor.discovered
    assert fabric.problems == []


def test_down_and_up() -> None:
    """A link is down after three rounds without probes, not before, and up with the first one that comes
    again.
    """
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps")
    fabric.round()
    fabric.network.link_down("leaf1", "spine2")
    for _ in range(MISSED):
        assert frozenset() == fabric.round()
    assert {("leaf1", 3), ("spine2", 1)} == fabric.round()
    assert ["leaf1-spine2"] == fabric.names()
    fabric.network.link_up("leaf1", "spine2")
    assert frozenset() == fabric.round()


def test_a_switch_that_comes_back_is_not_waited_for() -> None:
    """Its links, and no others, are probed at once, both ways, and are up within the round that is under way;
    such probes do not count as a round.
    """
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps")
    fabric.round()
    for leaf in ("leaf1", "leaf2"):
        fabric.network.link_down(leaf, "spine2")
    for _ in range(MISSED + 1):
        fabric.round()
    assert ["leaf1-spine2", "leaf2-spine2"] == fabric.names()
    for leaf in ("leaf1", "leaf2"):
        fabric.network.link_up(leaf, "spine2")
    probes = fabric.monitor.probes_of("spine2", fabric.connected)
    ends = {("leaf1", 3), ("leaf2", 3), ("spine2", 1), ("spine2", 2)}
    assert ends == {(probe.switch, probe.port) for probe in probes}
    assert frozenset() == fabric.send(probes)
    assert {("leaf1", 3), ("spine2", 1)} == {
        (probe.switch, probe.port) for probe in fabric.monitor.probes_of("spine2", {"leaf1", "spine2"})
    }
    # a thousand of them without an answer make no link dead
    fabric.network.link_down("leaf1", "spine2")
    for _ in range(1000):
        assert frozenset() == frozenset(fabric.monitor.down)
        fabric.monitor.probes_of("spine2", fabric.connected)


def test_dead_from_the_start() -> None:
    """A link that never worked is found dead, and then all is settled."""
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps")
    fabric.network.link_down("leaf1", "spine1")
    for _ in range(MISSED + 1):
        assert not fabric.monitor.discovered
        fabric.round()
    assert fabric.monitor.discovered
    assert ["leaf1-spine1"] == fabric.names()


def test_a_switch_without_entries_drops_no_probe() -> None:
    """Before it holds its entries all its ports are hosts' to it, and LLDP there would count as forged."""
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps", without_entries="spine2")
    fabric.connected.remove("spine2")
    for _ in range(2 * MISSED):
        assert frozenset() == fabric.round()
    assert fabric.monitor.probes_of("spine2", fabric.connected) == []
    core = fabric.network.switch("spine2")
    counter = core.model.counter("drops")
    assert not any(core.counter_read(counter.index, index)[1] for index in range(counter.size))


def test_a_lost_switch() -> None:
    """All links of a switch that can no longer be reached are down; before it was ever reached, none is."""
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps")
    fabric.connected = {"leaf1", "leaf2", "spine1"}
    for _ in range(2 * MISSED):
        assert frozenset() == fabric.round()
    fabric.connected.add("spine2")
    fabric.round()
    fabric.connected.remove("spine2")
    for _ in range(MISSED + 1):
        fabric.round()
    assert ["leaf1-spine2", "leaf2-spine2"] == fabric.names()


def test_wrong_wiring() -> None:
    """A probe that comes in at another port than it should is reported, and keeps no link alive."""
    monitor = LinkMonitor(parse_topology("leaf-spine:leaves=2,spines=2,hosts=1"), MISSED)
    problem = monitor.probe_received("spine1", 1, lldp.encode("leaf2", 2, 0))
    assert problem == "port 1 of spine1 is wrongly linked to port 2 of leaf2"
    assert monitor.probe_received("spine1", 1, lldp.encode("stranger", 2, 0)) is not None
    assert monitor.probe_received("spine1", 1, b"no LLDP") is None
    assert monitor.probe_received("spine1", 1, lldp.encode("leaf1", 2, 0)) is None
    monitor.round({"leaf1", "leaf2", "spine1", "spine2"})
    assert not monitor.discovered


def test_hosts_cannot_keep_a_link_alive() -> None:
    """LLDP that a host sends is dropped by its switch."""
    fabric = Fabric("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Gbps")
    fabric.round()
    fabric.network.link_down("leaf1", "spine1")
    for _ in range(MISSED + 1):
        fabric.network.switch("leaf1").inject(1, lldp.encode("spine1", 1, 0), fabric.network.now_ns)
        fabric.round()
    assert ["leaf1-spine1"] == fabric.names()
