# SPDX-License-Identifier: Apache-2.0
"""Groups of equal-cost next hops of one switch, and their slots.

A hash picks a slot of a group, and each slot names a port. There is one group for each distinct set of next
hops towards leaves (switches with hosts) in the faultless network, so that group ids never change. A group of
n ports has n * (n - 1) slots (with at most COPIES slots per port): slot s belongs to port s mod n. While that
port is dead, the slot names the first live port in a list of the group's other ports; for each slot of the
dead port the list starts at a different port. So a failure moves only the slots of the dead port, and spreads
them evenly over the rest. When the port is alive again, these slots name it again.

While no port is dead, slot s names the same port as slot s mod n. A switch that only picks the slot
hash mod (number of slots) then needs only the first n slots, and sends each packet to the same port as with
all of them: a `compact` group.

After a remote fault, leaves that share a group in the faultless network may have different next hops. One of
these sets of next hops keeps the group's id. The others get additional groups, with ids after those of the
faultless network, in the order of their first leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

COPIES = 15
SLOT_TABLES_CACHED = 1 << 12
"""Cache size for slot tables, which switches share."""

Ports = tuple[int, ...]


class NextHopGroup(msgspec.Struct, frozen=True):
    """A group of next hops: `slots` has the port of each slot, `ports` each live port once, in order."""

    id: int
    slots: Ports
    ports: Ports


class Groups(msgspec.Struct, frozen=True):
    """The groups of one switch, in order of ids, and the group of next hops to each reachable leaf; `of_host`
    has the groups of single hosts, by address, if a scheme keeps state for each destination.
    """

    groups: tuple[NextHopGroup, ...]
    of_leaf: dict[str, NextHopGroup]
    of_host: Mapping[str, NextHopGroup] = msgspec.field(default_factory=dict)


@lru_cache(SLOT_TABLES_CACHED)
def slot_table(members: Ports, live: frozenset[int]) -> Ports:
    """The port of each slot; `members` are the ports of the faultless group, `live` the ports in use."""
    count = len(members)
    copies = max(1, min(count - 1, COPIES))
    slots = []
    for slot in range(count * copies):
        owner, copy = slot % count, slot // count
        spares = [members[(owner + 1 + (copy + i) % max(1, count - 1)) % count] for i in range(count - 1)]
        slots.append(next(port for port in (members[owner], *spares) if port in live))
    return tuple(slots)


def excluding(hops: Mapping[str, Ports], excluded: frozenset[int]) -> Mapping[str, Ports]:
    """Next hops towards each leaf without the `excluded` ports; a leaf that has no others keeps them."""
    if not excluded:
        return hops
    return {leaf: tuple(p for p in ports if p not in excluded) or ports for leaf, ports in hops.items()}


def plan_groups(
    usual: Mapping[str, Ports],
    current: Mapping[str, Ports],
    local_down: frozenset[int] = frozenset(),
    *,
    dense: bool = False,
    compact: bool = False,
) -> Groups:
    """The groups of a switch.

    Args:
        usual: next hops towards each leaf in the faultless network, sorted.
        current: next hops towards each leaf now, sorted; empty if the leaf is unreachable.
        local_down: ports of this switch that are down.
        dense: exactly one slot for each live port; then a failure moves slots of all ports.
        compact: one slot for each port while no port of the group is dead.
    """
    # a base is the set of next hops of a faultless group; the additional groups after a fault are `derived`
    bases = sorted({ports for ports in usual.values() if ports})
    base_ids = {base: index for index, base in enumerate(bases, 1)}
    keepers = _keepers(usual, current, local_down)
    made: dict[int, NextHopGroup] = {}
    derived: dict[tuple[Ports, Ports], int] = {}
    of_leaf: dict[str, NextHopGroup] = {}
    for position, (leaf, base) in enumerate(usual.items(), 1):
        now = current[leaf]
        if not now:
            continue
        if keepers.get(base) == now:
            group_id = base_ids[base]
        else:
            group_id = derived.setdefault((base, now), len(bases) + position)
        if group_id not in made:
            members = base if set(now) <= set(base) else now
            slots = now if dense or (compact and now == members) else slot_table(members, frozenset(now))
            made[group_id] = NextHopGroup(group_id, slots, now)
        of_leaf[leaf] = made[group_id]
    return Groups(tuple(made[key] for key in sorted(made)), of_leaf)


def _keepers(
    usual: Mapping[str, Ports], current: Mapping[str, Ports], local_down: frozenset[int]
) -> dict[Ports, Ports]:
    """For each faultless set, the current set that keeps its group id: the faultless set without this
    switch's dead ports, if a leaf has that set, else the first subset of the faultless set.
    """
    if current is usual and not local_down:
        return {base: base for base in usual.values() if base}
    keepers: dict[Ports, Ports] = {}
    for leaf, base in usual.items():
        now = current[leaf]
        if now and set(now) <= set(base):
            expected = tuple(port for port in base if port not in local_down)
            if now == expected or base not in keepers:
                keepers[base] = now
    return keepers
