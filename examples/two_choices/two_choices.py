# SPDX-License-Identifier: Apache-2.0
"""The power of two choices for each flowlet: an external scheme, in one folder (docs/extend)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from tailrace.schemes.extend import (
    EntryPlan,
    P4Entity,
    Resolved,
    SchemeConfig,
    SchemeContext,
    Topology,
    base_rtt_ns,
    common_entries,
    flowlet_config,
    group_members,
    keys,
    scheme,
)

CHOICES = ("first_choices", "other_choices")
"""The program's tables with the ports of slots, one for each choice."""


@scheme
class TwoChoicesConfig(SchemeConfig, frozen=True, kw_only=True):
    """The scheme's options, as the user writes them."""

    name: ClassVar[str] = "two-choices"
    about: ClassVar[str] = "a flowlet takes the less loaded of two random next hops"
    gap_ns: Annotated[
        int | None, keys.time("gap", "pause that begins a new flowlet", least=1, absent="from the topology")
    ] = None

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedTwoChoices:
        """Derives the options that are not given: the default gap is one base RTT."""
        gap_ns = base_rtt_ns(topology, context.frame_bytes) if self.gap_ns is None else self.gap_ns
        return self.resolved(ResolvedTwoChoices, topology, context, program="two_choices", gap_ns=gap_ns)


class ResolvedTwoChoices(Resolved, frozen=True, kw_only=True):
    """The scheme in a given network, with all options known."""

    gap_ns: int

    @property
    def dense_groups(self) -> bool:
        """True: each port has one slot, so that two different slots are two ports."""
        return True

    @property
    def flowlet_gap_ns(self) -> int:
        """The shortest pause after which a flow may change its path."""
        return self.gap_ns

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """The entries that every program needs, the gap, and a copy of all slots for each choice."""
        yield from common_entries(plan, flowlet_config(plan, self.gap_ns))
        for table in CHOICES:
            yield from group_members(plan, table, "choice")
