# SPDX-License-Identifier: Apache-2.0
"""Schemes over bounded simple paths of Dragonfly and Slim Fly, whose switches run the program `spritz`.

NICs choose a path by its entropy value (Spritz §III, §IV and the baselines of §V-A), or switches draw one hop
by hop: that is `draw=hop`, while `draw=group` are the paths of a Dragonfly by its own program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tailrace.schemes.base import COMMON, DragonflyPaths, SchemeConfig, common_options, gap_ns
from tailrace.words import Options, Words

SPRITZ, DRAGONFLY = "spritz", "dragonfly"
"""Programs."""

MODES = ("minimal", "steered", "class", "random", "ugal-l")
"""What the switches of the program `spritz` do, as SpritzMode_t of the P4 source has it."""

MINIMAL_MODE, STEERED, CLASS, RANDOM, UGAL_L = MODES

ALGORITHMS = ("scout", "spray", "ops", "ecmp", "flicr")
"""How NICs choose among paths."""

SCOUT, SPRAY, OPS, FLOW_ECMP, FLICR = ALGORITHMS
VARIANTS = (SCOUT, SPRAY)
LATENCY, UNIFORM = WEIGHTS = ("latency", "uniform")
FINE, COARSE = CONTROLS = ("fine", "coarse")
GROUP, HOP = DRAWS = ("group", "hop")
OVER_MINIMAL, OVER_ALL = OVERS = ("minimal", "all")

DEFAULT_SCALE = 3.0
"""Spritz §V-A."""

DEFAULT_BUFFER = 8
"""Spritz §IV."""

_LEAST_FRAME_BYTES = 64
_FLAGS = ("trim", "repair", "marks")
_BOUNDED = (*_FLAGS, "frame")
_WEIGHTED = ("weights", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedConfig(SchemeConfig):
    """A scheme that may run over the program `spritz`; these fields have no meaning where it does not.

    trim: data that exceeds the queue's limit is cut to its headers, not dropped
    frame_bytes: a full frame, by which latencies of paths and the BDP are reckoned
    repair: default tables lead around failed links; ECMP tables never do (Spritz §IV-C, §V-D)
    marks: hosts may mark packets as STEERED, to have them follow their entropy value in every mode
    """

    trim: bool | None = None
    frame_bytes: int | None = None
    repair: bool | None = None
    marks: bool = False

    @property
    def mode(self) -> str:
        """One of MODES; empty: another program runs."""
        return ""

    @property
    def program(self) -> str:
        """See SchemeConfig."""
        return SPRITZ if self.mode else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EcmpConfig(BoundedConfig):
    """A hash of the 5-tuple chooses: a next hop, or in the NIC a path of all there are, minimal or not.

    over: one of OVERS
    """

    name: ClassVar[str] = "ecmp"
    over: str = OVER_MINIMAL

    @property
    def mode(self) -> str:
        """See BoundedConfig."""
        return STEERED if self.over == OVER_ALL else ""

    @property
    def steering(self) -> str:
        """See SchemeConfig."""
        return FLOW_ECMP if self.over == OVER_ALL else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedConfig(BoundedConfig):
    """Routing by switches (Flowcut §III-C4, Spritz §V-A): `minimal`, `valiant` or `ugal-l`.

    grain: what keeps a path, one of GRAINS; where draw is `hop` that of the scheme's default
    gap_ns: where that is a flowlet, a pause of at least this begins a new one
    draw: one of DRAWS; None: `group` in a Dragonfly, elsewhere `hop`
    """

    hop_mode: ClassVar[str]
    grain: str
    gap_ns: int | None = None
    draw: str | None = None

    @property
    def mode(self) -> str:
        """See BoundedConfig."""
        return self.hop_mode if self.draw == HOP else ""

    @property
    def flowlet_gap_ns(self) -> int | None:
        """See SchemeConfig."""
        return self.gap_ns if self.grain == "flowlet" else None

    @property
    def program(self) -> str:
        """One program for all of them."""
        return SPRITZ if self.mode else DRAGONFLY

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """See SchemeConfig."""
        if self.mode:
            return None
        return DragonflyPaths(rule=self.name, grain=self.grain, gap_ns=self.gap_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalConfig(RoutedConfig):
    """A minimal path: at most one link to another group."""

    name: ClassVar[str] = "minimal"
    hop_mode: ClassVar[str] = MINIMAL_MODE
    grain: str = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValiantConfig(RoutedConfig):
    """Always through a random third group, or in a Slim Fly through a random switch."""

    name: ClassVar[str] = "valiant"
    hop_mode: ClassVar[str] = RANDOM
    grain: str = "packet"


@dataclass(frozen=True, slots=True, kw_only=True)
class UgalLConfig(RoutedConfig):
    """A minimal path or one of Valiant's, by the queues of the first switch."""

    name: ClassVar[str] = UGAL_L
    hop_mode: ClassVar[str] = UGAL_L
    grain: str = "packet"


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeredConfig(BoundedConfig):
    """NICs draw paths by weights.

    weights: `latency` (eq. 1) or `uniform`
    scale: by which all weights of eq. 1 but the longest path's, which is 1, are multiplied
    """

    weights: str = LATENCY
    scale: float = DEFAULT_SCALE

    @property
    def mode(self) -> str:
        """See BoundedConfig."""
        return STEERED


@dataclass(frozen=True, slots=True, kw_only=True)
class SpritzConfig(SteeredConfig):
    """Spritz (§IV): good paths are used again, bad ones left.

    variant: `scout` or `spray`
    explore_packets: a path is drawn anew after more packets than this
    ecn_packets: a path is bad after more ECN marks than this
    buffer: good paths that are kept
    timer_ns: so long a path whose packet was lost is not drawn
    bias: weight of the shortest path where nearly all is marked; 0: twice its own
    control: `fine`: by EV, or `coarse`: by classes of paths (§III-D)
    """

    name: ClassVar[str] = "spritz"
    variant: str = SCOUT
    explore_packets: int | None = None
    ecn_packets: int | None = None
    buffer: int = DEFAULT_BUFFER
    timer_ns: int | None = None
    bias: float = 0.0
    control: str = FINE

    @property
    def mode(self) -> str:
        """See BoundedConfig."""
        return CLASS if self.control == COARSE else STEERED

    @property
    def steering(self) -> str:
        """See SchemeConfig."""
        return self.variant


@dataclass(frozen=True, slots=True, kw_only=True)
class OpsConfig(SteeredConfig):
    """Oblivious packet spraying: every packet takes a path that is drawn for it."""

    name: ClassVar[str] = "ops"
    weights: str = UNIFORM

    @property
    def steering(self) -> str:
        """See SchemeConfig."""
        return OPS


@dataclass(frozen=True, slots=True, kw_only=True)
class FlicrConfig(SteeredConfig):
    """Flicr: a flow leaves a congested path for one that is drawn."""

    name: ClassVar[str] = "flicr"

    @property
    def steering(self) -> str:
        """See SchemeConfig."""
        return FLICR


def _bounded_options(options: Options) -> dict[str, Any]:
    found = common_options(options)
    for key in _FLAGS:
        if key in options:
            found[key] = options.flag(key)
    if "frame" in options:
        found["frame_bytes"] = options.size_bytes("frame", least=_LEAST_FRAME_BYTES)
    return found


def _refuse_bounded(options: Options, where: str) -> None:
    for key in _BOUNDED:
        if key in options:
            raise options.error(key, f"given only where {where} is")


def ecmp(words: Words) -> SchemeConfig:
    """ecmp:over=,trim=,repair=,frame=."""
    options = Options(words, ("over", *_BOUNDED, *COMMON))
    over = options.choice("over", OVERS, OVER_MINIMAL)
    if over != OVER_ALL:
        _refuse_bounded(options, f"over={OVER_ALL}")
    return EcmpConfig(over=over, **_bounded_options(options))


def routed(make: type[RoutedConfig], default: str, *more: str) -> Callable[[Words], SchemeConfig]:
    """Reads minimal, valiant or ugal-l; `default` and `more`: what can keep a path."""

    def read(words: Words) -> SchemeConfig:
        options = Options(words, ("per", "gap", "draw", *_BOUNDED, *COMMON))
        draw = options.choice("draw", DRAWS) if "draw" in options else None
        grain = options.choice("per", (default, *more), default)
        if grain != default and draw == HOP:
            raise options.error("per", f"given only where draw={GROUP} is")
        if "gap" in options and grain != "flowlet":
            raise options.error("gap", "given only where per=flowlet is")
        if draw == GROUP:
            _refuse_bounded(options, f"draw={HOP}")
        return make(grain=grain, gap_ns=gap_ns(options), draw=draw, **_bounded_options(options))

    return read


def _weighted(options: Options, default: str) -> dict[str, Any]:
    weights = options.choice("weights", WEIGHTS, default)
    if weights == UNIFORM and "scale" in options:
        raise options.error("scale", f"given only where weights={LATENCY} is")
    scale = options.number("scale", DEFAULT_SCALE)
    if scale <= 0:
        raise options.error("scale", "more than 0")
    return {"weights": weights, "scale": scale, **_bounded_options(options)}


def weighted(make: type[OpsConfig | FlicrConfig], default: str) -> Callable[[Words], SchemeConfig]:
    """Reads ops or flicr; `default`: its weights."""

    def read(words: Words) -> SchemeConfig:
        return make(**_weighted(Options(words, (*_WEIGHTED, *_BOUNDED, *COMMON)), default))

    return read


def spritz(words: Words) -> SchemeConfig:
    """spritz:variant=,weights=,scale=,explore=,ecn=,buffer=,timer=,bias=,mode=,trim=,repair=,frame=."""
    own = ("variant", "explore", "ecn", "buffer", "timer", "bias", "mode")
    options = Options(words, (*own, *_WEIGHTED, *_BOUNDED, *COMMON))
    found = _weighted(options, LATENCY)
    if "explore" in options:
        found["explore_packets"] = options.integer("explore", least=0)
    if "ecn" in options:
        found["ecn_packets"] = options.integer("ecn", least=0)
    if "timer" in options:
        found["timer_ns"] = options.time_ns("timer", least=1)
    return SpritzConfig(
        variant=options.choice("variant", VARIANTS, SCOUT),
        buffer=options.integer("buffer", DEFAULT_BUFFER, least=1),
        bias=options.number("bias", 0.0, least=0),
        control=options.choice("mode", CONTROLS, FINE),
        **found,
    )


READERS: dict[str, Callable[[Words], SchemeConfig]] = {
    "ecmp": ecmp,
    "minimal": routed(MinimalConfig, "flow", "packet", "flowlet"),
    "valiant": routed(ValiantConfig, "packet", "flow", "flowlet"),
    "ugal-l": routed(UgalLConfig, "packet", "flowlet"),
    "spritz": spritz,
    "ops": weighted(OpsConfig, UNIFORM),
    "flicr": weighted(FlicrConfig, LATENCY),
}
"""Readers of the words of these schemes."""
