# SPDX-License-Identifier: Apache-2.0
"""The registry of patterns, and keys that several patterns share.

Sizes     size=: bytes of each flow; or cdf=: a measured distribution, by name or from a file
          (sizes.py); unit=: bytes of a unit of its sizes; most=: upper limit of the sizes drawn from it
Peers     peers=remote or cross=true: only hosts of different switches are paired, so that all traffic
          crosses the fabric (CONGA's rule, Flowcut §III-B2); peers=group: only hosts in different groups
Seed      seed=: overrides the experiment's seed
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tailrace.experiments.workloads.pairs import APART, HOSTS, SWITCHES
from tailrace.experiments.workloads.sizes import NAMES, SizeCdf, find_cdf, name_of
from tailrace.experiments.workloads.transfer import Pattern
from tailrace.spec import SpecError, keys
from tailrace.spec.registry import Registry
from tailrace.spec.units import MOST_INTEGER

DEFAULT_BYTES = 1 << 20

SIZE = keys.size("size", "bytes of each flow", least=1)
EITHER_SIZE = keys.size("size", "bytes of each flow", least=1, absent="1MiB")
"""size= of patterns that accept cdf= in its place."""

JITTER = keys.time("jitter", "flows start at random times, uniform from 0 to this")
BACKGROUND = keys.size(
    "background",
    "size of background flows, a permutation among the other hosts; not measured",
    least=1,
    absent="none",
)
TAKING_PART = keys.integer("hosts", "number of hosts that take part, drawn at random", least=2, absent="all")
BY_HOST, RANDOM = ORDERS = ("hosts", "random")
ORDER = keys.choice(
    "order", "ranks of the hosts that take part: in the topology's order, or drawn at random", ORDERS
)
"""Spritz's authors draw ranks at random (allreduce_ring_bg_64MiB_4MiB.cm); the paper leaves it open."""

IN_TOTAL = keys.integer("flows", "total number of flows", least=1, absent="one per host")


class Sizes(msgspec.Struct, frozen=True):
    """The sizes of flows: all equal, or drawn from a distribution."""

    size_bytes: Annotated[int | None, EITHER_SIZE] = None
    cdf: Annotated[
        SizeCdf | None,
        keys.parsed(
            "cdf",
            f"distribution of flow sizes: {', '.join(NAMES)}",
            "NAME|FILE",
            find_cdf,
            show=name_of,
            absent="none",
        ),
    ] = None
    most_bytes: Annotated[
        int | None, keys.size("most", "maximum of the sizes drawn from cdf=", least=1, absent="none")
    ] = None
    unit_bytes: Annotated[
        int | None,
        keys.size("unit", "unit of the sizes in cdf=FILE, such as 1500B for packets", least=1, absent="1B"),
    ] = None

    def __post_init__(self) -> None:
        """Refuse most= and unit= without cdf=, and both size= and cdf=."""
        for name, value in (("most", self.most_bytes), ("unit", self.unit_bytes)):
            if self.cdf is None and value is not None:
                raise SpecError(f"{name} may only be given together with cdf")
        if self.cdf is not None and self.size_bytes is not None:
            raise SpecError("expected either size= or cdf=")

    def check_given(self) -> None:
        """Raises SpecError if neither size= nor cdf= is given."""
        if self.size_bytes is None and self.cdf is None:
            raise SpecError("expected either size= or cdf=")

    @property
    def distribution(self) -> SizeCdf:
        """The distribution from which sizes are drawn."""
        if self.cdf is None:
            return SizeCdf.always(DEFAULT_BYTES if self.size_bytes is None else self.size_bytes)
        sizes = self.cdf if self.unit_bytes is None else self.cdf.in_units(self.unit_bytes)
        return sizes if self.most_bytes is None else sizes.clipped(self.most_bytes)


class Peers(msgspec.Struct, frozen=True):
    """The keys for what must differ between sender and receiver."""

    peers: Annotated[
        str | None,
        keys.choice(
            "peers",
            "senders and receivers: any hosts, on different switches, or in different groups",
            APART,
            absent=HOSTS,
        ),
    ] = None
    cross: Annotated[
        bool | None,
        keys.flag("cross", "pair only hosts on different switches, as peers=remote does", absent="off"),
    ] = None

    def __post_init__(self) -> None:
        """Refuse contradicting peers= and cross=."""
        if None not in (self.cross, self.peers) and self.cross != (self.peers != HOSTS):
            raise SpecError("peers= and cross= contradict each other")

    @property
    def apart(self) -> str:
        """What must differ between sender and receiver: one of pairs.APART."""
        return self.peers or (SWITCHES if self.cross else HOSTS)


class Seed(msgspec.Struct, frozen=True):
    """The key that every workload has."""

    seed: Annotated[
        int | None,
        keys.integer(
            "seed",
            "seed of this workload",
            least=0,
            most=MOST_INTEGER,
            values="number from 0",
            absent="the run's seed",
        ),
    ] = None


WORKLOADS: Registry[Pattern] = Registry("workload", also=(Seed,), files="FILE", methods={"transfers": 2})
"""All patterns by name; their method `transfers` has two arguments."""

register = WORKLOADS.register
