# SPDX-License-Identifier: Apache-2.0
"""What endpoints are told: EVs, latencies, and the weights of Spritz eq. 1."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from tailrace.hosts.flows.paths import PathList
from tailrace.p4rt import programs
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.endpoints import COARSE_EVS, EndpointPaths
from tailrace.topology import parse_topology

TABLE_2 = "rate=400Gbps,local=25ns,global=500ns,host=25ns"
DRAGONFLY = parse_topology(f"dragonfly:p=4,a=8,h=4,{TABLE_2}")
FIRST, LAST = DRAGONFLY.hosts[0], DRAGONFLY.hosts[-1]


def of(words: str) -> EndpointPaths:
    scheme = resolve(parse_scheme(words), DRAGONFLY)
    assert isinstance(scheme, ResolvedBounded)
    return scheme.paths(DRAGONFLY)


def by_latency(words: str) -> dict[int, float]:
    """The weight of each latency in the list from the first host to the last."""
    listed = of(words).of(FIRST.ip, LAST.ip)
    return dict(zip(listed.latencies_ps, listed.weights, strict=True))


def test_weights() -> None:
    """The paper's example: 799.6 ns beside 1491.0 ns is 1.86, times the scale; the longest path has 1."""
    weights = by_latency("spritz:scale=1")
    assert 1.0 == weights[1_491_000] == min(weights.values())
    assert 1.86 == round(weights[799_600], 2)
    scaled = by_latency("spritz")
    assert weights.keys() == scaled.keys()
    for latency, weight in scaled.items():
        exact = Fraction(1_491_000, latency) * 3 if latency != 1_491_000 else Fraction(1)
        assert weight == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("words", ["spritz:weights=uniform", "ops", "ecmp:over=all", "minimal:draw=hop"])
def test_uniform(words: str) -> None:
    """All weights are 1, also where switches choose and only background flows use a list."""
    assert {1.0} == set(of(words).of(FIRST.ip, LAST.ip).weights)


def test_lists() -> None:
    """They are those of the switches of the hosts."""
    endpoints = of("spritz")
    paths = endpoints.paths.between(FIRST.switch, LAST.switch)
    listed = endpoints.of(FIRST.ip, LAST.ip)
    assert tuple(path.ev for path in paths) == listed.evs
    assert tuple(path.latency_ps for path in paths) == listed.latencies_ps
    assert (32, ()) == (len(listed.evs), listed.vlans)
    neighbour = DRAGONFLY.hosts[1]
    assert neighbour.switch == FIRST.switch
    assert PathList((1,), (0,), (1.0,)) == endpoints.of(FIRST.ip, neighbour.ip)
    with pytest.raises(KeyError):
        endpoints.of(FIRST.ip, "192.0.2.1")


def test_frame_sets_latencies() -> None:
    """A frame that is 4000 bytes smaller is sent 80 ns sooner on each link."""
    full, small = (of(f"ops:frame={size}").of(FIRST.ip, LAST.ip) for size in (4160, 160))
    sooner, later = (dict(zip(each.evs, each.latencies_ps, strict=True)) for each in (small, full))
    links = {path.ev: len(path.ports) for path in of("ops").paths.between(FIRST.switch, LAST.switch)}
    assert {ev: 80_000 * count for ev, count in links.items()} == {ev: later[ev] - sooner[ev] for ev in later}


@pytest.mark.parametrize("words", ["spritz:", "ops:", "flicr:weights=uniform,"])
def test_subset(words: str) -> None:
    """A sender that holds some paths holds all minimal ones before any other; the order stays."""
    listed = of("ops").paths.between(FIRST.switch, LAST.switch)
    place = {path.ev: i for i, path in enumerate(listed)}
    minimal = sum(path.category == "minimal" for path in listed)
    for most in (1, minimal, minimal + 1, len(listed) - 1):
        held = of(f"{words}paths={most}").of(FIRST.ip, LAST.ip)
        places = [place[ev] for ev in held.evs]
        assert most == len(places)
        assert sorted(places) == places
        assert places[: min(most, minimal)] == [i for i in places if i < minimal]
        assert 1.0 == held.weights[-1]
    for most in (len(listed), 65535):
        assert of(words[:-1]).of(FIRST.ip, LAST.ip) == of(f"{words}paths={most}").of(FIRST.ip, LAST.ip)


def test_subsets_spread() -> None:
    """Each pair draws for itself, the same every time, and all paths are held by somebody; seeds differ."""
    ends = [(src, dst) for src in DRAGONFLY.leaves[:8] for dst in DRAGONFLY.leaves[-40:]]

    def held(words: str) -> list[tuple[int, ...]]:
        endpoints = of(words)
        return [endpoints.between(*pair).evs for pair in ends]

    drawn = held("spritz:paths=4")
    assert held("spritz:paths=4") == drawn != held("spritz:paths=4,seed=1")
    first = DRAGONFLY.leaves[0]
    known = {ev for pair, evs in zip(ends, drawn, strict=True) if pair[0] == first for ev in evs}
    assert {ev for dst in DRAGONFLY.leaves[-40:] for ev in of("spritz").between(first, dst).evs} == known


def test_too_few_for_all_minimal_paths() -> None:
    """Where minimal paths alone are too many they are drawn, and not the first ones taken."""
    tree = parse_topology("fat-tree:k=8")
    scheme = resolve(parse_scheme("ops:paths=3"), tree)
    assert isinstance(scheme, ResolvedBounded)
    lists = scheme.paths(tree)
    drawn = {lists.between(tree.leaves[0], leaf) for leaf in tree.leaves[4:]}
    assert {3} == {len(listed.evs) for listed in drawn}
    assert len(drawn) > len(tree.leaves) // 2


def test_classes() -> None:
    """Coarse-grained, some EVs for each class, each with its VLAN ID; within a group there is one class only."""
    endpoints = of("spritz:mode=coarse")
    listed = endpoints.of(FIRST.ip, LAST.ip)
    vid = programs.load("spritz").enum
    minimal, detour = vid("VlanId_t", "MINIMAL"), vid("VlanId_t", "NONMINIMAL")
    assert [minimal] * COARSE_EVS + [detour] * COARSE_EVS == list(listed.vlans)
    assert len(set(listed.evs)) == len(listed.evs) == len(listed.vlans)
    assert {799_600: COARSE_EVS} == {k: v for k, v in Counter(listed.latencies_ps).items() if k < 10**6}
    assert listed.weights[0] > listed.weights[-1] == 1.0
    near = next(host for host in DRAGONFLY.hosts if host.switch == "r1_2")
    assert {minimal} == set(endpoints.of(FIRST.ip, near.ip).vlans)
    assert () == endpoints.of(FIRST.ip, DRAGONFLY.hosts[1].ip).vlans
