# SPDX-License-Identifier: Apache-2.0
"""Jellyfish (Singla et al., NSDI 2012): a random regular graph of switches, as a plug-in (docs/extend).

Each switch has `ports` ports, `hosts` of them for hosts. Switches with free ports are linked at random, each
pair once (§3 of the paper). If a switch with two or more free ports has no partner left, a random link is
replaced by two links to this switch. At the end some switches may have a free port.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated

from tailrace.api.extend import Builder, LinkOptions, SpecError, keys, register_topology


@register_topology("jellyfish", "a random regular graph of switches")
@dataclass(frozen=True, slots=True)
class Jellyfish:
    """A Jellyfish."""

    links: LinkOptions
    switches: Annotated[int, keys.integer("switches", "number of switches", least=2, most=4096)] = 16
    ports: Annotated[int, keys.integer("ports", "ports of each switch", least=2)] = 6
    hosts: Annotated[int, keys.integer("hosts", "hosts of each switch", least=1)] = 2
    seed: Annotated[int, keys.integer("seed", "seed of the random links", least=0)] = 1

    def __post_init__(self) -> None:
        """Raises SpecError if there is no such graph."""
        if not 0 < self.ports - self.hosts < self.switches:
            raise SpecError(
                f"ports minus hosts must be 1 to {self.switches - 1}, found '{self.ports - self.hosts}'"
            )

    def build(self, builder: Builder) -> None:
        """Adds the switches, then the links; refuses a graph that is not connected (try another seed)."""
        count, degree = self.switches, self.ports - self.hosts
        builder.expect(switches=count, hosts=count * self.hosts, links=count * degree // 2)
        names = [builder.switch(f"s{number}", "router", hosts=self.hosts) for number in range(1, count + 1)]
        for a, b in sorted(random_links(count, degree, random.Random(self.seed))):
            builder.link(names[a], names[b])


def random_links(count: int, degree: int, rng: random.Random) -> set[tuple[int, int]]:
    """Links between switches 0 to count - 1, at most `degree` of each; the lower number is first."""
    near: list[set[int]] = [set() for _ in range(count)]
    free = list(range(count))
    while free:
        a = rng.choice(free)
        partners = [b for b in free if b != a and b not in near[a]]
        if partners:
            _join(near, a, rng.choice(partners))
        elif degree - len(near[a]) < 2 or not _split_a_link(near, a, rng):
            free.remove(a)  # its last port stays free
        free = [number for number in free if len(near[number]) < degree]
    return {(a, b) for a in range(count) for b in near[a] if a < b}


def _join(near: list[set[int]], a: int, b: int) -> None:
    near[a].add(b)
    near[b].add(a)


def _split_a_link(near: list[set[int]], a: int, rng: random.Random) -> bool:
    """Puts switch `a` into a random link between two switches that are not its neighbours, if any."""
    others = [x for x in range(len(near)) if x != a and x not in near[a]]
    pairs = [(x, y) for x in others for y in sorted(near[x]) if x < y and y not in near[a]]
    if not pairs:
        return False
    x, y = rng.choice(pairs)
    near[x].remove(y)
    near[y].remove(x)
    _join(near, a, x)
    _join(near, a, y)
    return True
