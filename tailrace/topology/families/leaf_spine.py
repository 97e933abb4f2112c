# SPDX-License-Identifier: Apache-2.0
"""Leaf-spine: every leaf is linked once to every spine.

Port h + j of a leaf with h hosts leads to spine j; port i of a spine leads to leaf i.
"""

from __future__ import annotations

from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import LINK_KEYS, links_of
from tailrace.topology.model import Topology
from tailrace.topology.paths.restricted import KEY, narrow_of
from tailrace.words import Options, Words


def leaf_spine(words: Words) -> Topology:
    """leaf-spine:leaves=,spines=,hosts=,narrow= (hosts on each leaf).

    Raises:
        SpecError: a bad option.
    """
    options = Options(words, ("leaves", "spines", "hosts", *LINK_KEYS, KEY))
    leaves = options.integer("leaves", 2, least=1)
    spines = options.integer("spines", 4, least=1)
    hosts = options.integer("hosts", 8, least=1)
    builder = Builder(words, links_of(options))
    builder.expect(switches=leaves + spines, hosts=leaves * hosts, links=leaves * spines)
    leaf_names = [builder.switch(f"leaf{number}", "leaf", hosts=hosts) for number in range(1, leaves + 1)]
    spine_names = [builder.switch(f"spine{number}", "spine") for number in range(1, spines + 1)]
    for leaf in leaf_names:
        for spine in spine_names:
            builder.link(leaf, spine)
    return builder.topology(narrow_of(options))
