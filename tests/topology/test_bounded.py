# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths: all there are and no others, each with an EV that takes it (Spritz §III)."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import networkx as nx
import pytest

from tailrace.spec import SpecError
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import MINIMAL, NON_MINIMAL, BoundedPath, BoundedPaths
from tests.topology.brute_force import graph_of, of_dragonfly, of_slim_fly, types
from tests.topology.following import follow

TABLE_2 = "rate=400Gbps,local=25ns,global=500ns,host=25ns,latency=500ns"
DRAGONFLY = parse_topology(f"dragonfly:p=4,a=8,h=4,{TABLE_2}")
SLIM_FLY = parse_topology(f"slim-fly:p=7,q=9,{TABLE_2}")
CANONICAL = (
    "dragonfly:p=1,a=2,h=1",
    "dragonfly:p=1,a=3,h=1",
    "dragonfly:p=1,a=2,h=2",
    "dragonfly:p=2,a=1,h=3",
)
SHARED = (
    "dragonfly:p=1,a=4,h=2,groups=3", "dragonfly:p=1,a=3,h=2,groups=2", "dragonfly:p=1,a=3,h=1,groups=3",
    "dragonfly:p=1,a=4,h=1,groups=1", "dragonfly:p=1,a=2,h=3,groups=4",
)  # fmt: skip
SLIM = ("slim-fly:p=1,q=3", "slim-fly:p=1,q=4")
TREES = (
    "leaf-spine:leaves=3,spines=4,hosts=1", "leaf-spine:leaves=2,spines=1", "fat-tree:k=4", "fat-tree:k=2",
    "fat-tree:k=8,taper=2,hosts=1",
)  # fmt: skip


def all_pairs(topology: Topology) -> list[tuple[str, str]]:
    return list(permutations((switch.name for switch in topology.switches), 2))


def check_path(topology: Topology, path: BoundedPath, src: str, dst: str) -> None:
    """Its ports lead along its switches, none twice, within the bounds."""
    assert (src, dst) == (path.switches[0], path.switches[-1])
    assert len(set(path.switches)) == len(path.switches) == len(path.ports) + 1
    for here, port, there in zip(path.switches, path.ports, path.switches[1:], strict=False):
        assert topology.ports_of(here)[port].name == there
    links = types(topology, path.switches)
    assert (links.count("l"), links.count("g")) == (path.local, path.global_)
    if topology.kind == "dragonfly":
        near = topology.switch(src).group == topology.switch(dst).group
        assert path.local <= (2 if near else 3)
        assert path.global_ <= (0 if near else 2)
        assert near or "ll" not in links
    else:
        assert len(path.ports) <= 4


@pytest.mark.parametrize("words", CANONICAL)
def test_dragonfly_lists_are_complete(words: str) -> None:
    """The set of every pair is the brute force's; a*h paths to other groups, a - 1 within one."""
    topology = parse_topology(words)
    paths, graph = BoundedPaths(topology), graph_of(topology)
    a = sum(switch.group == 0 for switch in topology.switches)
    links = len({switch.group for switch in topology.switches}) - 1
    for src, dst in all_pairs(topology):
        listed = [path.switches for path in paths.between(src, dst)]
        assert of_dragonfly(topology, graph, src, dst) == set(listed)
        near = topology.switch(src).group == topology.switch(dst).group
        assert len(listed) == len(set(listed)) == (a - 1 if near else links)


@pytest.mark.parametrize("words", SLIM)
def test_slim_fly_lists_are_complete(words: str) -> None:
    """The set of pairs is the brute force's."""
    topology = parse_topology(words)
    paths, graph = BoundedPaths(topology), graph_of(topology)
    for src, dst in all_pairs(topology)[:: 1 if len(topology.switches) < 20 else 7]:
        listed = [path.switches for path in paths.between(src, dst)]
        assert of_slim_fly(topology, graph, src, dst) == set(listed)
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize("words", TREES)
def test_lists_of_trees_are_all_shortest_paths(words: str) -> None:
    """Between leaves, all of them minimal; and whatever an EV is, it takes one of them."""
    topology = parse_topology(words)
    paths, graph = BoundedPaths(topology), graph_of(topology)
    for src, dst in permutations(topology.leaves, 2):
        listed = paths.between(src, dst)
        distinct = {path.switches for path in listed}
        assert {tuple(way) for way in nx.all_shortest_paths(graph, src, dst)} == distinct
        assert len(listed) == len(distinct)
        assert {MINIMAL} == {path.category for path in listed}
        for path in listed:
            assert path.switches == tuple(taken(paths, src, dst, path.ev))
        assert {taken(paths, src, dst, ev) for ev in (1, 2, 3, 257, 0x1234, 0xFFFF)} <= distinct


def taken(paths: BoundedPaths, src: str, dst: str, ev: int) -> tuple[str, ...]:
    """The switches of the path that an EV takes."""
    path = follow(paths, src, dst, ev)
    assert path is not None
    return path.switches


@pytest.mark.parametrize("words", [*CANONICAL, *SHARED, *SLIM])
def test_every_ev_of_a_list_takes_its_path(words: str) -> None:
    """Of every pair: EVs are source ports and differ, and so do paths, which keep the bounds."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    for src, dst in all_pairs(topology):
        listed = paths.between(src, dst)
        assert 0 < len(listed) == len({path.ev for path in listed}) == len({path.ports for path in listed})
        for path in listed:
            assert 0 < path.ev < 1 << 16
            assert path == follow(paths, src, dst, path.ev)
            check_path(topology, path, src, dst)
        assert [(path.ev, path.latency_ps) for path in listed] == paths.entries(src, dst)
        order = [(p.category != MINIMAL, p.latency_ps, len(p.ports), p.ev) for p in listed]
        assert order == sorted(order)
        assert MINIMAL == listed[0].category


@pytest.mark.parametrize("words", [*CANONICAL, *SHARED, "slim-fly:p=1,q=3"])
def test_no_ev_at_all_loops(words: str) -> None:
    """Whatever the slots, packets arrive within the bounds of links; only a Slim Fly's may come back once."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    for src, dst in all_pairs(topology):
        tables = paths.ports(src)
        firsts = max(1, len(tables.first_far), len(tables.first_near))
        seconds = max(1, *(len(paths.ports(switch.name).second) for switch in topology.switches))
        for ev1 in range(firsts):
            for ev2 in range(seconds):
                path = follow(paths, src, dst, ev1 << 8 | ev2)
                assert path is not None
                assert len(path.ports) <= (5 if topology.kind == "dragonfly" else 4)
                if topology.kind == "dragonfly":
                    check_path(topology, path, src, dst)


@pytest.mark.parametrize(
    ("words", "src", "dst"),
    [("slim-fly:p=1,q=3", "r0_0_0", "r1_2_2"), ("dragonfly:p=1,a=3,h=1", "r1_1", "r3_2")],
)
def test_all_evs_there_are(words: str, src: str, dst: str) -> None:
    """Each of the 65536 takes the path of its slots."""
    paths = BoundedPaths(parse_topology(words))
    first = len(paths.ports(src).first_far)
    taken: dict[tuple[int, int], tuple[str, ...]] = {}
    for ev in range(1 << 16):
        path = follow(paths, src, dst, ev)
        assert path is not None
        second = max(1, len(paths.ports(path.switches[1]).second))
        slots = ((ev >> 8) % first, (ev & 0xFF) % second)
        assert path.switches == taken.setdefault(slots, path.switches)
    assert {path.switches for path in paths.between(src, dst)} <= set(taken.values())


def test_table_1() -> None:
    """All types of paths of Spritz, Table I, with its latencies and categories, and no others."""
    expected = {
        "dragonfly": {
            MINIMAL: {(1, 0): 108_200, (2, 0): 216_400, (0, 1): 583_200, (1, 1): 691_400, (2, 1): 799_600},
            NON_MINIMAL: {
                (0, 2): 1_166_400, (1, 2): 1_274_600, (2, 2): 1_382_800, (3, 2): 1_491_000,
            },
        },
        "slim-fly": {
            MINIMAL: {(1, 0): 108_200, (2, 0): 216_400, (0, 1): 583_200, (1, 1): 691_400, (0, 2): 1_166_400},
            NON_MINIMAL: {
                (3, 0): 324_600, (4, 0): 432_800, (2, 1): 799_600, (3, 1): 907_800, (1, 2): 1_274_600,
                (2, 2): 1_382_800, (0, 3): 1_749_600, (1, 3): 1_857_800, (0, 4): 2_332_800,
            },
        },
    }  # fmt: skip
    for topology in (DRAGONFLY, SLIM_FLY):
        paths = BoundedPaths(topology)
        latencies: dict[str, dict[tuple[int, int], int]] = {MINIMAL: {}, NON_MINIMAL: {}}
        src = topology.switches[0].name
        for switch in topology.switches:
            for path in paths.between(src, switch.name):
                kind = (path.local, path.global_)
                assert path.latency_ps == latencies[path.category].setdefault(kind, path.latency_ps)
        assert expected[topology.kind] == latencies


def test_sizes_of_lists() -> None:
    """In the paper's Dragonfly 32 paths to other groups and 7 within; in its Slim Fly about 145."""
    paths = BoundedPaths(DRAGONFLY)
    counts = Counter(len(paths.entries("r1_1", switch.name)) for switch in DRAGONFLY.switches)
    assert {32: 256, 7: 7, 0: 1} == counts
    slim = BoundedPaths(SLIM_FLY)
    sizes = [len(slim.entries("r0_0_0", switch.name)) for switch in SLIM_FLY.switches[1:]]
    assert (132, 146) == (min(sizes), max(sizes))
    assert {13} == {len(slim.ports(switch.name).second) for switch in SLIM_FLY.switches}


def test_ev_0_is_named_otherwise() -> None:
    """Where both slots are the first one, a size is added to what is read."""
    paths = BoundedPaths(parse_topology("dragonfly:p=1,a=3,h=2"))
    tables = paths.ports("r1_1")
    within = {path.ports[0]: path.ev for path in paths.between("r1_1", "r1_2") if len(path.ports) == 1}
    assert {tables.first_near[0]: len(tables.first_near) << 8} == within
    far = {path.ports[:2]: path.ev for path in paths.between("r1_1", "r4_1")}
    first = tables.first_far[0], paths.ports("r1_2").second[0]
    assert len(paths.ports("r1_2").second) == far[first] == 2


def test_minimal_paths_are_first() -> None:
    """Also where a detour of two global links is quicker than a minimal path with two local ones."""
    topology = parse_topology("dragonfly:p=1,a=4,h=2,local=10us,global=1us")
    paths = BoundedPaths(topology)
    lists = [paths.between(src, dst) for src, dst in all_pairs(topology)]
    assert any(listed[0].latency_ps > listed[1].latency_ps for listed in lists if len(listed) > 1)
    assert all(listed[0].category == MINIMAL for listed in lists)


def test_default_tables() -> None:
    """They are minimal, and over all pairs every minimal next hop is used."""
    for words in SLIM:
        topology = parse_topology(words)
        paths, graph = BoundedPaths(topology), graph_of(topology)
        for src, dst in all_pairs(topology):
            port = paths.default_port(src, dst)
            assert port is not None
            length = nx.shortest_path_length(graph, src, dst)
            assert length - 1 == nx.shortest_path_length(graph, topology.ports_of(src)[port].name, dst)
            assert length == paths.default_links(src, dst)
    spread = BoundedPaths(parse_topology("dragonfly:p=1,a=8,h=1,groups=2"))
    taken = {spread.default_port("r1_1", f"r2_{number}") for number in range(1, 9)}
    assert {9} == taken, "the own link"
    sparse = BoundedPaths(parse_topology("dragonfly:p=1,a=4,h=2,groups=6"))
    ports = {sparse.default_port("r1_4", f"r{group}_{i}") for group in range(2, 7) for i in range(1, 5)}
    assert len(ports) > 2


def test_failed_links() -> None:
    """Without repair a failed link stays in all tables. With repair default tables lead around it, ECMP tables
    stay, and EVs that insist on it do not arrive.
    """
    topology = parse_topology("dragonfly:p=1,a=4,h=2,groups=3")
    usual = BoundedPaths(topology)
    failed = next(link for link in topology.links if (link.a, link.b[:3]) == ("r1_1", "r2_"))
    repaired = BoundedPaths(topology, frozenset({(failed.b, failed.b_port)}))
    moved = 0
    for src, dst in all_pairs(topology):
        assert usual.ports(src) == repaired.ports(src)
        port = repaired.default_port(src, dst)
        assert (src, port) not in {(failed.a, failed.a_port), (failed.b, failed.b_port)}
        moved += port != usual.default_port(src, dst)
        for paths in (usual, repaired):
            here, steps = src, 0
            while here != dst:
                here, steps = topology.ports_of(here)[paths.default_port(here, dst) or 0].name, steps + 1
            assert steps == paths.default_links(src, dst)
        for path in repaired.between(src, dst):
            assert path == follow(repaired, src, dst, path.ev)
            assert (failed.a, failed.b) not in set(zip(path.switches, path.switches[1:], strict=False))
    assert moved
    insisting = next(path for path in usual.between(failed.a, failed.b) if len(path.ports) == 1)
    assert follow(repaired, failed.a, failed.b, insisting.ev) is None
    assert insisting == follow(usual, failed.a, failed.b, insisting.ev)


def test_cut_off() -> None:
    """A switch that no link reaches has no default route and no paths."""
    topology = parse_topology("dragonfly:p=1,a=2,h=1")
    down = frozenset((link.a, link.a_port) for link in topology.links if "r3_1" in (link.a, link.b))
    paths = BoundedPaths(topology, down)
    assert (None, None, ()) == (
        paths.default_port("r1_1", "r3_1"), paths.default_links("r1_1", "r3_1"), paths.between("r1_1", "r3_1")
    )  # fmt: skip
    assert follow(paths, "r1_1", "r3_1", 1) is None
    assert paths.between("r1_1", "r1_2")


def test_a_switch_and_itself() -> None:
    """There is nothing to choose."""
    paths = BoundedPaths(parse_topology("slim-fly:q=3"))
    assert ((), None) == (paths.between("r0_0_0", "r0_0_0"), follow(paths, "r0_0_0", "r0_0_0", 1))


def test_refusals() -> None:
    """More ports than an EV can name, in one line."""
    large = parse_topology("dragonfly:p=1,a=258,h=1,groups=1")
    with pytest.raises(
        SpecError, match="r1_1 has 257 ports to choose from, and an EV can select one of 256 at most"
    ):
        BoundedPaths(large)
    full = BoundedPaths(parse_topology("dragonfly:p=1,a=257,h=1,groups=1"))
    assert 256 == len(full.entries("r1_1", "r1_2"))
    assert 0 not in {ev for ev, _ in full.entries("r1_1", "r1_2")}
