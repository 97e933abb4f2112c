# SPDX-License-Identifier: Apache-2.0
"""Presto: the flowcells of a flow (parts of equal size) take the next hops round-robin (RLB §II-A.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.codec.templates import RETH_BYTES
from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import common_entries, flowcell_config
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.timing import FRAME_OVERHEAD_BYTES

CELL = keys.size(
    "cell", "size of a flowcell; each flowcell of a flow takes the next path", least=1, section="RLB §VI-A"
)
DEFAULT_CELL_BYTES = 64 * 1024
"""RLB §VI-A; counted in bytes of the frames that hosts send."""

CELL_PACKETS = keys.integer(
    "packets", "size of a flowcell in full packets, instead of cell", least=0, most=64, absent="cell"
)


def cell_bytes_of(cell_bytes: int, packets: int, context: SchemeContext) -> int:
    """The size of a flowcell: `packets` full packets as hosts send them, or `cell_bytes` if that is 0."""
    if not packets:
        return cell_bytes
    payload_bytes = context.frame_bytes - FRAME_OVERHEAD_BYTES
    return packets * (payload_bytes + HEADER_BYTES) + RETH_BYTES  # a message's first packet has a RETH


@scheme
class PrestoConfig(SchemeConfig, frozen=True, kw_only=True):
    """A flow is divided into flowcells of `cell_bytes`, which take the next hops round-robin."""

    name: ClassVar[str] = "presto"
    title: ClassVar[str] = "Presto"
    about: ClassVar[str] = "flowcells of a flow take the next hops round-robin"
    cell_bytes: Annotated[int, CELL] = DEFAULT_CELL_BYTES
    cell_packets: Annotated[int, CELL_PACKETS] = 0

    def checked(self, spec: Spec) -> PrestoConfig:
        if self.cell_packets:
            spec.refuse(("cell",), "packets=0")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedPresto:
        cell_bytes = cell_bytes_of(self.cell_bytes, self.cell_packets, context)
        return self.resolved(ResolvedPresto, topology, context, program=self.name, cell_bytes=cell_bytes)


class ResolvedPresto(Resolved, frozen=True, kw_only=True):
    cell_bytes: int

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        return common_entries(plan, flowcell_config(plan, self.cell_bytes))
