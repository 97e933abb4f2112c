# SPDX-License-Identifier: Apache-2.0
"""Leaf-spine: every leaf has one link to every spine.

Port h + j of a leaf with h hosts leads to spine j; port i of a spine leads to leaf i.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tailrace.spec import keys
from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import LinkOptions, register
from tailrace.topology.model import Restricted
from tailrace.topology.paths.restricted import RESTRICTED


@register("leaf-spine", "every leaf has a link to every spine")
class LeafSpine(msgspec.Struct, frozen=True):
    """A leaf-spine."""

    links: LinkOptions
    leaves: Annotated[int, keys.integer("leaves", "number of leaves, the switches with hosts", least=1)] = 2
    spines: Annotated[
        int, keys.integer("spines", "number of spines, the switches that connect leaves", least=1)
    ] = 4
    hosts: Annotated[int, keys.integer("hosts", "hosts per leaf", least=1)] = 8
    restricted: Annotated[tuple[Restricted, ...] | None, RESTRICTED] = None

    def build(self, builder: Builder) -> None:
        leaves, spines = self.leaves, self.spines
        # refuses a network that is too large, before it is built
        builder.expect(switches=leaves + spines, hosts=leaves * self.hosts, links=leaves * spines)
        leaf_names = [
            builder.switch(f"leaf{number}", "leaf", hosts=self.hosts) for number in range(1, leaves + 1)
        ]
        spine_names = [builder.switch(f"spine{number}", "spine") for number in range(1, spines + 1)]
        for leaf in leaf_names:
            for spine in spine_names:
                builder.link(leaf, spine)
        builder.restrict(self.restricted)
