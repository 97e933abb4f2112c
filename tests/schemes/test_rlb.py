# SPDX-License-Identifier: Apache-2.0
"""RLB's words, the bounds of its thresholds (RLB §III-B.3), and what its switches hold."""

from __future__ import annotations

import pytest

from tailrace.p4rt import programs
from tailrace.p4rt.entities import P4CloneSessionEntry, P4MulticastGroupEntry
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.rlb.app import FIRST_RELAY, FIRST_SESSION, UPSTREAM_GROUP, next_hop_arguments
from tailrace.schemes.rlb.declaration import MOST_COUNTED, ResolvedRlb, RlbConfig, warn_bounds
from tailrace.topology import parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns
from tests.schemes.planned import default, intent, rows

PAPER = "leaf-spine:leaves=12,spines=12,hosts=2,rate=40Gbps,delay=2us"
SMALL = "leaf-spine:leaves=3,spines=2,hosts=2,rate=40Gbps,delay=2us"
IN_FLIGHT = 10_000  # dC: 40 Gbps for 2 us


def resolved(words: str, topology: str = PAPER) -> ResolvedRlb:
    config = resolve(parse_scheme(words), parse_topology(topology))
    assert isinstance(config, ResolvedRlb)
    return config


def test_words() -> None:
    """Every key has its place."""
    given = "rlb:variant=letflow,pfc=100KB,qth=20KB,dt=3us,flows=4,margin=9us,valid=50us,probe=1ms"
    config = parse_scheme(given + ",limit=fixed,most=3,fault=2,interval=7us,hold=80us,gap=5us,seed=9")
    assert config == RlbConfig(
        variant="letflow",
        pause_bytes=100_000,
        warn_bytes=20_000,
        dt_ns=3_000,
        flows=4,
        margin_ns=9_000,
        valid_ns=50_000,
        probe_ns=1_000_000,
        limit="fixed",
        most=3,
        fault=2,
        fault_ns=7_000,
        hold_ns=80_000,
        gap_ns=5_000,
        hash_seed=9,
    )
    unlimited = parse_scheme("rlb:limit=none")
    assert isinstance(unlimited, RlbConfig)
    assert unlimited.most == MOST_COUNTED


def test_defaults_are_the_papers() -> None:
    """256 KB, an interval of a link's delay, a base RTT between probes."""
    config = resolved("rlb")
    assert (config.pause_bytes, config.warn_bytes) == (260_000, 65_000)
    assert config.dt_ns == 2_000
    assert config.probe_ns == base_rtt_ns(parse_topology(PAPER), FULL_FRAME_BYTES)
    slow = resolved("rlb", "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps,delay=2us")
    assert (slow.pause_bytes, slow.warn_bytes) == (256_000, 64_000)


@pytest.mark.parametrize("flows", [1, 2, 15])
def test_bounds_of_the_warning_threshold(flows: int) -> None:
    """[dC, Q_PFC - dC(n - 1)]: both ends are taken, a byte beyond is refused with the bounds."""
    words = f"rlb:pfc=256KB,flows={flows}"
    most = 256_000 - IN_FLIGHT * (flows - 1)
    for good in (IN_FLIGHT, most):
        assert resolved(f"{words},qth={good}").warn_bytes == good
    for bad in (IN_FLIGHT - 1, most + 1):
        with pytest.raises(IntentError, match=f"from {IN_FLIGHT} to {most} bytes"):
            resolved(f"{words},qth={bad}")


@pytest.mark.parametrize("flows", [1, 2, 5, 15])
def test_a_queue_that_grows_by_a_link_is_warned_of_at_the_bound_of_eq_3(flows: int) -> None:
    """The margin is the time in which a link brings what is between Q_PFC - dC(n - 1) and Q_PFC."""
    config = resolved(f"rlb:pfc=256KB,flows={flows}")
    _, most = warn_bounds(parse_topology(PAPER), config.pause_bytes, max(flows, 2))
    assert config.margin_ns == (config.pause_bytes - most) * 8 // 40


@pytest.mark.parametrize("words", ["rlb:qth=64KB", "rlb:qth=110KB,pfc=256KB", "rlb:dt=1us"])
def test_the_margin_depends_on_no_threshold(words: str) -> None:
    """14 links of 2 us for 15 senders."""
    assert resolved(words).margin_ns == 28_000


def test_margin_covers_samples() -> None:
    """A longer time between samples asks for as much more."""
    assert resolved("rlb:dt=3us").margin_ns == 42_000


def test_hold_time() -> None:
    """100 base RTTs, at least an interval; less is refused."""
    rtt_ns = base_rtt_ns(parse_topology(PAPER), FULL_FRAME_BYTES)
    assert resolved("rlb").hold_ns == 100 * rtt_ns
    assert resolved("rlb:interval=1s").hold_ns == 1_000_000_000
    assert resolved("rlb:interval=2us,hold=2us").hold_ns == 2_000
    with pytest.raises(IntentError, match="hold must be at least interval, 2000 ns"):
        resolved("rlb:interval=2us,hold=1us")


def test_no_bounds_at_all() -> None:
    """Where more is in flight than fits below Q_PFC, no threshold can work."""
    with pytest.raises(IntentError, match="no qth is possible"):
        resolved("rlb:pfc=100KB,flows=15")


def held(name: str, words: str = "rlb:variant=presto") -> SwitchIntent:
    return intent(parse_topology(SMALL), parse_scheme(words), target("virtual"))[name]


def test_leaves_and_spines_differ() -> None:
    """A leaf has its number and probes; a spine has neither. All have a way to tell each neighbour."""
    topology = parse_topology(SMALL)
    for switch in topology.switches:
        intended = held(switch.name)
        is_leaf = switch.name in topology.leaves
        no_leaf = programs.load(intended.program).constant("leaf_all")
        expected = topology.leaves.index(switch.name) if is_leaf else no_leaf
        assert default(intended, "warning_config")[1]["own_leaf"] == expected
        assert (default(intended, "probe_config")[1]["period_ticks"] != 0) == is_leaf
        ports = [p for p, peer in topology.ports_of(switch.name).items() if peer.kind == "switch"]
        sessions = [e.session_id for e in intended.entities if isinstance(e, P4CloneSessionEntry)]
        assert sorted(sessions) == [FIRST_SESSION + port for port in sorted(ports)]
        groups = {e.multicast_group_id: e for e in intended.entities if isinstance(e, P4MulticastGroupEntry)}
        assert set(groups.pop(UPSTREAM_GROUP).replicas) == set(ports)
        assert set(groups) == (set() if is_leaf else {FIRST_RELAY + port for port in ports})
        other_leaves = [leaf for leaf in topology.leaves if leaf != switch.name]
        assert len(list(rows(intended, "leaf_groups"))) == len(other_leaves)


@pytest.mark.parametrize(("name", "queue"), [("virtual", 7), ("native", 7), ("bmv2", 0)])
def test_warnings_go_first_where_they_can(name: str, queue: int) -> None:
    """BMv2 takes no class of service; a slow clock has thresholds in its own ticks."""
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1,rate=100Mbps,delay=1ms")
    intended = intent(topology, parse_scheme("rlb:variant=presto"), target(name))[topology.leaves[0]]
    sessions = [e for e in intended.entities if isinstance(e, P4CloneSessionEntry)]
    assert {session.class_of_service for session in sessions} == {queue}
    assert default(intended, "warning_config")[1]["dt_ticks"] == 1_000_000 // target(name).tick_ns


def test_slots_are_the_same_in_both_tables() -> None:
    """`next_hops` has the same port for every slot as `group_members`."""
    intended = held(parse_topology(SMALL).leaves[0])
    members = {(m["group"], m["slot"]): int(args["port"]) for m, _, args in rows(intended, "group_members")}
    for match, _, parts in rows(intended, "next_hops"):
        ports = tuple(members.pop((match["group"], slot)) for slot in range(int(parts["count"])))
        assert parts == next_hop_arguments(ports)
    assert members == {}


def test_parts_of_many_next_hops() -> None:
    """16 ports a part, each 16 bits, the first at the right."""
    ports = tuple(range(100, 140))
    parts = next_hop_arguments(ports)
    for slot, port in enumerate(ports):
        assert parts[f"ports{slot // 16}"] >> 16 * (slot % 16) & 0xFFFF == port
    assert parts["ports3"] == 0
    assert (parts["count"], parts["around"]) == (40, 41)


def test_slots_are_gone_through_around_a_prime() -> None:
    """The least one that is not below their number, so that every stride meets all of them."""
    primes = [next_hop_arguments(tuple(range(count)))["around"] for count in range(1, 65)]
    for count, prime in enumerate(primes, 1):
        assert all(
            len({step * stride % prime for step in range(prime)}) == prime for stride in range(1, prime)
        )
        assert not any(all(n % m for m in range(2, n)) for n in range(max(count, 2), prime))
