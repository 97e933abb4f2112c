# SPDX-License-Identifier: Apache-2.0
"""Groups of equal-cost next hops of one switch, and their slots.

A hash picks a slot of a group, and each slot names a port. There is one group for each distinct set of next
hops in the faultless network, so that their numbers never change. A group of n ports has n * (n - 1) slots
(with at most COPIES slots a port): slot s belongs to port s mod n, and when that port is dead, to the first
live one of a list of the others that starts at another place for each slot of the port. So a failure moves
the slots of the dead port and no other, spreads them evenly over the rest, and when the port returns they
return.

While no port is dead, slot s names the same port as slot s mod n. A switch that does nothing with a slot but
to take a value modulo their number can then do with the first n, and sends each packet where it would with
all: `short`.

Leaves that share a group in the faultless network may differ in what a fault far away leaves them: one of
these sets keeps the group, the others get groups of their own, with numbers after all others, named after
their first leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

COPIES = 15
SLOTS_KEPT = 1 << 12
"""Tables of slots that are kept for other switches."""

Ports = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NextHopGroup:
    """Next hops. `slots` names the port of each slot, `ports` each live port once, in order."""

    id: int
    slots: Ports
    ports: Ports


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one switch, by number, and the group that leads to each leaf that can be reached."""

    groups: tuple[NextHopGroup, ...]
    of_leaf: dict[str, NextHopGroup]


@lru_cache(SLOTS_KEPT)
def slot_table(members: Ports, live: frozenset[int]) -> Ports:
    """The port of each slot; `members` are the ports of the faultless group, of which `live` are left."""
    count = len(members)
    copies = max(1, min(count - 1, COPIES))
    slots = []
    for slot in range(count * copies):
        owner, copy = slot % count, slot // count
        spares = [members[(owner + 1 + (copy + i) % max(1, count - 1)) % count] for i in range(count - 1)]
        slots.append(next(port for port in (members[owner], *spares) if port in live))
    return tuple(slots)


def excluding(hops: Mapping[str, Ports], taken: frozenset[int]) -> Mapping[str, Ports]:
    """Next hops towards each leaf without some ports; with them where they are all that there is."""
    if not taken:
        return hops
    return {leaf: tuple(port for port in ports if port not in taken) or ports for leaf, ports in hops.items()}


def plan_groups(
    usual: Mapping[str, Ports],
    current: Mapping[str, Ports],
    own_down: frozenset[int] = frozenset(),
    *,
    dense: bool = False,
    short: bool = False,
) -> Groups:
    """The groups of a switch.

    Args:
        usual: next hops towards each leaf in the faultless network, sorted.
        current: next hops towards each leaf now, sorted; empty where it cannot be reached.
        own_down: ports of this switch that are down.
        dense: one slot for each live port: no port has two, but a failure moves slots of all ports.
        short: one slot for each port while none of the group is dead.
    """
    bases = sorted({ports for ports in usual.values() if ports})
    number = {base: index for index, base in enumerate(bases, 1)}
    keepers = _keepers(usual, current, own_down)
    made: dict[int, NextHopGroup] = {}
    derived: dict[tuple[Ports, Ports], int] = {}
    of_leaf: dict[str, NextHopGroup] = {}
    for position, (leaf, base) in enumerate(usual.items(), 1):
        now = current[leaf]
        if not now:
            continue
        if keepers.get(base) == now:
            group_id = number[base]
        else:
            group_id = derived.setdefault((base, now), len(bases) + position)
        if group_id not in made:
            members = base if set(now) <= set(base) else now
            slots = now if dense or (short and now == members) else slot_table(members, frozenset(now))
            made[group_id] = NextHopGroup(group_id, slots, now)
        of_leaf[leaf] = made[group_id]
    return Groups(tuple(made[key] for key in sorted(made)), of_leaf)


def _keepers(
    usual: Mapping[str, Ports], current: Mapping[str, Ports], own_down: frozenset[int]
) -> dict[Ports, Ports]:
    """For each faultless set, the set that keeps its group: what this switch's own dead ports leave of it
    where some leaf has that, else the first that is part of it.
    """
    if current is usual and not own_down:
        return {base: base for base in usual.values() if base}
    keepers: dict[Ports, Ports] = {}
    for leaf, base in usual.items():
        now = current[leaf]
        if now and set(now) <= set(base):
            expected = tuple(port for port in base if port not in own_down)
            if now == expected or base not in keepers:
                keepers[base] = now
    return keepers
