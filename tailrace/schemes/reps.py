# SPDX-License-Identifier: Apache-2.0
"""REPS (Bonato et al., EuroSys 2026): senders send packets with the entropy values of packets that arrived
unmarked (hosts.steering.reps). Defaults are those of the authors' simulator, with these assumptions:

explore   one BDP in packets
trim=off  a timeout freezes the ring if the largest recent RTT is below FREEZE_RTTS base RTTs
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from tailrace.hosts.options.nic import REPS, NicConfig
from tailrace.schemes.base import scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.entropy import EntropyConfig, ResolvedEntropy
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.timing import max_bdp_bytes

FREEZING, FIFO = VARIANTS = ("freezing", "fifo")
FREEZE_RTTS = 1.65
FREEZE_NS = 10_000_000
_MOST_RING = 1 << 12


@scheme
class RepsConfig(EntropyConfig, frozen=True, kw_only=True):
    """Entropy values of packets that arrived unmarked are used again.

    explore: packets that draw EVs after freezing; None: one BDP
    """

    name: ClassVar[str] = "reps"
    about: ClassVar[str] = "NICs send packets on paths whose last packet arrived unmarked"
    variant: Annotated[
        str,
        keys.choice("variant", "a ring that freezes after timeouts, or a queue without limit", VARIANTS),
    ] = FREEZING
    ring: Annotated[
        int, keys.integer("ring", "number of entropy values that a flow remembers", least=1, most=_MOST_RING)
    ] = 8
    lifetime: Annotated[
        int,
        keys.integer("lifetime", "number of packets that reuse an entropy value", least=1, most=_MOST_RING),
    ] = 1
    freeze_ns: Annotated[
        int, keys.time("freeze", "time for which the ring is frozen after a timeout; 0: never")
    ] = FREEZE_NS
    explore: Annotated[
        int | None,
        keys.integer("explore", "packets that draw entropy values after freezing", least=0, absent="one BDP"),
    ] = None

    @property
    def steering(self) -> str:
        return REPS[VARIANTS.index(self.variant)]

    def checked(self, spec: Spec) -> RepsConfig:
        if self.variant == FIFO:
            spec.refuse(("ring", "lifetime", "freeze", "explore"), f"variant={FREEZING}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBounded:
        frame = self.full_frame_bytes(context)
        explore = max_bdp_bytes(topology, frame) // frame if self.explore is None else self.explore
        return self.resolve_entropy(ResolvedReps, topology, context, explore=explore)


class ResolvedReps(ResolvedEntropy, frozen=True, kw_only=True):
    """REPS resolved for a network; `steering` is one of REPS."""

    ring: int
    lifetime: int
    freeze_ns: int
    explore: int

    def parameters(self, nic: NicConfig, scale: float) -> dict[str, float]:
        return {
            "ring": self.ring,
            "lifetime": self.lifetime,
            "freeze_ns": round(self.freeze_ns * scale),
            "explore": self.explore,
            "most_rtt_ns": 0 if self.trim else round(FREEZE_RTTS * nic.path_rtt_ns),
            "rto_ns": nic.rto_ns,
        }
