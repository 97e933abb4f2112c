# SPDX-License-Identifier: Apache-2.0
"""Parts of networks: everything is in one, none is empty, pods stay whole where there are enough of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tailrace.topology.partition import MOST_RANKS, check_ranks, parts

TOPOLOGIES = (
    "leaf-spine:leaves=2,spines=4,hosts=2",
    "leaf-spine:leaves=5,spines=3,hosts=1",
    "fat-tree:k=4",
    "fat-tree:k=8,taper=2",
    "dragonfly:p=1,a=4,h=2",
    "slim-fly:p=1,q=5",
)


@settings(max_examples=60)
@given(words=st.sampled_from(TOPOLOGIES), data=st.data())
def test_all_switches_and_hosts_are_in_one_part(words: str, data: st.DataObject) -> None:
    """And hosts are with their switch."""
    topology = parse_topology(words)
    ranks = data.draw(st.integers(1, min(MOST_RANKS, len(topology.switches))))
    part_of = parts(topology, ranks)
    switches, hosts = ({item.name for item in topology.switches}, {item.name for item in topology.hosts})
    assert set(part_of) == switches | hosts
    assert {part_of[name] for name in switches} == set(range(ranks))
    assert all(part_of[host.name] == part_of[host.switch] for host in topology.hosts)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_fat_tree_is_cut_between_pods(ranks: int) -> None:
    """Pods are whole, cores are dealt out, and no part has a pod or a core more than it must."""
    topology = parse_topology("fat-tree:k=8")
    part_of = parts(topology, ranks)
    pods = {(switch.group, part_of[switch.name]) for switch in topology.switches if switch.group >= 0}
    cores = Counter(part_of[switch.name] for switch in topology.switches if switch.role == "core")
    for counts in (Counter(part for _, part in pods), cores):
        assert max(counts.values()) - min(counts.values()) <= 1
    assert len(pods) == 8


def test_groups_of_a_dragonfly_are_whole() -> None:
    topology = parse_topology("dragonfly:p=1,a=4,h=2")
    part_of = parts(topology, 3)
    assert len({(switch.group, part_of[switch.name]) for switch in topology.switches}) == 9


@pytest.mark.parametrize("ranks", [-1, 0, 5, 65])
def test_there_are_as_many_parts_as_switches_at_most(ranks: int) -> None:
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1")
    with pytest.raises(SpecError, match=rf"^ranks: expected 1\.\.4 for leaf-spine:.*, found {ranks}$"):
        check_ranks(topology, ranks)
    with pytest.raises(SpecError, match=r"expected 1\.\.64 for"):
        check_ranks(parse_topology("fat-tree:k=8"), 65)
