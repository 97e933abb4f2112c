# SPDX-License-Identifier: Apache-2.0
"""Dragonfly: groups of `a` completely connected routers, with p hosts and h global links (to other groups) on
each router.

The canonical network has a*h + 1 groups with one link between each pair. With fewer groups the global ports
are divided evenly, so that each pair of groups has floor(a*h / (groups - 1)) links, as in the system of
Flowcut §III-B1 (p=16,a=16,h=3,groups=4: 16 links per pair of groups); remaining ports stay unused.

Global port n = l * (groups - 1) + (d - 1) of a group g, counted over its routers, is the l-th link to group
g + d (modulo groups); its other end is port l * (groups - 1) + (groups - d - 1) there. Ports of a router:
hosts, then the other routers of its group in order, then global links.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tailrace.spec import SpecError, keys
from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import GroupLinks, register


@register("dragonfly", "groups of completely connected routers, with links between each pair of groups")
class Dragonfly(msgspec.Struct, frozen=True):
    """A Dragonfly."""

    links: GroupLinks
    p: Annotated[int, keys.integer("p", "hosts per router", least=1)] = 2
    a: Annotated[int, keys.integer("a", "routers per group", least=1)] = 4
    h: Annotated[int, keys.integer("h", "links per router to other groups", least=1)] = 2
    groups: Annotated[
        int | None, keys.integer("groups", "number of groups", least=1, absent="a*h + 1, the maximum")
    ] = None

    def __post_init__(self) -> None:
        """Raises SpecError for more groups than the links can connect."""
        most = self.a * self.h + 1
        if self.groups is not None and self.groups > most:
            raise SpecError(f"groups must be at most {most}, found '{self.groups}'")

    def build(self, builder: Builder) -> None:
        hosts, routers, global_links = self.p, self.a, self.h
        most = routers * global_links + 1
        groups = most if self.groups is None else self.groups
        switches = groups * routers
        links_within, links_between = switches * (routers - 1) // 2, switches * global_links // 2
        # refuses a network that is too large, before it is built
        builder.expect(switches=switches, hosts=switches * hosts, links=links_within + links_between)
        names = [
            [builder.switch(f"r{group + 1}_{i + 1}", "router", group, hosts) for i in range(routers)]
            for group in range(groups)
        ]
        for group in names:
            for i, router in enumerate(group):
                for j in range(i + 1, routers):
                    builder.link_ports(router, hosts + j, group[j], hosts + i + 1)
        first_global = hosts + routers
        links = (most - 1) // (groups - 1) if groups > 1 else 0

        def end(group: int, distance: int, link: int) -> tuple[str, int]:
            """Router and port of a group's link number `link` to the group at this distance."""
            index = link * (groups - 1) + distance - 1
            return names[group][index // global_links], first_global + index % global_links

        for a in range(groups):
            for b in range(a + 1, groups):
                for link in range(links):
                    builder.link_ports(*end(a, b - a, link), *end(b, groups - (b - a), link))
