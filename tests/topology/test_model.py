# SPDX-License-Identifier: Apache-2.0
"""Look-ups, addresses and checks of a topology."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from tailrace.spec import SpecError
from tailrace.topology import GATEWAY_MAC, Host, Link, Switch, Topology, parse_topology

FAMILIES = (
    "leaf-spine",
    "fat-tree:k=4",
    "dragonfly:p=2,a=4,h=2",
    "slim-fly:q=5",
    "leaf-spine:leaves=300,hosts=1",
)


@pytest.mark.parametrize("words", FAMILIES)
def test_addresses(words: str) -> None:
    """Each leaf has a /24 of its own with all its hosts; MAC addresses hold the address; nobody is the
    gateway.
    """
    topology = parse_topology(words)
    prefixes = [prefix for leaf in topology.leaves for prefix in topology.prefixes_of(leaf)]
    assert len(topology.leaves) == len(prefixes) == len(set(prefixes))
    for leaf, prefix in zip(topology.leaves, prefixes, strict=True):
        assert (prefix,) == topology.prefixes_of(leaf)
        assert prefix.prefixlen == 24
        assert prefix.subnet_of(IPv4Network("10.0.0.0/8"))
        for host in topology.hosts_of(leaf):
            assert IPv4Address(host.ip) in prefix
            octets = bytes(int(part, 16) for part in host.mac.split(":"))
            assert b"\x02\x00" + IPv4Address(host.ip).packed == octets
            assert host.mac != GATEWAY_MAC
            assert host is topology.host_by_ip(host.ip)


@pytest.mark.parametrize("words", FAMILIES)
def test_ports_mirror(words: str) -> None:
    """What is on a port of a switch has that switch on its own port, with the same rate and delay."""
    topology = parse_topology(words)
    for switch in topology.switches:
        hosts = topology.hosts_of(switch.name)
        assert list(range(1, len(hosts) + 1)) == [host.port for host in hosts]
        for port, peer in topology.ports_of(switch.name).items():
            if peer.kind == "host":
                host = topology.host(peer.name)
                assert (switch.name, port) == (host.switch, host.port)
            else:
                back = topology.ports_of(peer.name)[peer.port]
                assert (switch.name, port) == (back.name, back.port)
                assert (peer.rate_bps, peer.delay_ns) == (back.rate_bps, back.delay_ns)


def test_ids_and_words() -> None:
    """Ids count from 1 in order, and the words make the same topology again."""
    topology = parse_topology("fat-tree:k=4,rate=1Gbps")
    assert list(range(1, 21)) == [switch.id for switch in topology.switches]
    assert list(range(1, 17)) == [host.id for host in topology.hosts]
    assert topology == parse_topology(topology.spec)
    assert topology.switch("core3").id == 19
    assert () == topology.prefixes_of("core3")


def small() -> Topology:
    switches = (Switch("s1", 1, "leaf"), Switch("s2", 2, "leaf"))
    hosts = (
        Host("h1", 1, "10.0.1.1", "02:00:00:00:00:01", "s1", 1, 1000, 0),
        Host("h2", 2, "10.0.2.1", "02:00:00:00:00:02", "s2", 1, 1000, 0),
    )
    return Topology("test", "test", switches, hosts, (Link("s1", 2, "s2", 2, 1000, 0),))


def test_checks() -> None:
    """A topology that cannot be is refused when it is made, in one line."""
    good = small()
    first, second = good.hosts
    link = good.links[0]
    cases: dict[str, dict[str, Any]] = {
        "not connected: there is no path from s1 to s2": {"links": ()},
        "there is no host": {"hosts": ()},
        "there is no switch": {"switches": ()},
        "name s1 is used 2 times": {"switches": (good.switches[0], replace(good.switches[1], name="s1"))},
        "switch id 1 is used 2 times": {"switches": (good.switches[0], replace(good.switches[1], id=1))},
        "address 10.0.1.1 is used 2 times": {"hosts": (first, replace(second, ip="10.0.1.1"))},
        "port 1 of s1 is linked to h1 and h2": {"hosts": (first, replace(second, switch="s1"))},
        "h2 is linked to s9, which is no switch": {"hosts": (first, replace(second, switch="s9"))},
        "the rate of the link s1-h1 must be more than 0": {"hosts": (replace(first, rate_bps=0), second)},
        "the rate of the link s1-s2 must be more than 0": {"links": (replace(link, rate_bps=0),)},
        "the delay of the link s1-s2 must not be negative": {"links": (replace(link, delay_ns=-1),)},
        "port 0 of s1 is not between 1 and 506": {"hosts": (replace(first, port=0), second)},
        "port 507 of s1 is not between 1 and 506": {"links": (replace(link, a_port=507),)},
        "a link joins s1 to itself": {"links": (link, replace(link, b="s1", b_port=3, a_port=4))},
        "h2: 'x' is no IPv4 address": {"hosts": (first, replace(second, ip="x"))},
    }
    for message, change in cases.items():
        with pytest.raises(SpecError) as caught:
            replace(good, **change)
        assert f"topology test: {message}" == str(caught.value)


def test_prefixes_of_mixed_addresses() -> None:
    """Where two switches have hosts in one /24, routes name single hosts; so no prefix covers a host
    elsewhere.
    """
    good = small()
    first, second = good.hosts
    third = replace(second, name="h3", id=3, ip="10.0.1.9", mac="02:00:00:00:00:03", port=3)
    topology = replace(good, hosts=(first, second, third))
    assert (IPv4Network("10.0.1.1/32"),) == topology.prefixes_of("s1")
    assert (IPv4Network("10.0.1.9/32"), IPv4Network("10.0.2.0/24")) == topology.prefixes_of("s2")
