# SPDX-License-Identifier: Apache-2.0
"""Presto: the flowcells of a flow (parts of equal size) take the next hops round-robin (RLB §II-A.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from finsy.p4entity import P4Entity

from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import common_entries, flowcell_config
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext
from tailrace.spec import keys
from tailrace.topology import Topology

CELL = keys.size(
    "cell", "size of a flowcell; each flowcell of a flow takes the next path", least=1, section="RLB §VI-A"
)
DEFAULT_CELL_BYTES = 64 * 1024
"""RLB §VI-A; counted in bytes of the frames that hosts send."""


@scheme
class PrestoConfig(SchemeConfig, frozen=True, kw_only=True):
    """A flow is divided into flowcells of `cell_bytes`, which take the next hops round-robin."""

    name: ClassVar[str] = "presto"
    about: ClassVar[str] = "flowcells of a flow take the next hops round-robin"
    cell_bytes: Annotated[int, CELL] = DEFAULT_CELL_BYTES

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedPresto:
        return self.resolved(ResolvedPresto, topology, context, program=self.name)


class ResolvedPresto(Resolved, frozen=True, kw_only=True):
    cell_bytes: int

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        return common_entries(plan, flowcell_config(plan, self.cell_bytes))
