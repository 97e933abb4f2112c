# SPDX-License-Identifier: Apache-2.0
"""Slots of groups: they stay with their ports whatever else fails, and are shared out evenly."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.schemes.blocks.groups import plan_groups, slot_table

members = st.sets(st.integers(1, 60), min_size=1, max_size=20).map(lambda numbers: tuple(sorted(numbers)))


@st.composite
def failures(draw: st.DrawFn) -> tuple[tuple[int, ...], frozenset[int], int]:
    """A group, those of its ports that are alive (at least two), and one of them."""
    ports = draw(members.filter(lambda numbers: len(numbers) > 1))
    live = draw(st.sets(st.sampled_from(ports), min_size=2))
    return ports, frozenset(live), draw(st.sampled_from(sorted(live)))


@given(failures())
def test_only_dead_slots_move(case: tuple[tuple[int, ...], frozenset[int], int]) -> None:
    """When one more port dies, exactly its slots move, to ports that live; when it returns, they return."""
    ports, live, victim = case
    before, after = slot_table(ports, live), slot_table(ports, live - {victim})
    assert set(before) <= live
    assert set(after) == live - {victim}
    assert all(b == a for b, a in zip(before, after, strict=True) if b != victim)
    assert before == slot_table(ports, live)


@given(members)
def test_even_share(ports: tuple[int, ...]) -> None:
    """Without a fault each port has the same number of slots; after one fault the others differ by one at
    most.
    """
    counts = Counter(slot_table(ports, frozenset(ports)))
    assert len(set(counts.values())) == 1
    assert set(counts) == set(ports)
    for victim in ports if len(ports) > 1 else ():
        shares = Counter(slot_table(ports, frozenset(ports) - {victim})).values()
        assert max(shares) - min(shares) <= (0 if len(ports) <= 16 else 1)


def test_dense_groups_have_a_slot_a_port() -> None:
    """No port has two slots, whatever fails, and a group keeps its number."""
    usual = {"a": (1, 2, 3, 4), "b": (1, 2, 3, 4), "c": (2, 3)}
    current = {"a": (1, 2, 4), "b": (1, 4), "c": (2,)}
    before = plan_groups(usual, usual, dense=True)
    after = plan_groups(usual, current, frozenset({3}), dense=True)
    assert {1: (1, 2, 3, 4), 2: (2, 3)} == {group.id: group.slots for group in before.groups}
    assert {"a": (1, (1, 2, 4)), "b": (4, (1, 4)), "c": (2, (2,))} == {
        leaf: (group.id, group.slots) for leaf, group in after.of_leaf.items()
    }


def test_groups_are_shared() -> None:
    """Leaves with the same next hops share a group; numbers follow from the sets alone."""
    usual = {"a": (1, 2), "b": (1, 2), "c": (3,), "d": ()}
    groups = plan_groups(usual, usual)
    assert [(1, (1, 2), (1, 2)), (2, (3,), (3,))] == [(g.id, g.slots, g.ports) for g in groups.groups]
    assert groups.of_leaf["a"] is groups.of_leaf["b"]
    assert set(groups.of_leaf) == {"a", "b", "c"}


def test_own_fault_keeps_groups() -> None:
    """A dead port of this switch leaves numbers and sizes of its groups as they are."""
    usual = {"a": (1, 2, 3), "b": (1, 2, 3), "c": (2, 3)}
    current = {"a": (1, 3), "b": (1, 3), "c": (3,)}
    before, after = plan_groups(usual, usual), plan_groups(usual, current, frozenset({2}))
    assert [(g.id, len(g.slots)) for g in before.groups] == [(g.id, len(g.slots)) for g in after.groups]
    assert {"a": 1, "b": 1, "c": 2} == {leaf: group.id for leaf, group in after.of_leaf.items()}


def test_distant_fault_makes_a_group() -> None:
    """When a fault far away takes a next hop from one leaf only, or leaves it others, it gets a group of its own."""
    usual = {"b": (1, 2), "a": (1, 2), "c": (1, 2), "d": (1, 2)}
    groups = plan_groups(usual, usual | {"b": (1,), "d": (5,)})
    assert {leaf: group.id for leaf, group in groups.of_leaf.items()} == {"b": 2, "a": 1, "c": 1, "d": 5}
    assert len(groups.of_leaf["b"].slots) == len(groups.of_leaf["a"].slots)


@st.composite
def switches(
    draw: st.DrawFn,
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]], frozenset[int]]:
    """Next hops of a switch towards some leaves, without and with faults."""
    ports = st.sets(st.integers(1, 6)).map(lambda numbers: tuple(sorted(numbers)))
    leaves = [f"leaf{i}" for i in range(draw(st.integers(1, 6)))]
    usual = {leaf: draw(ports.filter(bool)) for leaf in leaves}
    dead_ports = frozenset(draw(st.sets(st.integers(1, 6), max_size=2)))
    current = {}
    for leaf in leaves:
        chosen = draw(st.one_of(ports, st.just(usual[leaf])))
        current[leaf] = tuple(port for port in chosen if port not in dead_ports)
    return usual, current, dead_ports


@settings(max_examples=80)
@given(switches())
def test_any_fault(
    case: tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]], frozenset[int]],
) -> None:
    """Whatever fails, each leaf that can be reached has a group of exactly its next hops; numbers are unique."""
    usual, current, dead_ports = case
    groups = plan_groups(usual, current, dead_ports)
    assert {leaf for leaf in current if current[leaf]} == set(groups.of_leaf)
    for leaf, group in groups.of_leaf.items():
        assert current[leaf] == group.ports
        assert set(group.slots) == set(group.ports)
    ids = [group.id for group in groups.groups]
    assert len(ids) == len(set(ids))
    assert set(groups.groups) == set(groups.of_leaf.values())


@given(members, st.integers(0, 2**32 - 1))
def test_compact_groups_send_alike(ports: tuple[int, ...], value: int) -> None:
    """Without a dead port a slot a port is enough: a value modulo their number finds the port that it would
    find among all slots. With one the group has all slots, as ever.
    """
    usual = {"a": ports}
    (compact,), (full,) = (plan_groups(usual, usual, compact=flag).groups for flag in (True, False))
    assert len(ports) == len(compact.slots) <= len(full.slots)
    assert full.slots[value % len(full.slots)] == compact.slots[value % len(compact.slots)]
    if len(ports) > 1:
        dead = frozenset(ports[:1])
        current = {"a": ports[1:]}
        assert plan_groups(usual, current, dead) == plan_groups(usual, current, dead, compact=True)
