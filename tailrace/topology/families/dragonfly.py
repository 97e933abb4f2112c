# SPDX-License-Identifier: Apache-2.0
"""Dragonfly: groups of a completely connected routers, with p hosts and h global links on each router.

The canonical network has a*h + 1 groups with one link between each two. With fewer groups the global ports
are shared out evenly, so that each two groups have floor(a*h / (groups - 1)) links, as in the system of
Flowcut §III-B1 (p=16,a=16,h=3,groups=4: 16 links between each two groups); ports left over stay free.

Global port n = l * (groups - 1) + (d - 1) of a group, counted over its routers, is the l-th link to the group
d further on; its other end is port l * (groups - 1) + (groups - d - 1). Ports of a router: hosts, then the
other routers of its group in their order, then global links.
"""

from __future__ import annotations

from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import GROUP_LINK_KEYS, links_of
from tailrace.topology.model import Topology
from tailrace.words import Options, Words


def dragonfly(words: Words) -> Topology:
    """dragonfly:p=,a=,h=,groups=,local=,global=,host= (groups: a*h + 1 unless given).

    Raises:
        SpecError: a bad option, such as more groups than global links can join.
    """
    options = Options(words, ("p", "a", "h", "groups", *GROUP_LINK_KEYS))
    hosts = options.integer("p", 2, least=1)
    routers = options.integer("a", 4, least=1)
    global_links = options.integer("h", 2, least=1)
    most = routers * global_links + 1
    groups = options.integer("groups", most, least=1, most=most)
    builder = Builder(words, links_of(options))
    switches = groups * routers
    within, between = switches * (routers - 1) // 2, switches * global_links // 2
    builder.expect(switches=switches, hosts=switches * hosts, links=within + between)
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
        number = link * (groups - 1) + distance - 1
        return names[group][number // global_links], first_global + number % global_links

    for a in range(groups):
        for b in range(a + 1, groups):
            for link in range(links):
                builder.link_ports(*end(a, b - a, link), *end(b, groups - (b - a), link))
    return builder.topology()
