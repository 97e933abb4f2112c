# SPDX-License-Identifier: Apache-2.0
"""The power of two choices for each flowlet: a scheme from outside, in one folder (docs/extend.md)."""

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
"""Tables of the program, one a choice."""


@scheme
class TwoChoicesConfig(SchemeConfig, frozen=True, kw_only=True):
    """The scheme as it is written."""

    name: ClassVar[str] = "two-choices"
    about: ClassVar[str] = "a flowlet takes the less loaded of two random next hops"
    gap_ns: Annotated[
        int | None, keys.time("gap", "pause that begins a new flowlet", least=1, absent="by topology")
    ] = None

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedTwoChoices:
        """The gap is one base RTT, unless it is given."""
        gap_ns = base_rtt_ns(topology, context.frame_bytes) if self.gap_ns is None else self.gap_ns
        return self.resolved(ResolvedTwoChoices, topology, context, program="two_choices", gap_ns=gap_ns)


class ResolvedTwoChoices(Resolved, frozen=True, kw_only=True):
    """The scheme in a network."""

    gap_ns: int

    @property
    def dense_groups(self) -> bool:
        """Two choices are to be two ports."""
        return True

    @property
    def flowlet_gap_ns(self) -> int:
        """The pause that may change a flow's path."""
        return self.gap_ns

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """What every program holds, the gap, and the slots once more for each choice."""
        yield from common_entries(plan, flowlet_config(plan, self.gap_ns))
        for table in CHOICES:
            yield from group_members(plan, table, "choice")
