# SPDX-License-Identifier: Apache-2.0
"""Divides a network among the ranks (processes) of a parallel run: into about equal parts with few links
between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.spec import SpecError
from tailrace.topology.model import Switch, Topology

MOST_RANKS = 64
"""The most ranks of a run."""


def check_ranks(topology: Topology, ranks: int) -> None:
    """Checks the number of parts.

    Raises:
        SpecError: it is less than 1, more than the number of switches, or more than MOST_RANKS.
    """
    most = min(MOST_RANKS, len(topology.switches))
    if not 1 <= ranks <= most:
        raise SpecError(f"ranks: expected 1..{most} for {topology.spec}, found {ranks}")


def parts(topology: Topology, ranks: int) -> dict[str, int]:
    """The index of the part, from 0, of every switch and host by name; every part has a switch.

    Pods or groups are not divided, but distributed to the parts in order. Switches without a group (cores,
    spines) are distributed in order, too, role by role. If there are fewer groups, or fewer switches of a
    role, than parts, all switches are distributed role by role, or else one by one. Hosts are in the part of
    their switch.

    Raises:
        SpecError: see `check_ranks`.
    """
    check_ranks(topology, ranks)
    for blocks in (_by_group(topology), _by_role(topology.switches)):
        if all(len(block) >= ranks for block in blocks):
            break
    else:
        blocks = [[[switch] for switch in topology.switches]]
    parts = {}
    for block in blocks:
        for index, unit in enumerate(block):
            parts.update({switch.name: index * ranks // len(block) for switch in unit})
    return parts | {host.name: parts[host.switch] for host in topology.hosts}


_Blocks = list[Sequence[Sequence[Switch]]]
"""Blocks of units (lists of switches that stay together); the units of each block are distributed evenly."""


def _by_group(topology: Topology) -> _Blocks:
    groups: dict[int, list[Switch]] = {}
    for switch in topology.switches:
        if switch.group >= 0:
            groups.setdefault(switch.group, []).append(switch)
    alone = [switch for switch in topology.switches if switch.group < 0]
    rows: _Blocks = [list(groups.values())] if groups else []
    return rows + _by_role(alone)


def _by_role(switches: Sequence[Switch]) -> _Blocks:
    roles: dict[str, list[Sequence[Switch]]] = {}
    for switch in switches:
        roles.setdefault(switch.role, []).append([switch])
    return list(roles.values())
