# SPDX-License-Identifier: Apache-2.0
"""Ideal completion times: by hand, and against a packet-by-packet calculation."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.sizes import HEADER_BYTES, wire_bytes
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.sim.ideal import Ideal, LinkHop
from tailrace.topology import Host, Link, Switch, Topology, parse_topology

RETH_BYTES = 16  # InfiniBand architecture, table 9-4: address 8, key 4, length 4


def chain(rates_bps: list[int], delays_ns: list[int]) -> Topology:
    """Two hosts at the ends of a chain of switches with these links."""
    switches = tuple(Switch(f"s{n}", n, "router") for n in range(1, len(rates_bps)))
    first = Host("h1", 1, "10.0.0.2", "02:00:0a:00:00:02", "s1", 1, rates_bps[0], delays_ns[0])
    last = Host("h2", 2, "10.0.1.2", "02:00:0a:00:01:02", switches[-1].name, 2, rates_bps[-1], delays_ns[-1])
    links = tuple(
        Link(f"s{n}", 3, f"s{n + 1}", 4, rates_bps[n], delays_ns[n]) for n in range(1, len(rates_bps) - 1)
    )
    return Topology("chain", "chain", switches, (first, last), links)


def flow_of(size_bytes: int) -> FlowSpec:
    return FlowSpec(1, "10.0.0.2", "10.0.1.2", size_bytes, 0, 7, 9)


def stepwise_ns(rates_bps: list[int], delays_ns: list[int], packets: list[int]) -> Fraction:
    """When the last packet has arrived: each link starts a packet when it has it whole and is free."""
    free = [Fraction(0)] * len(rates_bps)
    arrived = Fraction(0)
    for size in packets:
        arrived = Fraction(0)
        for j, (rate, delay) in enumerate(zip(rates_bps, delays_ns, strict=True)):
            free[j] = max(free[j], arrived) + Fraction(size * 8 * 10**9, rate)
            arrived = free[j] + delay
    return arrived


def packets_of(size_bytes: int, mtu_bytes: int) -> list[int]:
    payloads = [mtu_bytes] * (size_bytes // mtu_bytes) + [size_bytes % mtu_bytes] * (
        size_bytes % mtu_bytes > 0
    )
    sizes = [-(-payload // 4) * 4 + HEADER_BYTES for payload in payloads]
    sizes[0] += RETH_BYTES
    return sizes


def test_by_hand() -> None:
    """One packet of 1000 bytes over three links of 1 Gb/s and 1 us: three times 8 ns a byte, and 3 us."""
    flow = flow_of(1000)
    assert HEADER_BYTES == 14 + 20 + 8 + 12 + 4
    hops, bytes_on_wire = 3, 1000 + HEADER_BYTES
    expected = hops * bytes_on_wire * 8 + RETH_BYTES * 8 + hops * 1000
    assert Ideal(chain([10**9] * 3, [1000] * 3), 1024).fct_ns(flow) == expected


def test_wire_bytes() -> None:
    """Headers for each packet, RETH for the first, payload padded to four bytes."""
    assert wire_bytes(2048, 1024) == (2048 + 2 * HEADER_BYTES + RETH_BYTES, 1024 + HEADER_BYTES)
    assert wire_bytes(2049, 1024) == (2052 + 3 * HEADER_BYTES + RETH_BYTES, 1024 + HEADER_BYTES)
    assert wire_bytes(5, 1024) == (8 + HEADER_BYTES + RETH_BYTES, 8 + HEADER_BYTES)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(10**6, 10**11), st.integers(0, 10**6)), min_size=2, max_size=7),
    st.integers(1, 40_000),
)
def test_within_one_packet_of_the_exact_time(links: list[tuple[int, int]], size_bytes: int) -> None:
    """For any rates and delays the formula is within one packet's time at the slowest link."""
    rates, delays = [rate for rate, _ in links], [delay for _, delay in links]
    packets = packets_of(size_bytes, 1024)
    exact = stepwise_ns(rates, delays, packets)
    ideal = Ideal(chain(rates, delays), 1024).fct_ns(flow_of(size_bytes))
    assert abs(ideal - exact) <= Fraction(max(packets) * 8 * 10**9, min(rates)) + 1


def test_paths() -> None:
    """Two links below one switch, four across a spine, six across the core of a fat tree."""
    leaf_spine, fat_tree = (
        parse_topology("leaf-spine:leaves=2,spines=4,hosts=2"),
        parse_topology("fat-tree:k=4"),
    )
    assert len(Ideal(leaf_spine, 1024).path(leaf_spine.hosts[0], leaf_spine.hosts[1])) == 2
    assert len(Ideal(leaf_spine, 1024).path(leaf_spine.hosts[0], leaf_spine.hosts[-1])) == 4
    assert len(Ideal(fat_tree, 1024).path(fat_tree.hosts[0], fat_tree.hosts[-1])) == 6


def test_widest_of_the_shortest_paths() -> None:
    """Of two parallel paths of equal length the one without the narrow link counts."""
    switches = tuple(
        Switch(name, number, "router") for number, name in enumerate(("a", "b", "c", "d"), start=1)
    )
    hosts = (
        Host("h1", 1, "10.0.0.2", "02:00:0a:00:00:02", "a", 1, 100, 0),
        Host("h2", 2, "10.0.1.2", "02:00:0a:00:01:02", "d", 1, 100, 0),
    )
    links = (
        Link("a", 2, "b", 1, 100, 0),
        Link("b", 2, "d", 2, 10, 0),
        Link("a", 3, "c", 1, 50, 7),
        Link("c", 2, "d", 3, 50, 7),
    )
    topology = Topology("diamond", "diamond", switches, hosts, links)
    path = Ideal(topology, 1024).path(*hosts)
    assert path == (LinkHop(100, 0), LinkHop(50, 7), LinkHop(50, 7), LinkHop(100, 0))
