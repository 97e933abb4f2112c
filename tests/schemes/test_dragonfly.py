# SPDX-License-Identifier: Apache-2.0
"""What the controller writes into the switches of a Dragonfly, and the parameters of its schemes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt import programs
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.dragonfly.groups import routing_of
from tailrace.schemes.flowcut.declaration import ResolvedFlowcutNic, age_ns, max_switches
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import DragonflyPaths, RedConfig
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.dragonfly import MinimalRoutes, NextHops
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns, bdp_bytes
from tests.schemes.planned import default, intent, rows

VIRTUAL = target("virtual")
PAPER = parse_topology("dragonfly:p=16,a=16,h=3,groups=4")
SMALL = parse_topology("dragonfly:p=1,a=3,h=2,groups=4")
FAT_TREE = parse_topology("fat-tree:k=4")


def entries(intended: SwitchIntent, table: str) -> dict[tuple[int, ...], dict[str, int]]:
    """Entries of a table: key to action data."""
    return {
        tuple(int(value) for value in match.values()): {name: int(value) for name, value in args.items()}
        for match, _, args in rows(intended, table)
    }


def config(words: str, table: str, topology: Topology = SMALL, switch: str = "r1_1") -> dict[str, int]:
    """The arguments of a keyless table."""
    return default(intent(topology, parse_scheme(words), VIRTUAL)[switch], table)[1]


def test_words() -> None:
    """Rule, grain and share; what is not given is the paper's or an assumption."""
    gap_ns = base_rtt_ns(SMALL, FULL_FRAME_BYTES)
    for rule, grain in (("minimal", "flow"), ("valiant", "packet")):
        paths = resolve(parse_scheme(rule), SMALL).dragonfly_paths
        assert DragonflyPaths(rule=rule, grain=grain, gap_ns=gap_ns) == paths
    ugal = resolve(parse_scheme("ugal-l:per=flowlet,gap=3us,queue=1MB"), SMALL)
    assert DragonflyPaths(rule="ugal-l", grain="flowlet", gap_ns=3000) == ugal.dragonfly_paths
    letflow = resolve(parse_scheme("letflow:gap=2us"), SMALL)
    assert DragonflyPaths(rule="ugal-l", grain="flowlet", gap_ns=2000) == letflow.dragonfly_paths
    nic = resolve(parse_scheme("flowcut:variant=nic,share=0.25,age=1ms"), SMALL)
    assert nic.dragonfly_paths == DragonflyPaths(
        rule="mixed", grain="flow", gap_ns=1_000_000, minimal_share=0.25
    )
    sticky = resolve(parse_scheme("flowcut:variant=nic,path=ugal-l,age=1ms"), SMALL).dragonfly_paths
    assert DragonflyPaths(rule="ugal-l", grain="flowlet", gap_ns=1_000_000) == sticky


def test_mp_rdma_marks() -> None:
    """Switches mark between a fifth of a BDP and four fifths, or as told."""
    bdp = bdp_bytes(FAT_TREE, FULL_FRAME_BYTES)
    red = config("mp-rdma", "red_config", FAT_TREE, "edge1_1")
    assert {"kmin_bytes": bdp // 5, "kmax_bytes": bdp * 4 // 5, "pmax_permille": 1000} == red
    explicit = resolve(parse_scheme("mp-rdma:kmin=1KB,kmax=9KB,pmax=0.5"), FAT_TREE)
    assert RedConfig(kmin_bytes=1000, kmax_bytes=9000, pmax_permille=500) == explicit.red


def test_age_covers_detours() -> None:
    """Packets live longer where they may go through a third group, and longer still around faults."""
    minimal, detour = "minimal", "ugal-l"
    assert (4, 6) == (max_switches(SMALL, minimal), max_switches(SMALL, detour))
    assert age_ns(SMALL, FULL_FRAME_BYTES, 100_000, 0.1, minimal) < age_ns(
        SMALL, FULL_FRAME_BYTES, 100_000, 0.1, detour
    )
    ring = parse_topology("dragonfly:p=1,a=6,h=1,groups=2")
    down = frozenset((link.a, link.a_port) for link in ring.links if link.a == "r1_1" and link.b != "r1_2")
    assert max_switches(ring, detour, down) >= max_switches(ring, detour)


def test_rule_of_each_scheme() -> None:
    """Rule, grain and share reach the switch by the numbers of the P4 source."""
    program = programs.load("dragonfly")
    for words, rule, grain, share in (
        ("minimal", "MINIMAL", "FLOW", 128),
        ("valiant", "VALIANT", "PACKET", 128),
        ("ugal-l", "UGAL_L", "PACKET", 128),
        ("letflow", "UGAL_L", "FLOWLET", 128),
        ("flowcut:variant=nic,share=0.25", "MIXED", "FLOW", 64),
    ):
        path_config = config(words, "path_config")
        expected = {"rule": program.enum("PathRule_t", rule), "grain": program.enum("Grain_t", grain)}
        assert expected | {"minimal_share": share} == path_config


def test_flowlet_gap_of_nics_is_the_age() -> None:
    """Where UGAL-L chooses for Flowcut in NICs, a path may be left only when nothing can be in flight."""
    words = "flowcut:variant=nic,path=ugal-l"
    resolved = resolve(parse_scheme(words), SMALL)
    assert isinstance(resolved, ResolvedFlowcutNic)
    assert {"gap_ticks": resolved.age_ns} == config(words, "flowlet_config")


def test_paths_of_the_paper() -> None:
    """Four groups with 16 links between each two: 16 minimal paths, 32 detours, of 2 or 3 and 4 or 5 links."""
    intended = intent(PAPER, parse_scheme("ugal-l"), VIRTUAL)["r2_7"]
    minimal, detours = entries(intended, "minimal_paths"), entries(intended, "detours")
    far = entries(intended, "far_groups")
    assert {(1,), (3,), (4,)} == set(far)
    for (toward,), row in far.items():
        assert (16, 0, 16, 32) == (row["paths"], row["list"], row["count"], row["detours"])
        paths = [minimal[toward, slot] for slot in range(16)]
        assert sorted(path["links"] for path in paths) == [2, *[3] * 15]
        outgoing = [detours[0, slot] for slot in range(row["first"], row["first"] + 16)]
        assert {toward} == {link["group"] for link in outgoing}
        assert sorted(link["links"] for link in outgoing) == [4, *[5] * 15]
        assert {path["port"] for path in paths} == {link["port"] for link in outgoing}
    assert 48 == len(minimal) == len(detours)
    onward = entries(intended, "onward_groups")
    members = entries(intended, "group_members")
    for toward in (1, 3, 4):
        row = onward[toward,]
        ports = {members[row["group"], slot]["port"] for slot in range(row["size"])}
        assert {PAPER.switch(PAPER.ports_of("r2_7")[port].name).group + 1 for port in ports} == {toward}


def test_roles() -> None:
    """Programs of Dragonflies tell links within a group from others; for ECMP all links are alike."""
    for words, within in (("minimal", "group_port"), ("flowcut", "group_port"), ("ecmp", "fabric_port")):
        intended = intent(SMALL, parse_scheme(words), VIRTUAL)["r1_1"]
        roles = {match["ingress_port"]: role for match, role, _ in rows(intended, "port_role")}
        assert set(roles) == set(SMALL.ports_of("r1_1"))
        for port, peer in SMALL.ports_of("r1_1").items():
            is_own_group = peer.kind == "switch" and SMALL.switch(peer.name).group == 0
            assert roles[port] == (
                within if is_own_group else "fabric_port" if peer.kind == "switch" else "guarded_port"
            )


@settings(max_examples=40)
@given(st.data())
def test_failures_move_only_dead_slots(data: st.DataObject) -> None:
    """A group keeps its number and size, and its slots keep the ports that they can still lead by."""
    words = data.draw(st.sampled_from(["dragonfly:p=1,a=3,h=2,groups=4", "dragonfly:p=1,a=2,h=5,groups=3"]))
    topology = parse_topology(words)
    dead = data.draw(st.sets(st.sampled_from(topology.links), max_size=3))
    usual = MinimalRoutes(topology)
    current = MinimalRoutes(topology, frozenset((link.a, link.a_port) for link in dead))
    for switch in topology.switches:
        before = routing_of(topology, usual, usual, switch.name)
        after = routing_of(topology, usual, current, switch.name)
        slots = {group.id: group.slots for group in before.groups.groups}
        for group in after.groups.groups:
            if group.id in slots and set(group.slots) <= set(slots[group.id]):
                assert len(group.slots) == len(slots[group.id])
                pairs = zip(slots[group.id], group.slots, strict=True)
                assert all(a == b for a, b in pairs if a in group.ports)


@settings(max_examples=40)
@given(st.data())
def test_detours_after_failures(data: st.DataObject) -> None:
    """No list leads through a group from which packets would come back, and blocks to leave out are where they are
    said to be.
    """
    topology = parse_topology("dragonfly:p=1,a=3,h=2,groups=4")
    dead = data.draw(st.sets(st.sampled_from(topology.links), max_size=5))
    routes = MinimalRoutes(topology, frozenset((link.a, link.a_port) for link in dead))
    for switch in topology.switches:
        plan = routing_of(topology, MinimalRoutes(topology), routes, switch.name)
        for leaf, group in plan.groups.of_leaf.items():
            far = plan.far.get(group.id)
            if far is None:
                continue
            leaf_group = topology.switch(leaf).group
            links = plan.detours[far.detours]
            left_out = range(far.first, far.first + far.count)
            assert {leaf_group + 1} >= {links[slot].group for slot in left_out}
            rest = {link.group for slot, link in enumerate(links) if slot not in left_out}
            assert leaf_group + 1 not in rest
            assert all(routes.detours_end(third - 1, leaf) for third in rest)


def test_planning_grows_with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dead links a switch asks for next hops once for each other group and each switch of its own,
    not for each switch of the network, of which there are as many times more as a group has.
    """
    asked: Counter[str] = Counter()
    towards = MinimalRoutes.towards

    def counted(self: MinimalRoutes, switch: str, leaf: str) -> NextHops:
        asked[switch] += 1
        return towards(self, switch, leaf)

    monkeypatch.setattr(MinimalRoutes, "towards", counted)
    for words in ("dragonfly:p=1,a=4,h=1", "dragonfly:p=1,a=4,h=2", "dragonfly:p=1,a=8,h=2"):
        topology = parse_topology(words)
        routes = MinimalRoutes(topology)
        asked.clear()
        for switch in topology.switches:
            routing_of(topology, routes, routes, switch.name)
        members = len(topology.switches) // len(routes.groups)
        # now, and as it was before any fault
        assert {2 * (len(routes.groups) - 1 + members - 1)} == set(asked.values())
