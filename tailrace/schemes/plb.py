# SPDX-License-Identifier: Apache-2.0
"""PLB (Qureshi et al., SIGCOMM 2022) and PRR (Wetherall et al., SIGCOMM 2023): a flow changes its path after
congested rounds, or after timeouts (hosts.steering.plb). Variants:

linux   both, with the defaults of Linux
prr     timeouts only
htsim   PLB as in the simulator of REPS's authors: a round lasts one base RTT and is congested if any packet
        was marked, since their share of 0.25 is stored as the integer 0; two such rounds suffice
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from tailrace.hosts.options.nic import PLB, NicConfig
from tailrace.schemes.base import scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.entropy import EntropyConfig, ResolvedEntropy
from tailrace.spec import Spec, keys
from tailrace.topology import Topology

_MOST_ROUNDS = 31
"""Linux's limit of tcp_plb_rehash_rounds."""

_ANY_MARK = 1e-6
"""A share below that of a single packet of a round."""


class Rules(NamedTuple):
    """Defaults of a variant; see hosts.steering.plb."""

    rounds: int
    idle_rounds: int
    share: float
    suspend_ns: int


VARIANTS = {
    "linux": Rules(12, 3, 0.5, 60_000_000_000),
    "prr": Rules(0, 0, 0.5, 0),
    "htsim": Rules(2, 0, _ANY_MARK, 0),
}
LINUX, PRR, HTSIM = VARIANTS
_ABSENT = "by the variant"


@scheme
class PlbConfig(EntropyConfig, frozen=True, kw_only=True):
    """A flow takes another path after congested rounds or a timeout. None: the variant's value."""

    name: ClassVar[str] = "plb"
    about: ClassVar[str] = "NICs change a flow's path after congested rounds (PLB) or a timeout (PRR)"
    usual_evs: ClassVar[int] = 1024
    variant: Annotated[
        str,
        keys.choice("variant", "rules of Linux, timeouts only, or as in REPS's simulator", tuple(VARIANTS)),
    ] = LINUX
    rounds: Annotated[
        int | None,
        keys.integer(
            "rounds",
            "consecutive congested rounds after which the path changes; 0: never",
            least=0,
            most=_MOST_ROUNDS,
            absent=_ABSENT,
        ),
    ] = None
    idle_rounds: Annotated[
        int | None,
        keys.integer(
            "idle",
            "such rounds after which it changes if no packet is in flight; 0: never",
            least=0,
            most=_MOST_ROUNDS,
            absent=_ABSENT,
        ),
    ] = None
    share: Annotated[
        float | None,
        keys.number("share", "share of marked packets of a congested round", least=0, most=1, absent=_ABSENT),
    ] = None
    suspend_ns: Annotated[
        int | None,
        keys.time("suspend", "shortest time without PLB after a timeout", absent=_ABSENT),
    ] = None

    @property
    def steering(self) -> str:
        return PLB

    def checked(self, spec: Spec) -> PlbConfig:
        if self.variant == PRR:
            spec.refuse(("rounds", "idle", "share", "suspend"), f"variant={LINUX} or {HTSIM}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBounded:
        rules = {
            key: value if (given := getattr(self, key)) is None else given
            for key, value in VARIANTS[self.variant]._asdict().items()
        }
        return self.resolve_entropy(ResolvedPlb, topology, context, timed=self.variant == HTSIM, **rules)


class ResolvedPlb(ResolvedEntropy, frozen=True, kw_only=True):
    """PLB resolved for a network; timed: a round lasts one base RTT."""

    rounds: int
    idle_rounds: int
    share: float
    suspend_ns: int
    timed: bool

    def parameters(self, nic: NicConfig, scale: float) -> dict[str, float]:
        return {
            "rounds": self.rounds,
            "idle_rounds": self.idle_rounds,
            "share": self.share,
            "suspend_ns": round(self.suspend_ns * scale),
            "rto_ns": nic.rto_ns,
            "round_ns": nic.path_rtt_ns if self.timed else 0,
        }
