# SPDX-License-Identifier: Apache-2.0
"""Parts of a network for processes that run it together: about equal, with few links between them."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.spec import SpecError
from tailrace.topology.model import Switch, Topology

MOST_RANKS = 64
"""Processes that run one network."""


def check_ranks(topology: Topology, ranks: int) -> None:
    """Refuses more parts than there are switches.

    Raises:
        SpecError: or none, or more than MOST_RANKS.
    """
    most = min(MOST_RANKS, len(topology.switches))
    if not 1 <= ranks <= most:
        raise SpecError(f"ranks: expected 1..{most} for {topology.spec}, found {ranks}")


def parts(topology: Topology, ranks: int) -> dict[str, int]:
    """The part, from 0, of every switch and host by name; no part is without a switch.

    Whole pods or groups go to one part each, in their order, and so do blocks of switches that are in none:
    cores, spines, the routers of a Slim Fly. Where there are fewer pods than parts, or fewer of some role,
    blocks of switches of one role take their place. Hosts are with their switch.

    Raises:
        SpecError: as `check_ranks`.
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
"""Rows of units that stay together; each row is dealt out evenly."""


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
