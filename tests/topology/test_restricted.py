# SPDX-License-Identifier: Apache-2.0
"""Restricted hosts: some of the equal paths lead to them, all to their neighbours."""

from __future__ import annotations

import pytest

from tailrace.p4rt.entities import P4TableAction, P4TableEntry
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.topology import Restricted, next_hops, parse_topology
from tailrace.topology.paths.restricted import with_restricted
from tests.schemes.planned import intent

FABRIC = parse_topology("leaf-spine:leaves=2,spines=4,hosts=2,restricted=h3/2")


def test_the_first_next_hops_lead_there() -> None:
    """From another leaf by the first ports; from a spine there is but one, and the own leaf needs none."""
    hops = with_restricted(FABRIC, next_hops(FABRIC))
    assert FABRIC.restricted == (Restricted("h3", 2),)
    assert hops["leaf1"] == {"leaf2": (3, 4, 5, 6), "h3": (3, 4)}
    assert "h3" not in hops["leaf2"]
    assert all("h3" not in hops[f"spine{number}"] for number in range(1, 5))
    assert [str(prefix) for prefix in FABRIC.prefixes_of("h3")] == ["10.0.2.2/32"]
    assert FABRIC.leaves == ("leaf1", "leaf2")


def test_several() -> None:
    """Each has paths of its own number."""
    words = "leaf-spine:leaves=3,spines=4,hosts=2,restricted=h3/2+h5/1"
    two = parse_topology(words)
    assert two.restricted == (Restricted("h3", 2), Restricted("h5", 1))
    hops = with_restricted(two, next_hops(two))
    assert hops["leaf1"] == {"leaf2": (3, 4, 5, 6), "leaf3": (3, 4, 5, 6), "h3": (3, 4), "h5": (3,)}
    assert parse_topology(two.spec) == two


def test_nothing_changes_without_it() -> None:
    """The same object comes back."""
    plain = parse_topology("leaf-spine:leaves=2,spines=4,hosts=2")
    hops = next_hops(plain)
    assert with_restricted(plain, hops) is hops


def test_dead_links() -> None:
    """A switch uses those of its next hops that are left; where none is left, it uses restricted ones."""
    usual = next_hops(FABRIC)
    single = next_hops(FABRIC, frozenset({("leaf1", 3)}))
    assert with_restricted(FABRIC, single, usual)["leaf1"]["h3"] == (4,)
    both = next_hops(FABRIC, frozenset({("leaf1", 3), ("leaf1", 4)}))
    assert with_restricted(FABRIC, both, usual)["leaf1"]["h3"] == (5, 6)


@pytest.mark.parametrize("scheme", ["ecmp", "drill", "rlb:variant=presto"])
def test_the_controller_gives_it_a_route_of_its_own(scheme: str) -> None:
    """A /32 to a group of two ports next to the leaf's prefix, whatever selects among them."""
    switch = intent(
        FABRIC,
        parse_scheme(f"{scheme},queue=1MB" if ":" in scheme else f"{scheme}:queue=1MB"),
        target("virtual"),
    )["leaf1"]
    entries = [entity for entity in switch.entities if isinstance(entity, P4TableEntry)]
    actions = {
        table: [
            (entry.match, entry.action)
            for entry in entries
            if entry.table_id == table and entry.match and isinstance(entry.action, P4TableAction)
        ]
        for table in ("ipv4_routes", "group_members")
    }
    routes = {
        match["dst"]: action.args["group"]
        for match, action in actions["ipv4_routes"]
        if action.name == "to_group"
    }
    members = {
        group: {action.args["port"] for match, action in actions["group_members"] if match["group"] == group}
        for group in routes.values()
    }
    assert {prefix: members[group] for prefix, group in routes.items()} == {
        "10.0.2.0/24": {3, 4, 5, 6},
        "10.0.2.2/32": {3, 4},
    }


def test_a_fat_tree_is_restricted_at_every_level() -> None:
    """An edge switch of another pod and an aggregation switch take the first of two."""
    tree = parse_topology("fat-tree:k=4,restricted=h1/1")
    hops = with_restricted(tree, next_hops(tree))
    assert len(hops["edge2_1"]["h1"]) == len(hops["agg2_1"]["h1"]) == 1
    assert len(hops["edge2_1"]["edge1_1"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("restricted=h3", "restricted must be HOST/PATHS such as h7/5 or h7/5+h9/5, found 'h3'"),
        ("restricted=h3/0", "restricted must be HOST/PATHS such as h7/5 or h7/5+h9/5, found 'h3/0'"),
        ("restricted=h9/1", "topology leaf-spine: restricted: there is no host 'h9'"),
        ("restricted=h3/1+h3/2", "restricted must be HOST/PATHS such as h7/5 or h7/5+h9/5,"),
        ("restricted=h3/1+", "restricted must be HOST/PATHS such as h7/5 or h7/5+h9/5, found 'h3/1+'"),
    ],
)
def test_bad_words(words: str, message: str) -> None:
    """One line that says what was expected."""
    with pytest.raises(SpecError) as caught:
        parse_topology(f"leaf-spine:leaves=2,spines=4,hosts=2,{words}")
    assert message in str(caught.value)
