# SPDX-License-Identifier: Apache-2.0
"""What a host can win by pauses: under every scheme with PFC, a pair beside it loses no more than beside plain data.

h1 --- leaf1 === spines === leaf2 --- h4, which pauses its port while h1 sends to it
h2 ---+                          +--- h5, to which h2 sends
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from tailrace.controller.reconcile import install_all
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import SWITCH_CONFIG, Network
from tailrace.spec.watchdog import NO_WATCHDOG
from tailrace.switch.core import PfcConfig
from tailrace.topology import Topology, parse_topology
from tests.long import some
from tests.schemes.planned import intent
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, packet
from tests.sim.network.obeying import ObeyingNic
from tests.sim.network.test_watchdog import ATTACKS, END_NS, HARMLESS, RATE_BPS, XOFF, Script

LEAST_SHARE = 0.9
SIZE = 1500
TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=2,hosts=3,rate=10Gbps,delay=1us")
ONE_WAY = parse_topology("leaf-spine:leaves=2,spines=1,hosts=3,rate=10Gbps,delay=1us")
"""In which both pairs share a link, whatever a hash says."""

SENDER, VICTIM, ATTACKER, RECEIVER = "h1", "h2", "h4", "h5"
SCHEMES = (
    "ecmp",
    "spray",
    "letflow",
    "presto",
    "drill",
    "hermes",
    "flowcut",
    f"rlb:variant=drill,pfc={XOFF},flows=1",
    f"rlb:variant=letflow,pfc={XOFF},flows=1",
)
WORST = ("once", "at line rate", "just below detection", "a frame at a time")
PFC = PfcConfig((0,), XOFF, XOFF // 2, 60_000)


@contextmanager
def _network(scheme: str, topology: Topology, pfc: PfcConfig) -> Iterator[Network]:
    config = replace(SWITCH_CONFIG, pfc=pfc, recirc_rate_bps=RATE_BPS)
    with Network(topology, config=config) as network:
        intents = intent(topology, parse_scheme(scheme), target("virtual"))
        install_all(network.p4rt, intents)
        yield network


def _data(source: str, destination: str) -> Frame:
    # TCP, as far as programs look
    head = bytearray(packet(TOPOLOGY, source, destination, bytes(20)))
    return Frame(bytes(head), virtual_bytes=SIZE - OVERHEAD_BYTES - 20)


def _arrived(
    scheme: str, attack: Script, topology: Topology = TOPOLOGY, pfc: PfcConfig = PFC
) -> tuple[int, dict[str, int]]:
    """What the victim's receiver got, and what the attacker's switch dropped."""
    frames = END_NS * RATE_BPS // (8 * SIZE * 10**9)
    with _network(scheme, topology, pfc) as network:
        nics = {host.name: ObeyingNic(rate_bps=host.rate_bps) for host in topology.hosts}
        for name, nic in nics.items():
            network.attach(name, nic)
        nics[SENDER].script = [(0, _data(SENDER, ATTACKER))] * frames
        nics[VICTIM].script = [(0, _data(VICTIM, RECEIVER))] * frames
        nics[ATTACKER].script = list(attack)
        network.advance_to(END_NS)
        assert network.account().balanced
        drops = network.switch(topology.host(ATTACKER).switch).drops()
        return len(nics[RECEIVER].arrived), drops


@functools.cache
def _due(scheme: str, topology: Topology = TOPOLOGY) -> int:
    """The same beside plain data of the attacker."""
    frames = END_NS * RATE_BPS // (8 * SIZE * 10**9)
    arrived, drops = _arrived(scheme, [(0, _data(ATTACKER, SENDER))] * frames, topology)
    assert "pfc_storm" not in drops
    assert arrived > 500, "the victim gets its share beside plain data"
    return arrived


@pytest.mark.parametrize("scheme", some(SCHEMES, 2))
def test_pauses_take_no_more_than_plain_data(scheme: str) -> None:
    """Each of the patterns that hold a queue the longest."""
    for name in WORST:
        arrived, drops = _arrived(scheme, ATTACKS[name])
        assert arrived >= LEAST_SHARE * _due(scheme), name
        assert drops["pfc_storm"] > 0, name


@pytest.mark.parametrize("name", [*ATTACKS, *HARMLESS])
def test_every_pattern(name: str) -> None:
    """Under one scheme all of them."""
    arrived, _ = _arrived("ecmp", (ATTACKS | HARMLESS)[name], ONE_WAY)
    assert arrived >= LEAST_SHARE * _due("ecmp", ONE_WAY)


def test_the_comparison_sees_what_is_there() -> None:
    """Without a watchdog one frame is enough."""
    arrived, _ = _arrived("ecmp", ATTACKS["once"], ONE_WAY, replace(PFC, watchdog=NO_WATCHDOG))
    assert arrived < 0.5 * _due("ecmp", ONE_WAY)
