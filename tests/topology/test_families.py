# SPDX-License-Identifier: Apache-2.0
"""The families of topologies have the sizes, degrees and diameters that the literature gives them."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from tailrace.spec import SpecError
from tailrace.topology import Topology, max_switches_on_path, parse_topology
from tailrace.topology.families.galois import field, prime_power
from tailrace.topology.families.slim_fly import generators
from tests.long import some


def graph(topology: Topology) -> nx.MultiGraph[str]:
    multigraph: nx.MultiGraph[str] = nx.MultiGraph()
    multigraph.add_nodes_from(switch.name for switch in topology.switches)
    multigraph.add_edges_from((link.a, link.b) for link in topology.links)
    return multigraph


def degrees(topology: Topology, role: str | None = None) -> set[int]:
    chosen = {s.name for s in topology.switches if role in (None, s.role)}
    return {degree for name, degree in graph(topology).degree() if name in chosen}


def test_leaf_spine() -> None:
    """Every leaf is linked once to every spine; hosts have the first ports."""
    topology = parse_topology("leaf-spine:leaves=3,spines=4,hosts=5,rate=10Gbps,delay=2us")
    assert (7, 15, 12) == (len(topology.switches), len(topology.hosts), len(topology.links))
    assert all(
        len(graph(topology).get_edge_data(f"leaf{i}", f"spine{j}")) == 1 for i in (1, 2, 3) for j in (1, 4)
    )
    ports = topology.ports_of("leaf2")
    assert [f"h{n}" for n in range(6, 11)] == [ports[port].name for port in range(1, 6)]
    assert ["spine1", "spine2", "spine3", "spine4"] == [ports[port].name for port in range(6, 10)]
    assert {(10_000_000_000, 2_000)} == {(peer.rate_bps, peer.delay_ns) for peer in ports.values()}
    assert topology.ports_of("spine3")[2].name == "leaf2"
    assert topology.ports_of("spine3")[2].port == 8
    assert max_switches_on_path(topology) == 3


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree(k: int) -> None:
    """A fat tree of k-port switches has k³/4 hosts, 5k²/4 switches, and uses every port."""
    topology = parse_topology(f"fat-tree:k={k}")
    assert k**3 // 4 == len(topology.hosts)
    roles = Counter(switch.role for switch in topology.switches)
    assert {"edge": k * k // 2, "agg": k * k // 2, "core": k * k // 4} == roles
    assert {k} == {len(topology.ports_of(switch.name)) for switch in topology.switches}
    assert nx.diameter(graph(topology)) == 4
    assert max_switches_on_path(topology) == 5


def test_fat_tree_of_the_paper() -> None:
    """Flowcut §III-B1: 16 pods, 128 ToR, 128 aggregation, 64 core switches, 1024 hosts; 2:1 halves ToR
    uplinks.
    """
    plain, tapered = parse_topology("fat-tree:k=16"), parse_topology("fat-tree:k=16,taper=2")
    assert {"edge": 128, "agg": 128, "core": 64} == Counter(s.role for s in plain.switches)
    assert 1024 == len(plain.hosts) == len(tapered.hosts)
    assert ({8}, {4}) == (degrees(plain, "edge"), degrees(tapered, "edge"))
    assert {16} == degrees(tapered, "agg")


def test_fat_tree_pods() -> None:
    """A core switch has one link to every pod, in the order of its ports."""
    topology = parse_topology("fat-tree:k=4")
    for core in (switch for switch in topology.switches if switch.role == "core"):
        peers = topology.ports_of(core.name)
        assert [0, 1, 2, 3] == [topology.switch(peers[port].name).group for port in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("words", "groups", "between", "links"),
    [
        ("p=1,a=2,h=1", 3, 1, {2}),
        ("p=2,a=4,h=2", 9, 1, {5}),
        ("p=1,a=6,h=3", 19, 1, {8}),
        ("p=3,a=1,h=2", 3, 1, {2}),
        ("p=16,a=16,h=3,groups=4", 4, 16, {18}),  # Flowcut §III-B1
        ("p=1,a=3,h=2,groups=5", 5, 1, {2, 4}),  # ports that cannot be shared out evenly stay free
        ("p=1,a=1,h=1,groups=1", 1, 0, {0}),
    ],
)
def test_dragonfly(words: str, groups: int, between: int, links: set[int]) -> None:
    """Groups of a routers with p hosts each are linked alike, and canonical ones once: a*h + 1 of them; within one
    all routers are linked.
    """
    topology = parse_topology(f"dragonfly:{words}")
    p, a = (int(word[2:]) for word in words.split(",")[:2])
    assert (a * groups, p * a * groups) == (len(topology.switches), len(topology.hosts))
    assert links == degrees(topology)
    joined = Counter(
        frozenset((topology.switch(link.a).group, topology.switch(link.b).group)) for link in topology.links
    )
    assert all(joined[frozenset((x, y))] == between for x in range(groups) for y in range(x))
    assert {a * (a - 1) // 2} == {joined[frozenset((x,))] for x in range(groups)}
    assert nx.diameter(graph(topology)) <= 3


def test_hoffman_singleton() -> None:
    """For q = 5 the Slim Fly is the Hoffman-Singleton graph: the only one with 50 nodes, degree 7 and girth
    5.
    """
    ours: nx.Graph[str] = nx.Graph(graph(parse_topology("slim-fly:q=5")))
    assert (50, {7}, 5) == (len(ours), {degree for _, degree in ours.degree()}, nx.girth(ours))


def test_slim_fly_hosts() -> None:
    """Unless p is given, a router has half as many hosts as links, rounded up."""
    assert 4 == len(parse_topology("slim-fly:q=5").hosts_of("r1_2_3"))
    assert 7 * 162 == len(parse_topology("slim-fly:p=7,q=9").hosts)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27, 32])
def test_galois_field(q: int) -> None:
    """A finite field is one: its tables are commutative groups, and products distribute over sums."""
    gf = field(q)
    everything = set(range(q))
    assert all(set(row) == everything for row in gf.add)
    assert all(set(row[1:]) == everything - {0} for row in gf.mul[1:])
    assert everything - {0} == set(gf.powers())
    some = sorted({0, 1, 2, q // 2, q - 2, q - 1} & everything)
    for a in some:
        assert (a, 0, a) == (gf.add[a][0], gf.add[a][gf.negative(a)], gf.mul[a][1])
        for b in some:
            assert gf.add[a][b] == gf.add[b][a]
            assert gf.mul[a][b] == gf.mul[b][a]
            for c in some:
                assert gf.mul[a][gf.add[b][c]] == gf.add[gf.mul[a][b]][gf.mul[a][c]]
                assert gf.mul[a][gf.mul[b][c]] == gf.mul[gf.mul[a][b]][c]


def test_prime_powers() -> None:
    """Powers of a prime are told from other numbers."""
    powers = {q: prime_power(q) for q in range(1, 33)}
    assert {1, 6, 10, 12, 14, 15, 18, 20, 21, 22, 24, 26, 28, 30} == {q for q in powers if powers[q] is None}
    assert ((2, 3), (3, 3), (31, 1)) == (powers[8], powers[27], powers[31])
    with pytest.raises(ValueError, match="6 is no power of a prime"):
        field(6)


@pytest.mark.parametrize("q", [5, 7, 8, 9, 11, 16, 19, 27])
def test_slim_fly_generators_are_symmetric(q: int) -> None:
    """The sets X and X' hold the negative of each of their elements, so that links have no direction."""
    gf = field(q)
    for chosen in generators(gf):
        assert chosen == {gf.negative(element) for element in chosen}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ring:n=3", "topology 'ring' is not known; expected dragonfly, fat-tree, leaf-spine, slim-fly"),
        ("leaf-spine:leafs=2", "unknown key 'leafs'; did you mean leaves?"),
        ("leaf-spine:leaves=2,local=1us", "unknown key 'local'; expected leaves, spines, hosts, restricted"),
        ("leaf-spine:leaves=0", "leaves must be at least 1"),
        ("leaf-spine:rate=0bps", "rate must be more than 0"),
        ("leaf-spine:hosts=254", "a switch can have 253 hosts, not 254"),
        ("leaf-spine:leaves=600", "port 507 of spine1 is not between 1 and 506"),
        ("fat-tree:k=3", "k must be even, found '3'"),
        ("fat-tree:k=8,taper=3", "taper must divide k/2 = 4, found '3'"),
        ("dragonfly:p=1,a=2,h=1,groups=4", "groups must be at most 3"),
        ("slim-fly:q=6", "q must be a power of a prime from 3 to 32"),
        ("slim-fly:q=2", "q must be at least 3"),
        ("slim-fly:q=64", "q must be at most 32"),
    ],
)
def test_refusals(words: str, message: str) -> None:
    """Impossible parameters are refused in one line that names the topology."""
    with pytest.raises(SpecError) as caught:
        parse_topology(words)
    assert message in str(caught.value)
    assert words.partition(":")[0] in str(caught.value)


@pytest.mark.parametrize(
    "words",
    ["dragonfly:p=1,a=4,h=3,groups=4", "dragonfly:p=1,a=2,h=5,groups=3", "dragonfly:p=1,a=3,h=2,groups=4"],
)
def test_dragonfly_global_links_are_shared_out(words: str) -> None:
    """The links between two groups are spread over their routers: none has two more of them than another."""
    topology = parse_topology(words)
    groups = {switch.group for switch in topology.switches}
    for a in groups:
        routers = [switch.name for switch in topology.switches if switch.group == a]
        for b in groups - {a}:
            counts = [
                sum(
                    topology.switch(peer.name).group == b
                    for peer in topology.ports_of(name).values()
                    if peer.kind == "switch"
                )
                for name in routers
            ]
            assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("q", some([q for q in range(3, 33) if prime_power(q) is not None], 2))
def test_slim_fly_structure(q: int) -> None:
    """For every prime power: 2q² routers of (3q - d)/2 links, q = 4w + d, diameter 2, and 2q groups of q routers, of
    which those of one kind have no link to each other and each two of different kinds have q.
    """
    topology = parse_topology(f"slim-fly:q={q},p=1")
    assert 2 * q * q == len(topology.switches) == len(topology.hosts)
    near: dict[str, int] = {switch.name: 0 for switch in topology.switches}
    bit = {switch.name: 1 << number for number, switch in enumerate(topology.switches)}
    between: Counter[tuple[int, int]] = Counter()
    for link in topology.links:
        near[link.a] |= bit[link.b]
        near[link.b] |= bit[link.a]
        a, b = sorted((topology.switch(link.a).group, topology.switch(link.b).group))
        between[a, b] += 1
    degree = (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2
    assert {degree} == {bin(mask).count("1") for mask in near.values()}
    everything = (1 << len(bit)) - 1
    neighbours = {name: [other for other in bit if mask & bit[other]] for name, mask in near.items()}
    # one router of each kind stands for all of it
    for name in ("r0_0_0", "r1_0_0"):
        reached = near[name] | bit[name]
        for other in neighbours[name]:
            reached |= near[other]
        assert reached == everything
    assert {q} == set(Counter(switch.group for switch in topology.switches).values())
    within = (degree - q) * q // 2
    for a in range(2 * q):
        for b in range(a, 2 * q):
            expected = within if a == b else q if a < q <= b else 0
            assert expected == between[a, b]


GROUPED = "rate=400Gbps,delay=7ns,local=25ns,global=500ns,host=9ns,latency=500ns"


@pytest.mark.parametrize("words", ["dragonfly:p=1,a=3,h=1", "slim-fly:p=1,q=3"])
def test_delays_by_where_links_lead(words: str) -> None:
    """Links within groups, between them and to hosts have delays of their own; `delay` unless given."""
    topology = parse_topology(f"{words},{GROUPED}")
    group = {switch.name: switch.group for switch in topology.switches}
    assert {(True, 25), (False, 500)} == {(group[li.a] == group[li.b], li.delay_ns) for li in topology.links}
    assert ({9}, 500) == ({host.delay_ns for host in topology.hosts}, topology.latency_ns)
    plain = parse_topology(f"{words},delay=7ns")
    assert {7} == {host.delay_ns for host in plain.hosts} | {link.delay_ns for link in plain.links}
    assert (0, {1000}) == (plain.latency_ns, {link.delay_ns for link in parse_topology(words).links})


@pytest.mark.parametrize(
    "words", ["leaf-spine:leaves=2", "fat-tree:k=4", "dragonfly:p=1,a=2,h=1", "slim-fly:q=3"]
)
def test_latency_of_switches(words: str) -> None:
    """Every topology takes it."""
    assert 300 == parse_topology(f"{words},latency=300ns").latency_ns
