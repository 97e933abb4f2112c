# SPDX-License-Identifier: Apache-2.0
"""Spritz (§III, §IV), and two of its baselines in NICs: oblivious packet spraying, and Flicr (§V-A). Paths
are loop-free and of bounded length; each has an entropy value, EV.

Defaults of keys:

explore, ecn    0.5 and 0.1 of the longest path's BDP in frames, rounded down: 44 and 8 in the Dragonfly of
                Table II
timer           TIMER_RTTS RTTs of the longest path (assumption; the paper gives no value)
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from tailrace.hosts.options.nic import ECN_RATE, SteeringConfig
from tailrace.schemes.base import scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.schemes.spritz.app import CLASS, STEERED
from tailrace.schemes.spritz.bounded import FLICR, OPS, SCOUT, SPRAY, BoundedConfig, ResolvedBounded
from tailrace.schemes.spritz.endpoints import LATENCY, UNIFORM, WEIGHTS
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.paths.bounded import MOST_EVS
from tailrace.topology.timing import max_bdp_bytes, max_rtt_ns

VARIANTS = (SCOUT, SPRAY)
FINE, COARSE = CONTROLS = ("fine", "coarse")

DEFAULT_SCALE = 3.0
"""Spritz §V-A."""

DEFAULT_BUFFER = 8
"""Spritz §IV."""

TIMER_RTTS = 100
_MOST_KEEP_NS = 60_000_000_000
_EXPLORE_PART, _ECN_PART = 2, 10
"""Divisors of the longest path's BDP in frames, for the defaults of explore and ecn."""

_WEIGHTS = keys.choice(
    "weights",
    "probabilities of paths: higher for shorter ones, or equal for all",
    WEIGHTS,
    section="Spritz eq. 1",
)
_SCALE = keys.number(
    "scale",
    "factor of the weights of all paths except the longest",
    above=0,
    values="more than 0",
    section="Spritz §V-A",
)


class SteeredConfig(BoundedConfig, frozen=True, kw_only=True):
    """NICs draw paths by weights: `latency` (eq. 1) or `uniform`.

    held_paths: number of paths to each destination among which a sender chooses; None: all
    """

    weights: Annotated[str, _WEIGHTS] = LATENCY
    scale: Annotated[float, _SCALE] = DEFAULT_SCALE
    held_paths: Annotated[
        int | None,
        keys.integer(
            "paths",
            "number of paths that a sender knows to a destination: minimal ones first, others at random",
            least=1,
            most=MOST_EVS,
            absent="all",
            section="Spritz §III-C",
        ),
    ] = None

    def checked(self, spec: Spec) -> SteeredConfig:
        # refuse(keys, option): the keys need the option, so they must not be given without it
        if self.weights == UNIFORM:
            spec.refuse(("scale",), f"weights={LATENCY}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBounded:
        return self.resolve_on_spritz(topology, context, mode=STEERED)


@scheme
class OpsConfig(SteeredConfig, frozen=True, kw_only=True):
    """Oblivious packet spraying: every packet takes a random path."""

    name: ClassVar[str] = "ops"
    about: ClassVar[str] = "NICs draw a random path for every packet"
    weights: Annotated[str, _WEIGHTS] = UNIFORM

    @property
    def steering(self) -> str:
        return OPS


@scheme
class FlicrConfig(SteeredConfig, frozen=True, kw_only=True):
    """Flicr: a flow leaves a congested path for a random one."""

    name: ClassVar[str] = "flicr"
    about: ClassVar[str] = "NICs draw a new path for a flow whose path is congested"

    @property
    def steering(self) -> str:
        return FLICR


_SECTION = "Spritz §IV"


@scheme
class SpritzConfig(SteeredConfig, frozen=True, kw_only=True):
    """Spritz (§IV): good paths are used again, bad paths are avoided.

    explore_packets: number of packets after which a new path is drawn
    bias: weight of the shortest path while nearly all packets are marked; 0: twice its normal weight
    control: `fine`: NICs select paths by EV; `coarse`: classes of paths by VLAN tag (§III-D)
    """

    name: ClassVar[str] = "spritz"
    title: ClassVar[str] = "Spritz"
    about: ClassVar[str] = "NICs reuse good paths and avoid bad ones"
    variant: Annotated[
        str,
        keys.choice(
            "variant",
            "a good path is used as long as it is good, or for one packet at a time",
            VARIANTS,
            section=_SECTION,
        ),
    ] = SCOUT
    explore_packets: Annotated[
        int | None,
        keys.integer(
            "explore",
            "number of packets after which a new path is drawn even if the old one is good",
            least=0,
            values="packets",
            section=_SECTION,
        ),
    ] = None
    ecn_packets: Annotated[
        int | None,
        keys.integer(
            "ecn",
            "number of marked packets above which a path is not reused",
            least=0,
            values="packets",
            section=_SECTION,
        ),
    ] = None
    buffer: Annotated[
        int, keys.integer("buffer", "number of good paths that a sender remembers", least=1, section=_SECTION)
    ] = DEFAULT_BUFFER
    timer_ns: Annotated[
        int | None, keys.time("timer", "time for which a path that lost a packet is not drawn", least=1)
    ] = None
    keep_ns: Annotated[
        int,
        keys.time(
            "keep",
            "flows to the same host share what they learn of paths; kept for this time after the last flow",
            most=_MOST_KEEP_NS,
            section="Spritz §III-C",
        ),
    ] = 0
    good_ns: Annotated[
        int | None,
        keys.time(
            "good",
            "time for which good paths are kept, at most keep=; blocked paths are kept for all of keep=",
            most=_MOST_KEEP_NS,
            absent="that of keep=",
        ),
    ] = None
    small_bytes: Annotated[
        int,
        keys.size(
            "small",
            "instead of by marks, bias flows below this size: bias= for the shortest path, 1 for others",
            least=0,
        ),
    ] = 0
    bias: Annotated[
        float,
        keys.number(
            "bias",
            "weight of the shortest path while nearly all packets are marked; 0: twice the normal weight",
            least=0,
            values="number",
            section=_SECTION,
        ),
    ] = 0.0
    control: Annotated[
        str,
        keys.choice(
            "mode",
            "NICs choose single paths, or classes of paths by a VLAN tag",
            CONTROLS,
            section="Spritz §III-D",
        ),
    ] = FINE

    def checked(self, spec: Spec) -> SteeredConfig:
        if self.control == COARSE:
            spec.refuse(("paths",), f"mode={FINE}")
        if not self.keep_ns:
            spec.refuse(("good",), "keep")
        if not self.bias:
            spec.refuse(("small",), "bias")
        return super().checked(spec)

    @property
    def steering(self) -> str:
        return self.variant

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBounded:
        explore, ecn, timer_ns = self.explore_packets, self.ecn_packets, self.timer_ns
        self.check_on(topology)
        frame = self.full_frame_bytes(context)
        packets = max_bdp_bytes(topology, frame) // frame
        return self.resolve_on_spritz(
            topology,
            context,
            ResolvedSpritz,
            mode=CLASS if self.control == COARSE else STEERED,
            explore_packets=max(1, packets // _EXPLORE_PART) if explore is None else explore,
            ecn_packets=max(1, packets // _ECN_PART) if ecn is None else ecn,
            timer_ns=TIMER_RTTS * max_rtt_ns(topology, frame) if timer_ns is None else timer_ns,
            good_ns=self.keep_ns if self.good_ns is None else self.good_ns,
        )


class ResolvedSpritz(ResolvedBounded, frozen=True, kw_only=True):
    """Spritz resolved for a network; `steering` is the variant."""

    explore_packets: int
    ecn_packets: int
    buffer: int
    timer_ns: int
    keep_ns: int
    good_ns: int
    small_bytes: int
    bias: float

    def _steering(self, rtt_ns: int) -> SteeringConfig:  # noqa: ARG002
        return SteeringConfig(
            algorithm=self.steering,
            explore_threshold=self.explore_packets,
            ecn_threshold=self.ecn_packets,
            buffer=self.buffer,
            timer_ns=self.timer_ns,
            keep_ns=self.keep_ns,
            good_ns=self.good_ns,
            small_bytes=self.small_bytes,
            # a share of marks is never above 1, so that marks bias no flow
            ecn_rate=1.0 if self.small_bytes else ECN_RATE,
            min_bias_factor=self.bias,
        )
