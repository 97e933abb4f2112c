# SPDX-License-Identifier: Apache-2.0
"""Sizes of endpoints' tables: Spritz, Fig. 3, and the lists that they stand for."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tailrace.topology import parse_topology
from tailrace.topology.paths.bounded import BoundedPaths
from tailrace.topology.paths.endpoint_table import endpoint_bytes, max_list_length

MIB = 1 << 20


def test_fig_3() -> None:
    """40k endpoints: 200 paths and 2.3 MiB in a Dragonfly, 1771 paths and 8.5 MiB in a Slim Fly."""
    dragonfly = parse_topology("dragonfly:p=1,a=20,h=10")
    assert (4020, 200) == (len(dragonfly.switches), max_list_length(dragonfly))
    assert 2.3 == round(endpoint_bytes(dragonfly) / MIB, 1)
    slim_fly = parse_topology("slim-fly:p=1,q=29")
    assert (1682, 1771) == (len(slim_fly.switches), max_list_length(slim_fly))
    assert 8.5 == round(endpoint_bytes(slim_fly) / MIB, 1)


@pytest.mark.parametrize(
    "words",
    [
        "dragonfly:p=1,a=3,h=1", "dragonfly:p=1,a=4,h=2,groups=3", "dragonfly:p=1,a=3,h=2,groups=5",
        "dragonfly:p=1,a=4,h=1,groups=1", "dragonfly:p=1,a=1,h=1,groups=1",
        "slim-fly:p=1,q=3", "slim-fly:p=1,q=4", "slim-fly:p=1,q=5",
        "leaf-spine:leaves=2,spines=3", "fat-tree:k=4", "fat-tree:k=8,taper=2",
    ],
)  # fmt: skip
def test_counts_are_those_of_the_lists(words: str) -> None:
    """The longest list of all pairs of switches with hosts has so many paths."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    lists = (paths.entries(*pair) for pair in permutations(topology.leaves, 2))
    assert max_list_length(topology) == max(map(len, lists), default=0)


@pytest.mark.parametrize("q", [7, 8, 9])
def test_routers_of_a_kind_are_alike(q: int) -> None:
    """From others than the two that are counted no list is longer."""
    topology = parse_topology(f"slim-fly:p=1,q={q}")
    paths = BoundedPaths(topology)
    names = [switch.name for switch in topology.switches]
    sources = (names[0], names[q + 1], names[q * q], names[-1])
    longest = [max(len(paths.entries(src, dst)) for dst in names if dst != src) for src in sources]
    assert longest[0] == longest[1]
    assert longest[2] == longest[3]
    assert max_list_length(topology) == max(longest)


def test_other_graphs() -> None:
    """There it is an upper bound."""
    topology = parse_topology(str(Path(__file__).parents[1] / "flowcut" / "irregular.json"))
    paths = BoundedPaths(topology)
    longest = max(len(paths.entries(*pair)) for pair in permutations(topology.leaves, 2))
    assert longest <= max_list_length(topology) <= 2 * longest
