# SPDX-License-Identifier: Apache-2.0
"""Where patterns register themselves, and the keys that several of them have.

SIZES     size=: bytes of each flow; or cdf=: a measured distribution, by name or FILE.toml
          (sizes_file.py); most=: what is larger in it is as large as that
PEERS     peers=remote or cross=true: only hosts of different switches are paired, so that all traffic
          crosses the fabric (CONGA's rule, Flowcut §III-B2); peers=group: only hosts in different groups
seed      overrides the experiment's
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.experiments.workloads.pairs import APART, HOSTS, SWITCHES
from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.experiments.workloads.sizes_file import NAMES, find_cdf, name_of
from tailrace.experiments.workloads.transfer import Pattern
from tailrace.spec import SpecError, keys
from tailrace.spec.registry import Registry
from tailrace.spec.units import MOST_INTEGER

DEFAULT_BYTES = 1 << 20

SIZE = keys.size("size", "bytes of each flow", least=1)
EITHER_SIZE = keys.size("size", "bytes of each flow", least=1, absent="1MiB")
JITTER = keys.time("jitter", "starts are spread evenly at random from 0 to that time")
BACKGROUND = keys.size(
    "background",
    "the hosts that take no part form a permutation of flows of this size, which are not measured",
    least=1,
    absent="none",
)
TAKING_PART = keys.integer("hosts", "so many take part, drawn at random", least=2, absent="all")
IN_TOTAL = keys.integer("flows", "in total", least=1, absent="as many as hosts")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large flows are: all the same, or drawn from a distribution."""

    size_bytes: Annotated[int | None, EITHER_SIZE] = None
    cdf: Annotated[
        SizeCdf | None,
        keys.parsed(
            "cdf",
            f"sizes are drawn from it: {', '.join(NAMES)}",
            "NAME|FILE.toml",
            find_cdf,
            show=name_of,
            absent="none",
        ),
    ] = None
    most_bytes: Annotated[
        int | None, keys.size("most", "what is larger in cdf is as large as this", least=1, absent="any")
    ] = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.cdf is None and self.most_bytes is not None:
            raise SpecError("most= is for cdf= only")
        if self.cdf is not None and self.size_bytes is not None:
            raise SpecError("expected either size= or cdf=")

    def check_given(self) -> None:
        """Raises SpecError where nothing says how large flows are."""
        if self.size_bytes is None and self.cdf is None:
            raise SpecError("expected either size= or cdf=")

    @property
    def distribution(self) -> SizeCdf:
        """What sizes are drawn from."""
        if self.cdf is None:
            return SizeCdf.always(DEFAULT_BYTES if self.size_bytes is None else self.size_bytes)
        return self.cdf if self.most_bytes is None else self.cdf.clipped(self.most_bytes)


@dataclass(frozen=True, slots=True)
class Peers:
    """What the two hosts of a pair may not share."""

    peers: Annotated[
        str | None,
        keys.choice(
            "peers", "hosts of any, of different switches, or of different groups", APART, absent=HOSTS
        ),
    ] = None
    cross: Annotated[bool | None, keys.flag("cross", "the same as peers=remote", absent="off")] = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if None not in (self.cross, self.peers) and self.cross != (self.peers != HOSTS):
            raise SpecError("peers= and cross= contradict each other")

    @property
    def apart(self) -> str:
        """One of pairs.APART."""
        return self.peers or (SWITCHES if self.cross else HOSTS)


@dataclass(frozen=True, slots=True)
class Seed:
    """Of every workload."""

    seed: Annotated[
        int | None,
        keys.integer(
            "seed",
            "of this workload",
            least=0,
            most=MOST_INTEGER,
            values="number from 0",
            absent="the run's",
        ),
    ] = None


WORKLOADS: Registry[Pattern] = Registry("workload", also=(Seed,), files="FILE.csv", methods={"transfers": 2})

register = WORKLOADS.register
