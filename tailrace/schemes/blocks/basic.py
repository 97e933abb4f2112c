# SPDX-License-Identifier: Apache-2.0
"""Schemes without entries of their own: a hash, a random number or the NIC chooses the path."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.flows.paths import PathList
from tailrace.schemes.blocks.entries import common_entries
from tailrace.schemes.resolved import EntryPlan, Resolved


class ResolvedBasic(Resolved, frozen=True, kw_only=True):
    """A scheme that its program or NICs implement.

    Its groups are short: a program that does more with a group's slots than to take the one of a value modulo
    their number overrides `short_groups`.
    """

    @property
    def short_groups(self) -> bool:
        """See Resolved."""
        return True

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """See Resolved."""
        return common_entries(plan)


class SourcePortPaths:
    """Path lists where NICs choose among UDP source ports, whatever the switches' hashes make of them."""

    def __init__(self, count: int) -> None:
        """Args: count: of ports, from 1 to the number of unassigned ports."""
        ports = tuple(range(FIRST_PORT, LAST_PORT + 1))[:count]
        self._list = PathList(ports, (0,) * len(ports), (1.0,) * len(ports))

    def of(self, source_ip: str, target_ip: str) -> PathList:  # noqa: ARG002
        """The same ones from any host to any other one."""
        return self._list
