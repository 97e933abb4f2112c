# SPDX-License-Identifier: Apache-2.0
"""Workloads: who sends to whom, how much and when."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import SOURCE_PORTS
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.ports import MORE_PORTS
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import SpecError
from tailrace.topology import Host, Topology, parse_topology

FABRIC = parse_topology("leaf-spine:leaves=3,spines=2,hosts=4")
DRAGONFLY = parse_topology("dragonfly:p=2,a=4,h=2")


def flows(words: str, topology: Topology = FABRIC, seed: int = 1) -> list[FlowSpec]:
    return parse_workload(words).traffic(topology, random.Random(seed)).flows


def test_permutation_sends_and_receives_once() -> None:
    """Every host sends one flow of the size asked for and receives one, never from itself."""
    made = flows("permutation:size=8MiB")
    assert {flow.src for flow in made} == {flow.dst for flow in made} == {host.ip for host in FABRIC.hosts}
    assert len(made) == len(FABRIC.hosts)
    assert all(flow.src != flow.dst and flow.bytes == 8 << 20 and flow.start_ns == 0 for flow in made)


def test_remote_permutation_leaves_the_switch() -> None:
    """With peers=remote no flow stays below one switch, even with two switches of equal size."""
    two = parse_topology("leaf-spine:leaves=2,spines=2,hosts=8")
    for seed in range(20):
        for flow in flows("permutation:peers=remote", two, seed):
            assert two.host_by_ip(flow.src).switch != two.host_by_ip(flow.dst).switch


def make_host(number: int, switch: int) -> Host:
    return Host(
        f"h{number}", number, f"10.0.0.{number}", f"02:00:0a:00:00:{number:02x}", f"s{switch}", number, 1, 0
    )


@settings(max_examples=200)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=24), st.integers(0, 1 << 30))
def test_permutation_exists_exactly_where_it_can(switches: list[int], seed: int) -> None:
    """For any spread of hosts: a permutation that leaves every group, unless a group holds more than half."""
    hosts = [make_host(number, switch) for number, switch in enumerate(switches, start=1)]
    partners = pairs.permutation(hosts, switches, random.Random(seed))
    if 2 * max(Counter(switches).values()) > len(hosts):
        assert partners is None
        return
    assert partners is not None
    assert (
        sorted(a.id for a, _ in partners) == sorted(b.id for _, b in partners) == [host.id for host in hosts]
    )
    assert all(a.switch != b.switch for a, b in partners)


def test_flows_in_total_are_dealt_round_the_hosts() -> None:
    """flows=30 on 12 hosts: each pair gets two or three flows, with ports of their own."""
    made = flows("permutation:flows=30")
    assert len(made) == 30
    assert set(Counter((flow.src, flow.dst) for flow in made).values()) == {2, 3}
    assert len({flow.qpn for flow in made}) == 30


def test_ports_of_a_pair_differ() -> None:
    """Two hosts with tens of thousands of flows: every port once, first those of RoCE, until none is left."""
    two = parse_topology("leaf-spine:leaves=2,spines=1,hosts=1")
    most = len(SOURCE_PORTS) + len(MORE_PORTS)
    made = flows(f"permutation:flows={2 * most}", two)
    assert len({(flow.src, flow.sport) for flow in made}) == len({flow.qpn for flow in made}) == len(made)
    assert all(flow.sport in SOURCE_PORTS for flow in made[: 2 * len(SOURCE_PORTS)])
    assert all(flow.sport in MORE_PORTS for flow in made[2 * len(SOURCE_PORTS) :])
    with pytest.raises(SpecError, match="workload permutation: more than 64512 flows from h"):
        flows(f"permutation:flows={2 * most + 1}", two)


def test_ports_of_a_file_are_not_drawn(tmp_path: Path) -> None:
    """A port that a file names is no other flow's, even if that one comes first."""
    path = tmp_path / "flows.csv"
    named = SOURCE_PORTS[1:]
    lines = ["h1,h5,1,0,", *(f"h1,h5,1,0,{port}" for port in named)]
    path.write_text("src,dst,bytes,start,sport\n" + "\n".join(lines) + "\n")
    assert [flow.sport for flow in flows(str(path))] == [SOURCE_PORTS[0], *named]


def test_all_to_all() -> None:
    """Every ordered pair once, and within a round each host sends once and receives once."""
    made = flows("alltoall:size=1KiB")
    hosts = {host.ip for host in FABRIC.hosts}
    assert {(flow.src, flow.dst) for flow in made} == {(a, b) for a in hosts for b in hosts if a != b}
    assert len(made) == len(hosts) * (len(hosts) - 1)
    first = made[: len(hosts)]
    assert {flow.src for flow in first} == {flow.dst for flow in first} == hosts


@pytest.mark.parametrize(
    "words",
    [
        "permutation:{}",
        "alltoall:{}",
        "alltoall:{},window=2",
        "incast:degree=8,{}",
        "random:flows=200,{}",
        "random:messages=5,{}",
        "poisson:load=0.5,duration=1ms,size=10KiB,{}",
    ],
)
@pytest.mark.parametrize("rule", ["cross=true", "peers=remote"])
def test_cross_fabric_rule(words: str, rule: str) -> None:
    """CONGA's rule: no flow stays below one switch; without it some do, in every workload with many flows."""
    crossing = {
        rule: [
            FABRIC.host_by_ip(flow.src).switch != FABRIC.host_by_ip(flow.dst).switch
            for flow in flows(words.format(rule))
        ]
        for rule in (rule, "peers=any")
    }
    assert all(crossing[rule])
    assert not all(crossing["peers=any"]) or words.startswith(("permutation", "incast"))


@pytest.mark.parametrize(
    "words", ["random:flows=5,cross=yes", "alltoall:cross=yes", "poisson:load=1,duration=1s,size=1,cross=yes"]
)
def test_cross_fabric_rule_needs_two_switches(words: str) -> None:
    """Below one switch nothing can cross the fabric."""
    single_switch = parse_topology("leaf-spine:leaves=1,spines=1,hosts=4")
    with pytest.raises(SpecError, match="all hosts are on one switch"):
        flows(words, single_switch)


def test_hosts_take_part() -> None:
    """hosts=5: so many, in both directions; another seed takes others."""
    made = flows("alltoall:hosts=5", seed=1)
    assert len(made) == 20
    assert len({flow.src for flow in made}) == len({flow.dst for flow in made}) == 5
    assert (
        len({frozenset(flow.src for flow in flows("alltoall:hosts=5", seed=seed)) for seed in range(5)}) > 1
    )


def test_random_with_jitter() -> None:
    """As many flows as asked for; starts within the jitter and not all the same."""
    made = flows("random:flows=50,jitter=1ms")
    assert [flow.id for flow in made] == list(range(1, 51))
    starts = {flow.start_ns for flow in made}
    assert len(starts) > 40
    assert max(starts) <= 1_000_000


def test_seed_decides() -> None:
    """The same seed gives the same flows, another one others; seed= in the words overrides the experiment's."""
    assert flows("permutation", seed=3) == flows("permutation", seed=3)
    assert flows("permutation", seed=3) != flows("permutation", seed=4)
    assert flows("permutation:seed=9", seed=3) == flows("permutation:seed=9", seed=4)
    assert all(flow.sport in SOURCE_PORTS for flow in flows("permutation"))


@pytest.mark.parametrize(
    "words",
    [
        "permutation:cdf=websearch,jitter=1us",
        "alltoall:window=2",
        "random:cdf=hadoop,messages=3",
        "poisson:cdf=alibaba,load=0.3,duration=1ms",
        "allreduce:hosts=4,algo=butterfly",
        "adversarial:size=1KiB",
        "congested-groups:free=1",
        "incast:degree=4,bystanders=20",
        "alltoall:hosts=8,background=1MiB",
        "poisson:size=10KB,load=1,duration=50us,senders=2",
    ],
)
def test_seed_decides_all(words: str) -> None:
    """Sizes, receivers, classes, times and who takes part follow from the seed; of the adversarial one the ports."""
    first, again, other = (
        parse_workload(words).traffic(DRAGONFLY, random.Random(seed)) for seed in (3, 3, 4)
    )
    assert first == again != other


def test_file(tmp_path: Path) -> None:
    """Hosts by name or address, sizes and times with units, ports where given."""
    path = tmp_path / "flows.csv"
    path.write_text(f"src,dst,bytes,start,sport\nh1,h5,64KiB,10us,5000\n{FABRIC.host('h2').ip}, h3,100,7,\n")
    first, second = flows(str(path))
    assert (first.src, first.dst) == (FABRIC.host("h1").ip, FABRIC.host("h5").ip)
    assert (first.bytes, first.start_ns, first.sport) == (65536, 10_000, 5000)
    assert (second.bytes, second.start_ns) == (100, 7)
    assert second.sport in SOURCE_PORTS


def test_file_with_waiting_flows(tmp_path: Path) -> None:
    """A flow waits for one that its sender receives and for one that it sends, wherever they are in the file."""
    path = tmp_path / "flows.csv"
    path.write_text("src,dst,bytes,start,after\nh1,h5,1,0,2 3\nh5,h1,1,0,\nh1,h6,1,0,\n")
    assert [flow.after for flow in flows(str(path))] == [(2, 3), (), ()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("permutation:window=8", "workload permutation: unknown key 'window'; expected flows, jitter, size"),
        ("incast", "workload incast: key 'degree' is missing"),
        ("incast:degree=12", "workload incast: degree must be at most 11, the number of hosts"),
        ("incast:degree=9,cross=on", "degree must be at most 8, the number of hosts"),
        ("permutation:peers=any,cross=on", "workload permutation: peers= and cross= contradict each other"),
        ("permutation:size=1,cdf=hadoop", "workload permutation: expected either size= or cdf="),
        ("permutation:most=1", "workload permutation: most may only be given together with cdf"),
        ("random:flows=1,messages=1", "workload random: expected either flows= or messages="),
        ("random:cdf=mystery", "cdf 'mystery' is not known; expected websearch, enterprise, alibaba"),
        ("alltoall:window=0", "workload alltoall: window must be at least 1, found '0'"),
        ("alltoall:hosts=13", "workload alltoall: hosts must be at most 12, the number of hosts"),
        ("poisson:load=1,duration=1ms", "workload poisson: expected either size= or cdf="),
        ("poisson:size=1,duration=1ms,load=1.1", "workload poisson: load must be at most 1, found '1.1'"),
        ("poisson:size=1GiB,duration=1ns,load=0.1", "workload poisson: no flow starts within"),
        ("allreduce:algo=star", "algo=star: expected ring, butterfly, halving"),
        ("allreduce:hosts=1", "workload allreduce: hosts must be at least 2, found '1'"),
        ("allreduce:algo=butterfly", "algo=butterfly needs hosts= to be a power of two, found 12"),
        ("allreduce:size=11", "workload allreduce: size must be at least 12, a byte per host, found 11"),
        ("permutation:size=5GiB", "workload permutation: flow 1: bytes is 5368709120,"),
    ],
)
def test_bad_words(words: str, message: str) -> None:
    """One line that says what is wrong and what was expected."""
    with pytest.raises(SpecError) as caught:
        flows(words)
    assert message in str(caught.value)


def test_topology_that_cannot_carry_it() -> None:
    """One host, or no other switch, is named as the reason."""
    single_host = parse_topology("leaf-spine:leaves=1,spines=1,hosts=1")
    with pytest.raises(SpecError, match="the topology has fewer than two hosts"):
        flows("permutation", single_host)
    four = parse_topology("leaf-spine:leaves=1,spines=1,hosts=4")
    with pytest.raises(SpecError, match="no switch has more than half of the hosts"):
        flows("permutation:peers=remote", four)
