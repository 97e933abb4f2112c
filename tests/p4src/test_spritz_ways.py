# SPDX-License-Identifier: Apache-2.0
"""Ways through Dragonfly and Slim Fly, of the compiled program with what the controller writes (Spritz §III): each EV
takes the path that it names, and no mode ever leaves the bounded simple paths.
"""

from __future__ import annotations

import random
from itertools import pairwise, permutations, product

import pytest

from tailrace.schemes.registry import parse_scheme
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import BoundedPaths
from tests.flowcut.fabric import build
from tests.p4src.rig import enum_of
from tests.p4src.spritz_ways import Probe, Way, send
from tests.topology.following import follow

TOPOLOGIES = (
    "dragonfly:p=1,a=3,h=1,rate=1Gbps",
    "dragonfly:p=2,a=4,h=2,groups=3,rate=1Gbps",
    "dragonfly:p=1,a=2,h=3,groups=4,rate=1Gbps",
    "dragonfly:p=2,a=1,h=3,rate=1Gbps",
    "slim-fly:q=3,p=1,rate=1Gbps",
    "slim-fly:q=4,p=1,rate=1Gbps",
    "fat-tree:k=4,hosts=1,rate=1Gbps",
)
HOP_SCHEMES = ("minimal:draw=hop", "valiant:draw=hop", "ugal-l:draw=hop", "spritz:variant=spray,mode=coarse")
STEERED = "spritz:variant=scout"
MOST_PROBES = 1500


def pairs(topology: Topology) -> list[tuple[str, str]]:
    """A host of each switch to a host of each other one, by names."""
    first = {host.switch: host.name for host in reversed(topology.hosts)}
    return [(first[a], first[b]) for a, b in permutations(first, 2)]


def sample(probes: list[Probe], seed: int) -> list[Probe]:
    """So many that a test is quick."""
    rng = random.Random(seed)
    return probes if len(probes) <= MOST_PROBES else rng.sample(probes, MOST_PROBES)


def switches(topology: Topology, probe: Probe) -> tuple[str, str]:
    """The ends of a packet's way."""
    return topology.host(probe.src).switch, topology.host(probe.dst).switch


def most_links(topology: Topology) -> int:
    """Of all kinds, on a bounded path."""
    return 5 if topology.kind == "dragonfly" else 4


def check_bounds(topology: Topology, probe: Probe, way: Way) -> None:
    """It arrives, sees no switch twice, and takes at most 3 local and 2 global links, or 4 links in a Slim Fly."""
    assert way.host == probe.dst
    assert len(set(way.switches)) == len(way.switches)
    groups = [topology.switch(name).group for name in way.switches]
    crossings = sum(a != b for a, b in pairwise(groups))
    if topology.kind == "dragonfly":
        assert crossings <= 2
        assert len(way.switches) - 1 - crossings <= 3
    assert len(way.switches) - 1 <= most_links(topology)


@pytest.mark.parametrize("words", TOPOLOGIES)
def test_every_ev_of_every_list(words: str) -> None:
    """The packet takes exactly the path that the list says."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    expected = {
        Probe(src, dst, path.ev): path
        for src, dst in pairs(topology)
        for path in paths.between(topology.host(src).switch, topology.host(dst).switch)
    }
    probes = sample(list(expected), 1)
    with build(topology, parse_scheme(STEERED), 1) as network:
        ways = send(network, probes)
    for probe, way in zip(probes, ways, strict=True):
        assert tuple(way.switches) == expected[probe].switches
        assert way.tagged_to == []
        check_bounds(topology, probe, way)


@pytest.mark.parametrize("words", TOPOLOGIES)
def test_any_ev(words: str) -> None:
    """Also of values that no list has: the path that follows from the tables, with no loop."""
    topology, rng = parse_topology(words), random.Random(2)
    paths = BoundedPaths(topology)
    probes = [Probe(*rng.choice(pairs(topology)), rng.randrange(1, 1 << 16)) for _ in range(MOST_PROBES)]
    probes = list(dict.fromkeys(probes))
    with build(topology, parse_scheme(STEERED), 1) as network:
        ways = send(network, probes)
    for probe, way in zip(probes, ways, strict=True):
        path = follow(paths, *switches(topology, probe), probe.ev)
        assert path is not None
        assert tuple(way.switches) == path.switches
        assert way.host == probe.dst
        assert len(way.switches) - 1 <= most_links(topology)


@pytest.mark.parametrize("scheme", HOP_SCHEMES)
@pytest.mark.parametrize("words", TOPOLOGIES)
def test_switches_choose_among_the_same_paths(words: str, scheme: str) -> None:
    """Drawn, hashed or chosen by queues: a path that some EV takes. Tags are on the first link at most, and with a
    class of minimal paths on none.
    """
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    minimal, nonminimal = (enum_of("spritz", "VlanId_t", name) for name in ("MINIMAL", "NONMINIMAL"))
    tags = (0, minimal, nonminimal) if "coarse" in scheme else (0,)
    probes = sample(
        [Probe(*pair, ev, tag) for pair, ev, tag in product(pairs(topology), range(1, 9), tags)], 3
    )
    with build(topology, parse_scheme(scheme), 1) as network:
        ways = send(network, probes)
    tables = {switch.name: paths.ports(switch.name) for switch in topology.switches}
    for probe, way in zip(probes, ways, strict=True):
        src, dst = switches(topology, probe)
        assert way.host == probe.dst
        assert len(way.switches) - 1 <= most_links(topology)
        assert set(way.tagged_to) <= {way.switches[1]}
        shortest = len(paths.between(src, dst)[0].ports)
        if scheme.startswith("minimal") or ("coarse" in scheme and probe.tag != nonminimal):
            assert way.tagged_to == []
            assert len(way.switches) - 1 <= (3 if topology.kind == "dragonfly" else shortest)
            check_bounds(topology, probe, way)
            continue
        widest = max(len(table.first_far) for table in tables.values())
        followed = {
            path.switches
            for ev1, ev2 in product(range(widest), repeat=2)
            if (path := follow(paths, src, dst, ev1 << 8 | ev2)) is not None
        }
        default = default_way(paths, topology, src, dst)
        assert tuple(way.switches) in followed | {default}


def default_way(paths: BoundedPaths, topology: Topology, src: str, dst: str) -> tuple[str, ...]:
    """The way by the default tables alone."""
    way = [src]
    while way[-1] != dst:
        port = paths.default_port(way[-1], dst)
        assert port is not None
        way.append(topology.ports_of(way[-1])[port].name)
    return tuple(way)


def test_ugal_l_leaves_its_default_under_load() -> None:
    """Many packets at once: both kinds of paths, and tags only between ECMP 1 and ECMP 2."""
    topology = parse_topology("dragonfly:p=2,a=4,h=2,groups=3,rate=1Gbps")
    paths = BoundedPaths(topology)
    src, dst = topology.hosts[0], topology.hosts[-1]
    beside = next(host for host in topology.hosts[1:] if host.switch == src.switch)
    probes = [Probe(name, dst.name, 1 + number) for number in range(150) for name in (src.name, beside.name)]
    with build(topology, parse_scheme("ugal-l:draw=hop"), 1) as network:
        ways = send(network, probes, gap_ns=0)
    default = default_way(paths, topology, src.switch, dst.switch)
    detours = [way for way in ways if tuple(way.switches) != default]
    assert 0 < len(detours) < len(ways)
    group = topology.switch(src.switch).group
    assert any(way.tagged_to for way in detours)
    for probe, way in zip(probes, ways, strict=True):
        check_bounds(topology, probe, way)
        assert all(name == way.switches[1] for name in way.tagged_to)
        assert all(topology.switch(name).group == group for name in way.tagged_to)
