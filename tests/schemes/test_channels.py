# SPDX-License-Identifier: Apache-2.0
"""Channels of PFC: on all paths that switches may choose no circle of them waits for itself, and there are as
many as a scheme says that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given, settings

from tailrace.codec.numbers import TTL
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.blocks.channels import MOST_CHANNELS
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import Topology, parse_topology
from tests.long import some, times
from tests.schemes.channel_walk import Channel, dependencies
from tests.schemes.planned import default, intent
from tests.topology.graphs import any_network, damaged_tree

SMALL_DRAGONFLIES = ("dragonfly:p=1,a=2,h=1", "dragonfly:p=1,a=3,h=2,groups=4", "dragonfly:p=1,a=1,h=4")
DRAGONFLY = "dragonfly:p=1,a=4,h=2"
SMALL_SLIM_FLY, SLIM_FLY, LARGE_SLIM_FLY = (f"slim-fly:p=1,q={q}" for q in (3, 4, 5))
BY_GROUPS = (
    *("minimal", "valiant", "ugal-l", "letflow", "flowcut", "flowcut:variant=ingress,path=valiant"),
    "flowcut:variant=nic,path=mixed",
)
BY_LINKS = (
    *("spritz:variant=spray", "spritz:mode=coarse", "ops", "flicr"),
    *("minimal:draw=hop", "valiant:draw=hop", "ugal-l:draw=hop"),
)
CASES = [
    *((scheme, words) for words in SMALL_DRAGONFLIES for scheme in (*BY_GROUPS, *BY_LINKS)),
    *((scheme, DRAGONFLY) for scheme in some((*BY_GROUPS, "minimal:draw=hop", "spritz"), 2)),
    *((scheme, SMALL_SLIM_FLY) for scheme in BY_LINKS),
    *((scheme, SLIM_FLY) for scheme in ("minimal", "spritz")),
    ("minimal", LARGE_SLIM_FLY),
]


def has_circle(pairs: Iterable[tuple[Channel | None, Channel]], channels: int) -> bool:
    """Whether channels wait for each other in a circle where there are so many; those beyond share the last."""
    graph: dict[Channel, set[Channel]] = {}
    for before, after in pairs:
        if before is not None:
            number = min(before[2], channels - 1), min(after[2], channels - 1)
            graph.setdefault((*after[:2], number[1]), set()).add((*before[:2], number[0]))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


@pytest.mark.parametrize(("scheme", "words"), CASES)
def test_no_circle(scheme: str, words: str) -> None:
    """With the channels that the scheme declares; the longest path takes all of them."""
    topology = parse_topology(words)
    resolved = resolve(parse_scheme(scheme), topology)
    channels = resolved.channels(topology)
    assert 0 < channels <= MOST_CHANNELS
    pairs = set(dependencies(topology, intent(topology, resolved, target("virtual"))))
    assert max(after[2] for _, after in pairs) + 1 == channels
    assert not has_circle(pairs, channels)


@settings(max_examples=times(150, 6), deadline=None)
@given(any_network() | damaged_tree())
def test_any_network(topology: Topology) -> None:
    """No packet passes more links than there are channels; where there are none, no circle is possible."""
    for scheme in ("minimal:draw=hop", "valiant:draw=hop", "ugal-l:draw=hop", "spritz:mode=coarse"):
        resolved = resolve(parse_scheme(scheme), topology)
        channels = resolved.channels(topology)
        pairs = set(dependencies(topology, intent(topology, resolved, target("virtual"))))
        if channels:
            assert max((after[2] for _, after in pairs), default=0) < channels, scheme
        else:
            assert not has_circle(pairs, 1), scheme


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("minimal", DRAGONFLY),
        ("valiant", DRAGONFLY),
        ("valiant", SMALL_SLIM_FLY),
        ("minimal", SMALL_SLIM_FLY),
    ],
)
def test_one_priority_has_a_circle(scheme: str, words: str) -> None:
    """Without channels there is one: they are not there for nothing."""
    topology = parse_topology(words)
    pairs = set(dependencies(topology, intent(topology, parse_scheme(scheme), target("virtual"))))
    assert has_circle(pairs, 1)


@pytest.mark.parametrize("words", ["leaf-spine:leaves=2,spines=2,hosts=2", "fat-tree:k=4"])
def test_trees_need_none(words: str) -> None:
    """What goes up and then down waits for nothing that waits for it."""
    topology = parse_topology(words)
    for scheme in ("ecmp", "flowcut", "letflow", "spritz"):
        assert resolve(parse_scheme(scheme), topology).channels(topology) == 0


def test_repairs_may_be_long() -> None:
    """Where default routes lead around dead links, paths take all channels that there are."""
    topology = parse_topology(SMALL_SLIM_FLY)
    assert resolve(parse_scheme("spritz:repair=on"), topology).channels(topology) == MOST_CHANNELS


def test_entries() -> None:
    """A switch is told the TTL with which its hosts' packets begin, and how many channels there are."""
    topology = parse_topology(SMALL_DRAGONFLIES[0])
    for scheme in ("valiant", "flowcut", "spritz"):
        for intended in intent(topology, parse_scheme(scheme), target("virtual", channels=5)).values():
            assert default(intended, "channel_config") == ("set_channels", {"first_ttl": TTL, "last": 5})
        with pytest.raises(KeyError):
            default(
                next(iter(intent(topology, parse_scheme(scheme), target("virtual")).values())),
                "channel_config",
            )


def test_a_program_without_channels_is_refused() -> None:
    """In one line, before anything is written."""
    topology = parse_topology(SMALL_DRAGONFLIES[0])
    with pytest.raises(IntentError, match=r"^scheme ecmp: channels=3: the program ecmp has none$"):
        intent(topology, parse_scheme("ecmp"), target("virtual", channels=3))
