# SPDX-License-Identifier: Apache-2.0
"""The workloads of Spritz's evaluation: adversarial, one flow among congested groups, incast with bystanders,
collectives in a shared network, permutations between groups.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tailrace.experiments.workloads.adversarial import chains
from tailrace.experiments.workloads.classes import BACKGROUND, BYSTANDER, INCAST, MONITORED
from tailrace.experiments.workloads.congested_groups import gates
from tailrace.experiments.workloads.workload import Traffic, parse_workload
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import SpecError
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.shortest import next_hops

DRAGONFLY = parse_topology("dragonfly:p=2,a=4,h=2")
SLIM_FLY = parse_topology("slim-fly:p=2,q=5")


def traffic(words: str, topology: Topology = DRAGONFLY, seed: int = 1) -> Traffic:
    return parse_workload(words).traffic(topology, random.Random(seed))


def by_class(generated: Traffic) -> dict[str, list[FlowSpec]]:
    groups: dict[str, list[FlowSpec]] = {}
    for flow in generated.flows:
        groups.setdefault(generated.classes.get(flow.id, ""), []).append(flow)
    return groups


def group_of(topology: Topology, ip: str) -> int:
    return topology.switch(topology.host_by_ip(ip).switch).group


def is_permutation(flows: list[FlowSpec]) -> bool:
    return len({flow.src for flow in flows}) == len({flow.dst for flow in flows}) == len(flows)


@pytest.mark.parametrize("topology", [DRAGONFLY, SLIM_FLY])
def test_permutation_between_groups(topology: Topology) -> None:
    """With peers=group every host sends into another group."""
    flows = traffic("permutation:peers=group", topology).flows
    assert is_permutation(flows)
    assert len(flows) == len(topology.hosts)
    assert all(group_of(topology, flow.src) != group_of(topology, flow.dst) for flow in flows)


def test_groups_are_needed() -> None:
    """A leaf-spine has none, and one group cannot send to another."""
    with pytest.raises(SpecError, match="workload permutation: peers=group: the topology has no groups"):
        traffic("permutation:peers=group", parse_topology("leaf-spine:leaves=2,spines=1,hosts=2"))
    with pytest.raises(SpecError, match="peers=group needs a topology in which no group has more than half"):
        traffic("permutation:peers=group", parse_topology("dragonfly:p=2,a=2,h=1,groups=1"))


def test_adversarial_dragonfly() -> None:
    """Each host sends to its own place in the next group, so a group's traffic shares the link to that one."""
    flows = traffic("adversarial:size=4KiB").flows
    assert is_permutation(flows)
    assert len(flows) == len(DRAGONFLY.hosts)
    for flow in flows:
        assert group_of(DRAGONFLY, flow.dst) == (group_of(DRAGONFLY, flow.src) + 1) % 9
        source, target = DRAGONFLY.host_by_ip(flow.src), DRAGONFLY.host_by_ip(flow.dst)
        assert source.switch.partition("_")[2] == target.switch.partition("_")[2]
        assert source.port == target.port


@pytest.mark.parametrize("shift", [2, 5, 8])
def test_adversarial_dragonfly_some_groups_on(shift: int) -> None:
    """shift= groups on (5 in the file of Spritz's authors), around the ring of groups."""
    flows = traffic(f"adversarial:size=4KiB,shift={shift}").flows
    assert is_permutation(flows)
    distances = {(group_of(DRAGONFLY, flow.dst) - group_of(DRAGONFLY, flow.src)) % 9 for flow in flows}
    assert distances == {shift}


def test_adversarial_slim_fly_of_half_the_hosts() -> None:
    """pattern=fans: half of the hosts send, none twice, to other groups; a link carries flows of p routers."""
    flows = traffic("adversarial:size=4KiB,pattern=fans", SLIM_FLY).flows
    senders, receivers = {flow.src for flow in flows}, {flow.dst for flow in flows}
    assert len(senders) == len(receivers) == len(flows)
    assert not senders & receivers
    assert len(flows) >= 0.48 * len(SLIM_FLY.hosts)
    assert all(group_of(SLIM_FLY, flow.src) != group_of(SLIM_FLY, flow.dst) for flow in flows)
    hops = next_hops(SLIM_FLY)
    routers = [[SLIM_FLY.host_by_ip(ip).switch for ip in (flow.src, flow.dst)] for flow in flows]
    assert all(len(hops[a][b]) == 1 and SLIM_FLY.ports_of(a)[hops[a][b][0]].name != b for a, b in routers)
    loads = minimal_loads(SLIM_FLY, flows)
    # hosts of a router receive over one link, or over few
    assert sum(load == 2 for load in loads.values()) >= len(SLIM_FLY.switches) / 4


@pytest.mark.parametrize(
    ("words", "topology", "message"),
    [
        ("adversarial:shift=9", DRAGONFLY, "shift must be less than 9, the number of groups, found 9"),
        ("adversarial:shift=2", SLIM_FLY, "shift=2 needs a dragonfly, found a slim-fly"),
        ("adversarial:pattern=fans", DRAGONFLY, "pattern=fans needs a slim-fly, found a dragonfly"),
    ],
)
def test_adversarial_keys_of_another_network(words: str, topology: Topology, message: str) -> None:
    with pytest.raises(SpecError, match=f"workload adversarial: {message}"):
        traffic(words, topology)


@pytest.mark.parametrize("words", ["allreduce:size=1MiB", "alltoall:window=4"])
def test_ranks_in_random_order(words: str) -> None:
    """The same hosts take part; few messages stay in a group, where in the order of hosts many do."""
    local = []
    for order in ("", ",order=random"):
        flows = traffic(f"{words},hosts=32{order}").flows
        ring = flows[:32]  # step 1 of a ring, and the first round of an all-to-all: to the next rank
        assert is_permutation(ring)
        local.append(sum(group_of(DRAGONFLY, flow.src) == group_of(DRAGONFLY, flow.dst) for flow in ring))
    assert local[0] >= 16
    assert local[1] <= 8


def minimal_loads(topology: Topology, flows: list[FlowSpec]) -> Counter[tuple[str, str]]:
    """How many flows cross each link, in each direction, where there is one shortest path."""
    hops = next_hops(topology)
    loads: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        here, there = (topology.host_by_ip(ip).switch for ip in (flow.src, flow.dst))
        while here != there:
            peer = topology.ports_of(here)[hops[here][there][0]].name
            loads[here, peer] += 1
            here = peer
    return loads


def test_adversarial_slim_fly_shares_links() -> None:
    """In each chain the middle link carries the traffic of two routers both ways: twice as much as another."""
    flows = traffic("adversarial:size=4KiB", SLIM_FLY).flows
    assert is_permutation(flows)
    assert len(flows) == len(SLIM_FLY.hosts)
    made, left = chains(SLIM_FLY, random.Random(1))
    assert len(left) <= 6
    assert 4 * len(made) + len(left) == len(SLIM_FLY.switches)
    near = {frozenset((link.a, link.b)) for link in SLIM_FLY.links}
    hops = next_hops(SLIM_FLY)
    for a, x, y, b in made:
        assert {frozenset(pair) for pair in ((a, x), (x, y), (y, b))} <= near
        assert not {frozenset((a, y)), frozenset((x, b))} & near
        assert all(len(hops[start][end]) == 1 for start, end in ((a, y), (y, a), (x, b), (b, x)))
    loads = minimal_loads(SLIM_FLY, flows)
    doubled = sum(load >= 4 for load in loads.values())
    assert doubled >= 2 * len(made)
    assert max(loads.values()) >= 4


def test_adversarial_needs_a_low_diameter() -> None:
    """Elsewhere nobody has said what it is."""
    with pytest.raises(SpecError, match="exists for a dragonfly and for a slim-fly, not for a fat-tree"):
        traffic("adversarial:size=1KiB", parse_topology("fat-tree:k=4"))
    with pytest.raises(SpecError, match="workload adversarial: all hosts are in one group"):
        traffic("adversarial:size=1KiB", parse_topology("dragonfly:p=2,a=2,h=1,groups=1"))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("free", [0, 2, 7])
def test_congested_groups(free: int, seed: int) -> None:
    """One flow between groups; load within all others but the free ones, on the gate to the destination."""
    generated = traffic(f"congested-groups:size=1MiB,free={free},background=8MiB,flows=3", seed=seed)
    groups = by_class(generated)
    (monitored,) = groups.pop(MONITORED)
    (background,) = groups.values()
    assert generated.flows[0] is monitored
    assert monitored.bytes == 1 << 20
    start, end = group_of(DRAGONFLY, monitored.src), group_of(DRAGONFLY, monitored.dst)
    loaded = {group_of(DRAGONFLY, flow.src) for flow in background}
    assert start != end
    assert start in loaded
    assert end not in loaded
    assert len(loaded) == 9 - 1 - free
    for flow in background:
        group = group_of(DRAGONFLY, flow.src)
        source, target = DRAGONFLY.host_by_ip(flow.src), DRAGONFLY.host_by_ip(flow.dst)
        assert group_of(DRAGONFLY, flow.dst) == group
        assert target.switch in gates(DRAGONFLY, group, end)
        assert source.switch not in gates(DRAGONFLY, group, end)
        assert (flow.bytes, flow.steering) == (8 << 20, "ecmp")
        assert flow.src != monitored.src
    assert set(Counter((flow.src, flow.dst) for flow in background).values()) == {3}
    assert DRAGONFLY.host_by_ip(monitored.src).switch not in gates(DRAGONFLY, start, end)
    assert DRAGONFLY.host_by_ip(monitored.dst).switch not in gates(DRAGONFLY, end, start)


@pytest.mark.parametrize("seed", range(3))
def test_congested_groups_from_all_groups(seed: int) -> None:
    """Every host of a congested group sends to one on a gate, each of which hears from about as many."""
    groups = by_class(traffic("congested-groups:free=2,flows=3,from=all", seed=seed))
    (monitored,), background = groups[MONITORED], groups[BACKGROUND]
    start, end = group_of(DRAGONFLY, monitored.src), group_of(DRAGONFLY, monitored.dst)
    loaded = {group_of(DRAGONFLY, flow.dst) for flow in background}
    assert start in loaded
    assert end not in loaded
    assert len(loaded) == 6
    sent, heard = (Counter(getattr(flow, key) for flow in background) for key in ("src", "dst"))
    hosts = {host.ip for host in DRAGONFLY.hosts if DRAGONFLY.switch(host.switch).group in loaded}
    assert set(sent) <= hosts - {monitored.src}
    assert max(sent.values()) == 3
    assert len(heard) == 6 * 2
    # 47 hosts send to 12 thrice, but for those that are dealt one of their own switch
    assert max(heard.values()) <= 3 * 4
    assert sum(heard.values()) > 3 * 47 * 0.8
    assert any(group_of(DRAGONFLY, flow.src) != group_of(DRAGONFLY, flow.dst) for flow in background)
    for flow in background:
        source, target = DRAGONFLY.host_by_ip(flow.src), DRAGONFLY.host_by_ip(flow.dst)
        assert source.switch != target.switch
        assert target.switch in gates(DRAGONFLY, group_of(DRAGONFLY, flow.dst), end)


def test_congested_groups_ahead_and_path() -> None:
    """The load comes first and steers as it is told; who sends to whom stays the same."""
    plain, other = (
        traffic(f"congested-groups:free=2,flows=2{more}") for more in ("", ",ahead=5us,path=scheme")
    )
    monitored, *background = other.flows
    assert monitored.start_ns == 5_000
    assert {(flow.start_ns, flow.steering) for flow in background} == {(0, "")}
    assert {(flow.start_ns, flow.steering) for flow in plain.flows[1:]} == {(0, "ecmp")}
    assert [(flow.src, flow.dst) for flow in plain.flows] == [(flow.src, flow.dst) for flow in other.flows]


@pytest.mark.parametrize(
    ("words", "topology", "message"),
    [
        ("congested-groups:free=8", DRAGONFLY, "free must be at most 7, to leave a group for the source"),
        (
            "congested-groups:free=1",
            SLIM_FLY,
            "expected a dragonfly, whose groups it loads, found a slim-fly",
        ),
        ("congested-groups:free=0", parse_topology("dragonfly:p=1,a=1,h=2"), "every switch of a group has"),
        ("incast:degree=3,to=h99,bystanders=2", DRAGONFLY, "the topology has no host 'h99'"),
        ("incast:degree=3,from=h99", DRAGONFLY, "the topology has no host 'h99'"),
        ("incast:degree=3,from=h71", DRAGONFLY, "the 3 hosts from h71 on cannot all send to"),
        ("incast:degree=3,from=h1,to=h2", DRAGONFLY, "the 3 hosts from h1 on cannot all send to h2"),
        (
            "incast:degree=3,bystanders=69",
            DRAGONFLY,
            "bystanders must be at most 68, the number of the other hosts",
        ),
        ("incast:degree=3,bystanders=1", DRAGONFLY, "bystanders must be at least 2"),
        ("allreduce:background=1MiB", DRAGONFLY, "there is no permutation of the 0 hosts that are left"),
        ("alltoall:hosts=71,background=1MiB", DRAGONFLY, "there is no permutation of the 1 hosts that are"),
    ],
)
def test_bad_words(words: str, topology: Topology, message: str) -> None:
    """One line that says what is wrong."""
    with pytest.raises(SpecError) as caught:
        traffic(words, topology)
    assert message in str(caught.value)


def test_incast_with_bystanders() -> None:
    """As in Fig. 8: the first hosts send to a named one, and all the rest form a permutation."""
    groups = by_class(traffic("incast:degree=8,size=4MiB,from=h1,to=h33,bystanders=63"))
    assert set(groups) == {INCAST, BYSTANDER}
    incast = groups[INCAST]
    assert [DRAGONFLY.host_by_ip(flow.src).name for flow in incast] == [f"h{n}" for n in range(1, 9)]
    assert {DRAGONFLY.host_by_ip(flow.dst).name for flow in incast} == {"h33"}
    bystanders = groups[BYSTANDER]
    assert is_permutation(bystanders)
    assert len(bystanders) == 63
    taken = {flow.src for flow in incast} | {incast[0].dst}
    assert not taken & {flow.src for flow in bystanders}


def test_incast_alone_has_no_classes() -> None:
    """Without bystanders there is nothing to tell apart."""
    assert traffic("incast:degree=8").classes == {}


@pytest.mark.parametrize("words", ["allreduce:algo=ring,size=1MiB,hosts=16", "alltoall:size=1KiB,hosts=16"])
def test_collective_in_a_shared_network(words: str) -> None:
    """All hosts that take no part form a permutation under ECMP; the collective is as without them."""
    groups = by_class(traffic(f"{words},background=1MiB"))
    background = groups.pop(BACKGROUND)
    (collective,) = groups.values()
    part = {flow.src for flow in collective}
    assert len(part) == 16
    assert is_permutation(background)
    assert {flow.src for flow in background} == {host.ip for host in DRAGONFLY.hosts} - part
    assert {(flow.bytes, flow.steering) for flow in background} == {(1 << 20, "ecmp")}
    assert {flow.steering for flow in collective} == {""}
    alone = traffic(words).flows
    assert [(flow.src, flow.dst, flow.after) for flow in alone] == [
        (flow.src, flow.dst, flow.after) for flow in collective
    ]


@pytest.mark.parametrize("senders", [1, 4])
def test_few_senders_to_a_receiver(senders: int) -> None:
    """A receiver's slots hold as many flows as it may have, each at its share of the link; few more at load 1."""
    words = "poisson:size=100KB,load=0.5,duration=2ms"
    fabric = parse_topology("dragonfly:p=2,a=4,h=2,rate=100Gbps")

    def most(flows: list[FlowSpec]) -> int:
        takes_ns = 8 * 100_000 // 100 * senders
        steps = [(flow.start_ns, 1, flow.dst) for flow in flows]
        steps += [(flow.start_ns + takes_ns, -1, flow.dst) for flow in flows]
        now: Counter[str] = Counter()
        peak = 0
        for _, change, receiver in sorted(steps):
            now[receiver] += change
            peak = max(peak, now[receiver])
        return peak

    limited, free = traffic(f"{words},senders={senders}", fabric).flows, traffic(words, fabric).flows
    assert most(limited) == senders
    assert most(free) > senders
    assert len(limited) == len(free)
