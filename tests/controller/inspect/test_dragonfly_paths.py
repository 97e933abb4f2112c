# SPDX-License-Identifier: Apache-2.0
"""Paths of a Dragonfly as the inspection walks them: minimal, and nothing that looks like a loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from finsy.proto import p4i, p4r

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.paths import Walker
from tailrace.p4rt import programs
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import parse_topology
from tests.flowcut.fabric import build


class InProcess:
    """A connection to a switch of a virtual network."""

    def __init__(self, network: Network, name: str, program: str) -> None:
        self.name = name
        self._switch = network.p4rt(name)
        self._info = programs.load(program).p4info

    def p4info(self) -> p4i.P4Info:
        return self._info

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        responses = self._switch.read(p4r.ReadRequest(entities=entities))
        return [entity for response in responses for entity in response.entities]


@pytest.mark.parametrize(
    ("scheme", "program"), [("ugal-l", "dragonfly"), ("flowcut:variant=ingress", "flowcut_dragonfly")]
)
@pytest.mark.parametrize("words", ["dragonfly:p=1,a=3,h=2,groups=3", "dragonfly:p=1,a=3,h=1"])
def test_minimal_paths_are_walked(words: str, scheme: str, program: str) -> None:
    """Every pair, without a problem; switches of the two groups only, at most four in a row."""
    topology = parse_topology(words)
    group = {switch.name: switch.group for switch in topology.switches}
    with build(topology, parse_scheme(scheme)) as network:
        nodes = {name: InspectedSwitch(name, InProcess(network, name, program)) for name in group}
        walker = Walker(topology, nodes)
        for src, dst in permutations(topology.hosts, 2):
            walk = walker.walk(src, dst)
            assert walk.problems == ()
            assert {group[str(row["switch"])] for row in walk.rows} <= {group[src.switch], group[dst.switch]}
            hops = [row["hop"] for row in walk.rows if isinstance(row["hop"], int)]
            assert max(hops) <= 4
            assert len({(row["hop"], row["switch"]) for row in walk.rows}) == len(walk.rows)
