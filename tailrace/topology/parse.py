# SPDX-License-Identifier: Apache-2.0
"""Topologies from words such as leaf-spine:leaves=2,spines=4,rate=10Gbps,delay=1us, or from a file."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.topology.families.dragonfly import dragonfly
from tailrace.topology.families.fat_tree import fat_tree
from tailrace.topology.families.leaf_spine import leaf_spine
from tailrace.topology.families.slim_fly import slim_fly
from tailrace.topology.families.tutorials import read_topology_json
from tailrace.topology.model import Topology
from tailrace.words import SpecError, Words, parse

_KINDS: dict[str, Callable[[Words], Topology]] = {
    "leaf-spine": leaf_spine,
    "fat-tree": fat_tree,
    "dragonfly": dragonfly,
    "slim-fly": slim_fly,
}


def parse_topology(text: str) -> Topology:
    """The topology that words describe, or that a p4lang tutorials' topology.json holds.

    A file may be followed by rate= and delay=, for the links to which it gives none, and by latency=.

    Raises:
        SpecError: unknown name, bad option, or no usable network; one line says which.
    """
    words = parse(text, "topology")
    if words.name.endswith(".json"):
        return read_topology_json(words)
    make = _KINDS.get(words.name)
    if make is None:
        raise SpecError(f"topology {words.name!r} is not known; expected {', '.join(_KINDS)} or FILE.json")
    return make(words)
