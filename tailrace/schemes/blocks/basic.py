# SPDX-License-Identifier: Apache-2.0
"""Schemes that need only the common entries: a hash, a random number or the NIC chooses the path."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.flows.paths import PathList
from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.blocks.entries import common_entries
from tailrace.schemes.resolved import EntryPlan, Resolved


class ResolvedBasic(Resolved, frozen=True, kw_only=True):
    """A scheme that its P4 program or NICs implement, without further entries.

    A next-hop group has one slot per member (`compact_groups`), because the program picks slot = v mod size,
    where v is a hash or a random number. Schemes whose program uses the slots in another way override
    `compact_groups`.
    """

    @property
    def compact_groups(self) -> bool:
        """See Resolved."""
        return True

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """See Resolved."""
        return common_entries(plan)


class SourcePortPaths:
    """Path lists for NICs that choose among UDP source ports, which the switches hash to paths."""

    def __init__(self, count: int) -> None:
        """Args: count: number of source ports, from 1 to the number of unassigned ports."""
        ports = tuple(range(FIRST_PORT, LAST_PORT + 1))[:count]
        # source port, latency (not used here) and weight of each path
        self._list = PathList(ports, (0,) * len(ports), (1.0,) * len(ports))

    def of(self, source_ip: str, target_ip: str) -> PathList:  # noqa: ARG002
        """The path list from one host to another; the same for all pairs."""
        return self._list
