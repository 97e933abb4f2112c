# SPDX-License-Identifier: Apache-2.0
"""Ways through Dragonflies, of the compiled programs with what the controller writes: every pair is reached, nothing
loops, and no way has more than three links within groups and two between them (Spritz §II, Flowcut §III-C4).
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.topology import Link, Topology, max_switches_on_path, parse_topology
from tests.flowcut.fabric import build, control
from tests.flowcut.frames import ROCE, UDP
from tests.flowcut.sources import Packet, Script, attach
from tests.p4src.dragonfly_ways import Ways

TOPOLOGIES = (
    "dragonfly:p=1,a=3,h=1,rate=1Gbps",
    "dragonfly:p=1,a=4,h=2,groups=3,rate=1Gbps",
    "dragonfly:p=1,a=2,h=3,groups=4,rate=1Gbps",
    "dragonfly:p=1,a=2,h=5,groups=3,rate=1Gbps",
    "dragonfly:p=2,a=1,h=3,rate=1Gbps",
    "dragonfly:p=1,a=3,h=1,groups=2,rate=1Gbps",
)
ROUTED = (
    "minimal", "minimal:per=packet", "valiant", "valiant:per=flow", "ugal-l", "ugal-l:per=flowlet,gap=1us",
    "letflow:gap=1us", "letflow:gap=1us,path=mixed", "flowcut:variant=nic", "flowcut:variant=nic,path=ugal-l",
)  # fmt: skip
FLOWCUT = (
    "flowcut:left=0,rtt=1,first=least-loaded",
    "flowcut:left=0,rtt=1,variant=ingress,first=least-loaded",
    "flowcut:left=0,rtt=1,buckets=1,path=valiant,first=least-loaded",
)
PACKETS = 6


def all_pairs(topology: Topology, packets: int = PACKETS, gap_ns: int = 40_000) -> list[Script]:
    """A flow between each two hosts, with pauses, so that there are many flowlets and flowcuts."""
    burst = tuple(Packet(gap_ns if number % 3 == 0 else 0, 700) for number in range(packets))
    return [
        Script(src.name, dst.name, 1000 + number, ROCE, UDP, 977 * number, burst, 10**6)
        for number, (src, dst) in enumerate(permutations(topology.hosts, 2))
    ]


def run(words: str, scheme: str, seed: int = 1) -> tuple[Ways, dict[str, int]]:
    """All pairs, once; ways and drops."""
    topology = parse_topology(words)
    with build(topology, parse_scheme(f"{scheme}{',' if ':' in scheme else ':'}queue=1MB"), seed) as network:
        attach(network, all_pairs(topology))
        ways = Ways(network)
        assert network.run()
        return ways, drops(network)


def drops(network: Network) -> dict[str, int]:
    """Packets that programs dropped, by switch."""
    dropped = {}
    for switch in network.topology.switches:
        core = network.switch(switch.name)
        counter = core.model.counter("drops")
        dropped[switch.name] = sum(
            core.counter_read(counter.index, index)[1] for index in range(counter.size)
        )
    return {name: count for name, count in dropped.items() if count}


def check_arrivals(ways: Ways) -> None:
    """Every packet came to its host, and no switch saw one twice."""
    topology = ways.topology
    assert len(ways.of) == len(topology.hosts) * (len(topology.hosts) - 1) * PACKETS
    for (key, _), way in ways.of.items():
        assert way.host == topology.host_by_ip(key[1]).name
        assert len(set(way.switches)) == len(way.switches)


def check_bounds(ways: Ways) -> None:
    """At most one link within each group that a packet goes through, at most two between groups; a way has a header
    exactly while it heads for a third group.
    """
    topology = ways.topology
    for way in ways.of.values():
        groups = way.groups(topology)
        within, between = way.links(topology)
        assert within <= 3
        assert between <= 2
        assert len(set(groups)) == len(groups)
        visits = Counter(topology.switch(name).group for name in way.switches)
        assert max(visits.values()) <= 2
        for number, detour in enumerate(way.detours):
            here, there = (topology.switch(name).group for name in way.switches[number : number + 2])
            heading = between == 2 and here == groups[0]
            assert bool(detour) == heading
            assert not heading or detour == groups[1] + 1
            assert here == there or here in groups


@pytest.mark.parametrize("scheme", ROUTED + FLOWCUT)
@pytest.mark.parametrize("words", TOPOLOGIES)
def test_every_pair(words: str, scheme: str) -> None:
    ways, dropped = run(words, scheme)
    assert dropped == {}
    check_arrivals(ways)
    check_bounds(ways)


def crossings(ways: Ways) -> Counter[int]:
    """Packets between groups, by the number of links between groups that they took."""
    topology = ways.topology
    packets: Counter[int] = Counter()
    for way in ways.of.values():
        groups = way.groups(topology)
        if groups[0] != groups[-1]:
            packets[len(groups) - 1] += 1
    return packets


@pytest.mark.parametrize("scheme", ["minimal", "minimal:per=packet", "flowcut:path=minimal,left=0,rtt=1"])
@pytest.mark.parametrize("words", TOPOLOGIES[:2])
def test_minimal_ways_cross_once(words: str, scheme: str) -> None:
    assert set(crossings(run(words, scheme)[0])) == {1}


@pytest.mark.parametrize("scheme", ["valiant", "valiant:per=flow", "letflow:path=valiant"])
@pytest.mark.parametrize("words", TOPOLOGIES[:5])
def test_valiant_ways_cross_twice(words: str, scheme: str) -> None:
    """Always, from group to group; within a group they take its link."""
    ways, _ = run(words, scheme)
    assert set(crossings(ways)) == {2}
    for way in ways.of.values():
        if len(way.groups(ways.topology)) == 1:
            assert len(way.switches) <= 2


@pytest.mark.parametrize("scheme", ["ugal-l", "letflow", "flowcut:first=least-loaded"])
def test_without_load_ugal_is_minimal(scheme: str) -> None:
    """0 * h_min <= 0 * h_val."""
    with build(parse_topology(TOPOLOGIES[0]), parse_scheme(scheme), 3) as network:
        attach(network, [Script("h1", "h12", 9, ROCE, UDP, 0, tuple([Packet(50_000, 700)] * 40))])
        ways = Ways(network)
        assert network.run()
    assert crossings(ways) == {1: 40}


def test_two_groups_leave_no_detour() -> None:
    """Where there is no third group, Valiant is minimal."""
    assert set(crossings(run("dragonfly:p=1,a=3,h=1,groups=2,rate=1Gbps", "valiant")[0])) == {1}


@pytest.mark.parametrize(
    "words", ["dragonfly:p=1,a=3,h=2,rate=1Gbps", "dragonfly:p=1,a=4,h=2,groups=5,rate=1Gbps"]
)
def test_third_groups_are_equally_likely(words: str) -> None:
    """Valiant's: each third group is gone through by its share of the packets, within five deviations."""
    topology = parse_topology(words)
    packets = 900
    with build(topology, parse_scheme("valiant"), 5) as network:
        script = Script("h1", topology.hosts[-1].name, 9, ROCE, UDP, 0, tuple([Packet(9_000, 64)] * packets))
        attach(network, [script])
        ways = Ways(network)
        assert network.run()
    through = Counter(way.groups(topology)[1] for way in ways.of.values())
    groups = {switch.group for switch in topology.switches}
    assert set(through) == groups - {0, topology.switch(topology.hosts[-1].switch).group}
    mean = packets / len(through)
    assert max(abs(count - mean) for count in through.values()) < 5 * mean**0.5


@pytest.mark.parametrize("words", ["dragonfly:p=1,a=4,h=3,groups=4,rate=1Gbps", TOPOLOGIES[3]])
def test_all_links_between_two_groups_are_used(words: str) -> None:
    """By minimal packets, each link by its share, also where a switch has several links to a group."""
    topology = parse_topology(words)
    packets = 900
    with build(topology, parse_scheme("minimal:per=packet"), 5) as network:
        script = Script("h1", topology.hosts[-1].name, 9, ROCE, UDP, 0, tuple([Packet(9_000, 64)] * packets))
        attach(network, [script])
        ends = (0, topology.switch(topology.hosts[-1].switch).group)
        group = {switch.name: switch.group for switch in topology.switches}
        used = {
            (wire.source.node, wire.source.port): 0
            for wire in network.wires
            if (group.get(wire.source.node), group.get(wire.target.node)) == ends
        }

        def count(wire: Wire, event: WireEvent, _now_ns: int, _frame: bytes, _virtual: int) -> None:
            used[wire.source.node, wire.source.port] += event is WireEvent.RECEIVED

        network.tap(count, [wire for wire in network.wires if (wire.source.node, wire.source.port) in used])
        assert network.run()
    mean = packets / len(used)
    assert max(abs(count - mean) for count in used.values()) < 5 * mean**0.5


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, str, list[Link]]:
    """A Dragonfly, a scheme, and some of its links."""
    words = draw(st.sampled_from(TOPOLOGIES))
    links = parse_topology(words).links
    dead = draw(st.lists(st.sampled_from(links), max_size=6)) if links else []
    return (
        words,
        draw(st.sampled_from(("ugal-l", "valiant", "flowcut:path=valiant,first=least-loaded"))),
        dead,
    )


@settings( max_examples=25,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(broken())
def test_any_links_down(case: tuple[str, str, list[Link]]) -> None:
    """Whoever can be reached is reached, and no switch sees a packet twice."""
    words, scheme, dead = case
    topology = parse_topology(words)
    pairs = {frozenset((link.a, link.b)) for link in dead}
    down = frozenset((link.a, link.a_port) for link in topology.links if frozenset((link.a, link.b)) in pairs)
    with build(topology, parse_scheme(scheme), 2) as network:
        for a, b in map(sorted, pairs):
            network.link_down(a, b)
        control(network, parse_scheme(scheme), down)
        scripts = all_pairs(topology, packets=2)
        keys = list(attach(network, scripts))
        ways = Ways(network)
        assert network.run()
    reachable = components(topology, down)
    longest = 2 + max(4, max_switches_on_path(topology, down))
    for script, key in zip(scripts, keys, strict=True):
        ends = {reachable[topology.host(name).switch] for name in (script.src, script.dst)}
        got = [way for (way_key, _), way in ways.of.items() if way_key == key and way.host]
        assert len(got) == (2 if len(ends) == 1 else 0)
        for way in got:
            assert len(set(way.switches)) == len(way.switches) <= longest


def components(topology: Topology, down: frozenset[tuple[str, int]]) -> dict[str, str]:
    """Each switch with the first switch that it is connected to."""
    first_of = {switch.name: switch.name for switch in topology.switches}
    for _ in topology.switches:
        for link in topology.links:
            if (link.a, link.a_port) not in down:
                first_of[link.a] = first_of[link.b] = min(first_of[link.a], first_of[link.b])
    return first_of
