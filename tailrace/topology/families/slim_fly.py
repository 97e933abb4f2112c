# SPDX-License-Identifier: Apache-2.0
"""Slim Fly: McKay-Miller-Širáň graphs, of diameter 2 (Besta and Hoefler, SC 2014).

For a prime power q = 4w + d with d one of -1, 0, 1 there are 2q² routers (s, x, y), s in {0, 1}, x and y in
GF(q), each with (3q - d) / 2 links and p hosts:

    (0, x, y) - (0, x, y')   if y - y' is in X
    (1, m, c) - (1, m, c')   if c - c' is in X'
    (0, x, y) - (1, m, c)    if y = m*x + c

X and X' are the sets of even and odd powers of a primitive element. For d = -1, X has the even powers below
2w and the odd ones from 2w - 1 on, and X' the odd ones below 2w and the even ones from 2w on.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tailrace.spec import SpecError, keys
from tailrace.topology.families.build import Builder
from tailrace.topology.families.galois import GaloisField, field, prime_power
from tailrace.topology.families.options import GroupLinks, register

_LARGEST = 32


def generators(gf: GaloisField) -> tuple[frozenset[int], frozenset[int]]:
    """The sets X and X' of a field with q = 4w + d elements, d one of -1, 0, 1."""
    powers = gf.powers()
    order = len(powers)  # of the multiplicative group: exponents count modulo this
    if gf.q % 4 == 3:
        half = (gf.q + 1) // 2  # 2w
        exponents = [*range(0, half - 1, 2), *range(half - 1, 2 * half - 2, 2)]
        exponents_of_x2 = [*range(1, half, 2), *range(half, 2 * half - 1, 2)]
    else:
        size = gf.q // 2
        exponents = [2 * i for i in range(size)]
        exponents_of_x2 = [2 * i + 1 for i in range(size)]
    x, x2 = (frozenset(powers[i % order] for i in each) for each in (exponents, exponents_of_x2))
    return x, x2


@register("slim-fly", "routers in a graph of diameter 2")
class SlimFly(msgspec.Struct, frozen=True):
    """A Slim Fly; routers with the same (s, x) form a group."""

    links: GroupLinks
    p: Annotated[
        int | None,
        keys.integer(
            "p",
            "hosts per router",
            least=1,
            absent="half the number of links between a router and others, rounded up",
        ),
    ] = None
    q: Annotated[int, keys.integer("q", "a prime power; there are 2q² routers", least=3, most=_LARGEST)] = 5

    def __post_init__(self) -> None:
        """Raises SpecError for sizes without such a graph."""
        if prime_power(self.q) is None or self.q % 4 == 2:
            raise SpecError(f"q must be a power of a prime from 3 to {_LARGEST}, found '{self.q}'")

    def build(self, builder: Builder) -> None:
        q = self.q
        delta = {0: 0, 1: 1, 3: -1}[q % 4]
        degree = (3 * q - delta) // 2
        hosts = (degree + 1) // 2 if self.p is None else self.p
        # refuses a network that is too large, before it is built
        builder.expect(switches=2 * q * q, hosts=2 * q * q * hosts, links=q * q * degree)
        gf = field(q)
        name = {
            (side, x, y): builder.switch(f"r{side}_{x}_{y}", "router", side * q + x, hosts)
            for side in (0, 1)
            for x in range(q)
            for y in range(q)
        }
        for side, chosen in enumerate(generators(gf)):
            for x in range(q):
                for y in range(q):
                    for other in range(y + 1, q):
                        if gf.add[y][gf.negative(other)] in chosen:
                            builder.link(name[side, x, y], name[side, x, other])
        for x in range(q):
            for m in range(q):
                for c in range(q):
                    builder.link(name[0, x, gf.add[gf.mul[m][x]][c]], name[1, m, c])
