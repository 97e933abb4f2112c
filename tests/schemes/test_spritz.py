# SPDX-License-Identifier: Apache-2.0
"""What the controller writes into switches that run the program `spritz`."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tailrace.p4rt import programs
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.spritz.app import FIRST_FAR, FIRST_NEAR, SECOND
from tailrace.schemes.spritz.walk import EvWalk
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import BoundedPaths
from tests.long import long
from tests.schemes.planned import SMALL, default, intent, planned_walker, rows
from tests.topology.following import follow

VIRTUAL = target("virtual")
PAPER = ("dragonfly:p=4,a=8,h=4,latency=500ns", "slim-fly:p=7,q=9,latency=500ns")
SAMPLE = 100_000


def plan(
    topology: Topology, words: str = "spritz", down: frozenset[tuple[str, int]] = frozenset()
) -> dict[str, SwitchIntent]:
    return intent(topology, parse_scheme(words), VIRTUAL, down)


@pytest.mark.parametrize("words", SMALL)
def test_every_path_of_every_pair(words: str) -> None:
    """Packets with an EV of a list take exactly its path through the entries; any EV arrives."""
    topology = parse_topology(words)
    walker, paths = planned_walker(topology, plan(topology)), BoundedPaths(topology)
    longest = 5 if topology.kind == "dragonfly" else 4
    for src, dst in permutations(topology.hosts, 2):
        for path in paths.between(src.switch, dst.switch):
            assert EvWalk(path.switches, path.ports) == walker.walk(src, dst, path.ev)
        if src.switch != dst.switch:
            for ev in (0, 257, 0x1234, 0xFFFF):
                walk, path_of_ev = walker.walk(src, dst, ev), follow(paths, src.switch, dst.switch, ev)
                assert path_of_ev is not None
                assert EvWalk(path_of_ev.switches, path_of_ev.ports) == walk
                assert len(walk.ports) <= longest


@long
@pytest.mark.parametrize("words", PAPER)
def test_the_papers_sizes(words: str) -> None:
    """100,000 paths of pairs that are drawn take their ways through the entries."""
    topology = parse_topology(words)
    walker, paths = planned_walker(topology, plan(topology)), BoundedPaths(topology)
    rng, walked = random.Random(5), 0
    longest = 4 if topology.kind == "slim-fly" else 5
    while walked < SAMPLE:
        src, dst = rng.sample(topology.hosts, 2)
        for path in paths.between(src.switch, dst.switch):
            walked += 1
            assert EvWalk(path.switches, path.ports) == walker.walk(src, dst, path.ev)
            assert len(set(path.switches)) == len(path.switches) <= longest + 1


def test_modes() -> None:
    """Each scheme's mode reaches the switch by the number of the P4 source."""
    topology, program = parse_topology("dragonfly:p=1,a=2,h=1"), programs.load("spritz")
    for words, mode in (
        ("spritz", "STEERED"),
        ("spritz:mode=coarse", "CLASS"),
        ("flicr", "STEERED"),
        ("ecmp:over=all", "STEERED"),
        ("minimal:draw=hop", "MINIMAL"),
        ("valiant:draw=hop", "RANDOM"),
        ("ugal-l:draw=hop", "UGAL_L"),
    ):
        intended = plan(topology, words)["r1_1"]
        expected = {"mode": program.enum("SpritzMode_t", mode), "host_marks": 0}
        assert ("set_spritz", expected) == default(intended, "spritz_config")


def test_trimming() -> None:
    """Is what happens at the limit, unless it is off; RED marks below."""
    topology = parse_topology("dragonfly:p=1,a=2,h=1")
    trimmed, dropped = (plan(topology, f"ops:queue=10KB,trim={word}")["r1_1"] for word in ("on", "off"))
    assert ("set_queue_trim", {"limit_bytes": 10_000}) == default(trimmed, "queue_config")
    assert ("set_queue_limit", {"limit_bytes": 10_000}) == default(dropped, "queue_config")
    _, red = default(trimmed, "red_config")
    assert {"kmin_bytes": 2_000, "kmax_bytes": 8_000, "pmax_permille": 1000} == red
    ecmp = intent(topology, parse_scheme("ecmp:queue=10KB"), VIRTUAL)["r1_1"]
    assert "set_queue_limit" == default(ecmp, "queue_config")[0]


def test_tables_of_a_dragonfly() -> None:
    """Local ports before global ones; links within the group go on; neighbours of the group make role ECMP 2."""
    topology, program = parse_topology("dragonfly:p=2,a=3,h=2"), programs.load("spritz")
    intended = plan(topology)["r1_2"]
    first, second = (program.enum("Role_t", name) for name in ("FIRST", "SECOND"))
    lists = {
        (match["role"], match["near"]): (args["list"], args["size"])
        for match, _, args in rows(intended, "path_lists")
        if match["class"] == program.enum("PathClass_t", "NONMINIMAL")
    }
    assert {(first, 0): (FIRST_FAR, 4), (first, 1): (FIRST_NEAR, 2), (second, 0): (SECOND, 2)} == lists
    slots = {
        (m["list"], m["slot"]): (a["port"], a["goes_on"], a["links"])
        for m, _, a in rows(intended, "path_slots")
    }
    assert {
        (FIRST_FAR, 0): (3, 1, 5), (FIRST_FAR, 1): (4, 1, 5), (FIRST_FAR, 2): (5, 0, 4), (FIRST_FAR, 3): (6, 0, 4),
        (FIRST_NEAR, 0): (3, 0, 2), (FIRST_NEAR, 1): (4, 0, 2),
        (SECOND, 0): (5, 0, 4), (SECOND, 1): (6, 0, 4),
    } == slots  # fmt: skip
    assert {(3, "10.0.1.0/24"), (4, "10.0.3.0/24")} == {
        (match["ingress_port"], match["src"]) for match, _, _ in rows(intended, "second_role")
    }
    near = {match["dst"]: (args["near"], args["links"]) for match, _, args in rows(intended, "destinations")}
    assert (20, (1, 1)) == (len(near), near["10.0.1.0/24"])
    assert {0: 18, 1: 2} == {flag: sum(value[0] == flag for value in near.values()) for flag in (0, 1)}
    assert {1, 2, 3} == {links for _, links in near.values()}


def test_tables_of_a_slim_fly() -> None:
    """All ports in both roles; nobody is near; every neighbour makes role ECMP 2, and every first link goes on."""
    topology, program = parse_topology("slim-fly:p=1,q=3"), programs.load("spritz")
    intended = plan(topology)["r1_2_0"]
    lists = {(match["role"], match["near"]): args["size"] for match, _, args in rows(intended, "path_lists")}
    assert {(program.enum("Role_t", "FIRST"), 0): 5, (program.enum("Role_t", "SECOND"), 0): 5} == lists
    slots = {
        (m["list"], m["slot"]): (a["port"], a["goes_on"], a["links"])
        for m, _, a in rows(intended, "path_slots")
    }
    expected = {(FIRST_FAR, slot): (slot + 2, 1, 4) for slot in range(5)}
    assert expected | {(SECOND, slot): (slot + 2, 0, 3) for slot in range(5)} == slots
    assert {2, 3, 4, 5, 6} == {match["ingress_port"] for match, _, _ in rows(intended, "second_role")}
    assert {0} == {args["near"] for _, _, args in rows(intended, "destinations")}


def test_tags() -> None:
    """Only the coarse-grained mode knows VLAN tags."""
    topology, program = parse_topology("dragonfly:p=1,a=2,h=1"), programs.load("spritz")
    intended = plan(topology, "spritz:mode=coarse")["r1_1"]
    classes = {match["vid"]: args["class"] for match, _, args in rows(intended, "vlan_classes")}
    assert {
        program.enum("VlanId_t", name): program.enum("PathClass_t", name)
        for name in ("MINIMAL", "NONMINIMAL")
    } == classes
    assert [] == list(rows(plan(topology)["r1_1"], "vlan_classes"))


def dead(topology: Topology) -> frozenset[tuple[str, int]]:
    """Both ends of the first link between groups."""
    link = next(
        link for link in topology.links if topology.switch(link.a).group != topology.switch(link.b).group
    )
    return frozenset({(link.a, link.a_port), (link.b, link.b_port)})


@pytest.mark.parametrize("scheme", ["spritz", "valiant:draw=hop"])
@pytest.mark.parametrize("words", ["dragonfly:p=1,a=4,h=2,groups=3", "slim-fly:p=1,q=3"])
def test_failures_are_the_senders_to_avoid(words: str, scheme: str) -> None:
    """A failed link changes nothing in any switch (Spritz §IV-C, §V-D)."""
    topology = parse_topology(words)
    assert plan(topology, scheme) == plan(topology, scheme, dead(topology))


@pytest.mark.parametrize("words", ["dragonfly:p=1,a=4,h=2,groups=3", "slim-fly:p=1,q=3"])
def test_repair(words: str) -> None:
    """Default routes, and groups of next hops, lead around a failed link; ECMP tables keep every slot."""
    topology = parse_topology(words)
    scheme = "spritz:repair=on" if topology.kind == "dragonfly" else "valiant:repair=on"
    down = dead(topology)
    before, after = plan(topology, scheme), plan(topology, scheme, down)
    moved = 0
    for name, intended in after.items():
        for table in ("path_lists", "path_slots", "second_role", "port_role"):
            assert list(rows(before[name], table)) == list(rows(intended, table))
        routes = list(rows(intended, "destinations"))
        assert len(topology.leaves) - 1 == len(routes)
        assert all((name, args["port"]) not in down for _, _, args in routes)
        members = list(rows(intended, "group_members"))
        assert all((name, args["port"]) not in down for _, _, args in members)
        moved += routes != list(rows(before[name], "destinations"))
    assert moved


def test_groups_hold_all_minimal_next_hops() -> None:
    """As class MINIMAL needs them: own links to the group, and neighbours with such links."""
    topology = parse_topology("dragonfly:p=1,a=4,h=2,groups=3")
    intended = plan(topology, "spritz:mode=coarse")["r1_1"]
    groups: dict[int, set[int]] = {}
    for match, _, args in rows(intended, "group_members"):
        groups.setdefault(int(match["group"]), set()).add(int(args["port"]))
    to = {
        match["dst"]: args["group"]
        for match, action, args in rows(intended, "ipv4_routes")
        if action == "to_group"
    }

    def links_to(name: str, group: int) -> set[int]:
        """The ports of a switch that lead to a group."""
        return {
            port
            for port, peer in topology.ports_of(name).items()
            if peer.kind == "switch" and topology.switch(peer.name).group == group
        }

    local = {
        peer.name: port for port, peer in topology.ports_of("r1_1").items() if peer.name.startswith("r1_")
    }
    for leaf in topology.leaves[1:]:
        group = topology.switch(leaf).group
        via = {port for name, port in local.items() if links_to(name, group)}
        expected = {local[leaf]} if group == 0 else links_to("r1_1", group) | via
        assert expected == groups[int(to[str(topology.prefixes_of(leaf)[0])])]
