# SPDX-License-Identifier: Apache-2.0
"""What hosts may say: the addresses of their ports, and the rates of control packets."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from tailrace.p4rt import programs
from tailrace.p4rt.canonical import canonical
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.entities import P4TableEntry
from tailrace.p4rt.target import target
from tailrace.schemes.blocks.limits import HOST_BURST_BYTES, PORT_BURST_BYTES
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import parse_topology
from tests.schemes.planned import intent
from tests.schemes.walker import Tables

VIRTUAL = target("virtual")
FABRIC = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps")
BYTES_PER_S = 10_000_000_000 // 8
_LIMITS = {"host_limits", "port_limits", "trim_limits"}


def tables(scheme: str, switch: str = "leaf1", words: str = "") -> Tables:
    """What a switch is to hold."""
    topology = parse_topology(words) if words else FABRIC
    return Tables(intent(topology, parse_scheme(scheme), VIRTUAL)[switch])


def test_hosts_send_with_their_own_addresses() -> None:
    """One entry a host, at its port; no port of a spine is guarded."""
    leaf, spine = tables("ecmp"), tables("ecmp", "spine1")
    assert leaf.guarded == {host.port for host in FABRIC.hosts_of("leaf1")}
    assert leaf.addresses == {(host.port, host.ip) for host in FABRIC.hosts_of("leaf1")}
    assert (spine.guarded, spine.addresses) == (set(), set())


def test_no_guard() -> None:
    """Where the scheme has none, host ports are what the program takes a port without an entry for."""
    leaf = tables("ecmp:guard=no")
    assert (leaf.guarded, leaf.addresses) == (set(), set())
    assert leaf.roles == tables("ecmp").roles


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [
        ("ecmp", 0.07, 0.1),
        ("flowcut", 0.07, 0.1),
        ("flowcut:variant=nic", 0.14, 0.2),
        ("letflow:control=0.35", 0.35, 0.5),
        ("rlb:control=1", 1.0, 10 / 7),
    ],
)
def test_rates(scheme: str, host: float, port: float) -> None:
    """By the share of each link; a packet is within both rates or above both."""
    for switch, ports in (("leaf1", (1, 2, 3, 4)), ("spine1", (1, 2))):
        limits = tables(scheme, switch).limits
        hosts = {item.port for item in FABRIC.hosts_of(switch)} if switch == "leaf1" else set()
        assert {n for table, n in limits if table == "host_limits"} == hosts
        assert {n for table, n in limits if table == "port_limits"} == set(ports)
        for (table, _), meter in limits.items():
            share = host if table == "host_limits" else port
            assert (meter.cir, meter.cburst) == (meter.pir, meter.pburst)
            assert -1 < meter.cir - share * BYTES_PER_S < 15_626
            assert meter.cburst == (HOST_BURST_BYTES if table == "host_limits" else PORT_BURST_BYTES)
            # simple_switch keeps bytes/us in binary, and gives that back cut off to whole bytes/s
            assert int(meter.cir / 1_000_000 * 1_000_000.0) == meter.cir


def test_slow_links_have_slow_limits() -> None:
    """The rate is that of the port itself, and never 0."""
    slow = tables("ecmp", words="leaf-spine:leaves=2,spines=2,hosts=2,rate=1Mbps").limits
    assert {meter.cir for meter in slow.values()} == {15_625}


def test_no_limits() -> None:
    """A share of 0 is none."""
    assert tables("ecmp:control=0").limits == {}


def test_trimming_has_a_limit() -> None:
    """Where the program trims, of every port."""
    topology = "dragonfly:p=1,a=2,h=2,groups=3"
    limits = tables("spritz", "r1_1", topology).limits
    assert {table for table, _ in limits} == _LIMITS
    for (table, port), meter in limits.items():
        if table == "trim_limits":
            assert abs(4 * meter.cir - limits["port_limits", port].cir) <= 4 * 15_625


def test_rates_are_compared() -> None:
    """An entry with another rate is another entry; two that say the same are alike, whoever made them."""
    program = programs.load("ecmp")

    def entity(share: str) -> p4r.Entity:
        entities = intent(FABRIC, parse_scheme(f"ecmp:control={share}"), VIRTUAL)["leaf1"].entities
        (wanted,) = (
            item
            for item in entities
            if isinstance(item, P4TableEntry)
            and item.table_id == "host_limits"
            and item.match is not None
            and item.match["ingress_port"] == 1
        )
        (message,) = encode(program, [wanted])
        return message

    (key, value), (other_key, other_value) = canonical(entity("0.1")), canonical(entity("0.2"))
    assert key == other_key
    assert value != other_value
    assert canonical(entity("0.1")) == (key, value)
