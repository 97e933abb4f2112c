# SPDX-License-Identifier: Apache-2.0
"""Regular HyperX (Ahn et al., SC 2009): switches at the points of a lattice, as a plug-in (docs/extend).

Two switches are linked if their coordinates differ in one dimension only. So the diameter is the number of
dimensions; with one dimension all switches are linked to each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated

from tailrace.api.extend import Builder, LinkOptions, SpecError, keys, register_topology

_MOST_DIMENSIONS = 8
_MOST_DIGITS = 4


@register_topology("hyperx", "switches on a lattice, all linked along each dimension")
@dataclass(frozen=True, slots=True)
class HyperX:
    """A regular HyperX."""

    links: LinkOptions
    dims: Annotated[str, keys.text("dims", "number of switches along each dimension", "such as 4x4")] = "4x4"
    hosts: Annotated[int, keys.integer("hosts", "hosts of each switch", least=1)] = 2

    def __post_init__(self) -> None:
        """Raises SpecError for other values of `dims`."""
        parts = self.dims.split("x")
        if len(parts) > _MOST_DIMENSIONS or not all(
            part.isdecimal() and len(part) <= _MOST_DIGITS and int(part) > 1 for part in parts
        ):
            raise SpecError(f"dims must be such as 4x4, found '{self.dims[:40]}'")

    def build(self, builder: Builder) -> None:
        """Adds the switches, then the links dimension by dimension."""
        sizes = [int(part) for part in self.dims.split("x")]
        count = prod(sizes)
        builder.expect(
            switches=count, hosts=count * self.hosts, links=count * sum(size - 1 for size in sizes) // 2
        )
        names = {
            point: builder.switch("s" + "_".join(map(str, point)), "router", hosts=self.hosts)
            for point in product(*map(range, sizes))
        }
        for dimension, size in enumerate(sizes):
            for point, name in names.items():
                for other in range(point[dimension] + 1, size):
                    end = (*point[:dimension], other, *point[dimension + 1 :])
                    builder.link(name, names[end])
